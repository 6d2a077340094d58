-- The outbox postrider_outbox on PostgreSQL.

-- Step 1
CREATE TABLE "postrider_outbox" (
    "id" uuid NOT NULL DEFAULT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid,
    "channel" text NOT NULL,
    "recipient" text NOT NULL DEFAULT '',
    "recipient_address" text NOT NULL,
    "cc_addresses" text,
    "subject" text,
    "body" text,
    "payload" text,
    "status" text NOT NULL DEFAULT 'PENDING',
    "attempts" bigint NOT NULL DEFAULT 0,
    "max_attempts" bigint NOT NULL DEFAULT 11,
    "next_attempt_at" timestamptz NOT NULL DEFAULT now(),
    "last_error" text,
    "sent_at" timestamptz,
    "dedupe_key" text NOT NULL DEFAULT gen_random_uuid()::text,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "updated_at" timestamptz NOT NULL DEFAULT now(),
    "claim_seq" bigint NOT NULL DEFAULT 0,
    "lost_claims" bigint NOT NULL DEFAULT 0,
    "claimed_by" text,
    "deferrals" bigint NOT NULL DEFAULT 0,
    "deferred_since" timestamptz,
    "resends" bigint NOT NULL DEFAULT 0,
    "priority" bigint NOT NULL DEFAULT 0,
    "expires_at" timestamptz,
    "ordering_key" text,
    "category" text,
    "locale" text,
    "template" text,
    "recipients" text,
    "accepted_at" timestamptz,
    "provider" text,
    "provider_message_id" text,
    "in_doubt" boolean NOT NULL DEFAULT false,
    "reason_code" text,
    "traceparent" text,
    "metadata" text,
    "tenant_id" text NOT NULL DEFAULT '',
    PRIMARY KEY ("id"),
    UNIQUE ("tenant_id", "dedupe_key"),
    CHECK ("status" IN ('PENDING', 'SENDING', 'SENT', 'FAILED', 'DEAD', 'SUPPRESSED'))
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX "postrider_outbox_claim" ON "postrider_outbox" ("next_attempt_at", "id") WHERE "status" IN ('PENDING', 'FAILED', 'SENDING');

CREATE INDEX "postrider_outbox_lost" ON "postrider_outbox" ("next_attempt_at", "id") WHERE "status" = 'SENDING' AND "lost_claims" >= 2;

CREATE TABLE "postrider_outbox_attempt" (
    "id" uuid NOT NULL,
    "outbox_id" uuid NOT NULL,
    "claim_seq" bigint NOT NULL,
    "event" text NOT NULL,
    "at" timestamptz NOT NULL,
    "started_at" timestamptz,
    "node" text,
    "actor" text,
    "status" text NOT NULL,
    "error" text,
    "reason_code" text,
    "blame" text,
    "provider" text,
    "provider_message_id" text,
    "recipients" text,
    PRIMARY KEY ("id")
);

CREATE INDEX "postrider_outbox_attempt_row" ON "postrider_outbox_attempt" ("outbox_id", "at");

-- Step 2
ALTER TABLE "postrider_outbox"
    ADD CONSTRAINT "postrider_outbox_cc_json" CHECK ("cc_addresses" IS NULL OR "cc_addresses"::json IS NOT NULL) NOT VALID,
    ADD CONSTRAINT "postrider_outbox_payload_json" CHECK ("payload" IS NULL OR "payload"::json IS NOT NULL) NOT VALID,
    ADD CONSTRAINT "postrider_outbox_recipients_json" CHECK ("recipients" IS NULL OR "recipients"::json IS NOT NULL) NOT VALID,
    ADD CONSTRAINT "postrider_outbox_metadata_json" CHECK ("metadata" IS NULL OR "metadata"::json IS NOT NULL) NOT VALID;

-- The outbox postrider_outbox on SQLite.

-- Step 1
CREATE TABLE "postrider_outbox" (
    "id" BLOB NOT NULL DEFAULT (randomblob(16)),
    "channel" TEXT NOT NULL,
    "recipient" TEXT NOT NULL DEFAULT '',
    "recipient_address" TEXT NOT NULL,
    "cc_addresses" TEXT,
    "subject" TEXT,
    "body" TEXT,
    "payload" TEXT,
    "status" TEXT NOT NULL DEFAULT 'PENDING',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "max_attempts" INTEGER NOT NULL DEFAULT 11,
    "next_attempt_at" INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    "last_error" TEXT,
    "sent_at" INTEGER,
    "dedupe_key" TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
    "created_at" INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    "updated_at" INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000),
    "claim_seq" INTEGER NOT NULL DEFAULT 0,
    "lost_claims" INTEGER NOT NULL DEFAULT 0,
    "claimed_by" TEXT,
    "deferrals" INTEGER NOT NULL DEFAULT 0,
    "deferred_since" INTEGER,
    "resends" INTEGER NOT NULL DEFAULT 0,
    "priority" INTEGER NOT NULL DEFAULT 0,
    "expires_at" INTEGER,
    "ordering_key" TEXT,
    "category" TEXT,
    "locale" TEXT,
    "template" TEXT,
    "recipients" TEXT,
    "accepted_at" INTEGER,
    "provider" TEXT,
    "provider_message_id" TEXT,
    "in_doubt" INTEGER NOT NULL DEFAULT 0,
    "reason_code" TEXT,
    "traceparent" TEXT,
    "metadata" TEXT,
    "tenant_id" TEXT NOT NULL DEFAULT '',
    PRIMARY KEY ("id"),
    UNIQUE ("tenant_id", "dedupe_key"),
    CHECK ("status" IN ('PENDING', 'SENDING', 'SENT', 'FAILED', 'DEAD', 'SUPPRESSED')),
    CONSTRAINT "postrider_outbox_seq_range" CHECK ("claim_seq" BETWEEN 0 AND 1000000000000000),
    CONSTRAINT "postrider_outbox_attempts_range" CHECK ("attempts" BETWEEN 0 AND 1000000),
    CONSTRAINT "postrider_outbox_budget_range" CHECK ("max_attempts" BETWEEN 1 AND 1000000),
    CONSTRAINT "postrider_outbox_losses_range" CHECK ("lost_claims" >= 0),
    CONSTRAINT "postrider_outbox_cc_json" CHECK ("cc_addresses" IS NULL OR json_valid("cc_addresses")),
    CONSTRAINT "postrider_outbox_payload_json" CHECK ("payload" IS NULL OR json_valid("payload")),
    CONSTRAINT "postrider_outbox_recipients_json" CHECK ("recipients" IS NULL OR json_valid("recipients")),
    CONSTRAINT "postrider_outbox_metadata_json" CHECK ("metadata" IS NULL OR json_valid("metadata")),
    CHECK (length("id") = 16)
) STRICT;

CREATE INDEX "postrider_outbox_claim" ON "postrider_outbox" ("next_attempt_at", "id") WHERE "status" IN ('PENDING', 'FAILED', 'SENDING');

CREATE INDEX "postrider_outbox_lost" ON "postrider_outbox" ("next_attempt_at", "id") WHERE "status" = 'SENDING' AND "lost_claims" >= 2;

CREATE TABLE "postrider_outbox_attempt" (
    "id" BLOB NOT NULL,
    "outbox_id" BLOB NOT NULL,
    "claim_seq" INTEGER NOT NULL,
    "event" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    "started_at" INTEGER,
    "node" TEXT,
    "actor" TEXT,
    "status" TEXT NOT NULL,
    "error" TEXT,
    "reason_code" TEXT,
    "blame" TEXT,
    "provider" TEXT,
    "provider_message_id" TEXT,
    "recipients" TEXT,
    PRIMARY KEY ("id")
) STRICT;

CREATE INDEX "postrider_outbox_attempt_row" ON "postrider_outbox_attempt" ("outbox_id", "at");

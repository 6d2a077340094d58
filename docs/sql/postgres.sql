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
    CHECK ("status" IN ('PENDING', 'SENDING', 'SENT', 'FAILED', 'DEAD', 'SUPPRESSED')),
    CONSTRAINT "postrider_outbox_seq_range" CHECK ("claim_seq" BETWEEN 0 AND 1000000000000000),
    CONSTRAINT "postrider_outbox_attempts_range" CHECK ("attempts" BETWEEN 0 AND 1000000),
    CONSTRAINT "postrider_outbox_budget_range" CHECK ("max_attempts" BETWEEN 1 AND 1000000),
    CONSTRAINT "postrider_outbox_losses_range" CHECK ("lost_claims" >= 0),
    CONSTRAINT "postrider_outbox_next_comes" CHECK ("next_attempt_at" < 'infinity')
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

-- Step 3
CREATE OR REPLACE FUNCTION "postrider_enqueue"(
    "channel" text,
    "recipient_address" text,
    "recipient" text DEFAULT NULL,
    "subject" text DEFAULT NULL,
    "body" text DEFAULT NULL,
    "html" text DEFAULT NULL,
    "cc" text DEFAULT NULL,
    "dedupe_key" text DEFAULT NULL,
    "tenant_id" text DEFAULT NULL,
    "at" timestamptz DEFAULT NULL,
    "expires_at" timestamptz DEFAULT NULL,
    "priority" bigint DEFAULT NULL,
    "max_attempts" bigint DEFAULT NULL,
    "category" text DEFAULT NULL,
    "locale" text DEFAULT NULL,
    "template" text DEFAULT NULL,
    "ordering_key" text DEFAULT NULL,
    "traceparent" text DEFAULT NULL,
    "payload" text DEFAULT NULL,
    "metadata" text DEFAULT NULL,
    OUT id uuid,
    OUT created boolean
)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER
AS $postrider$
#variable_conflict use_column
DECLARE
    pr_id uuid := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;
    pr_now timestamptz := clock_timestamp();
    pr_key text := coalesce("postrider_enqueue"."dedupe_key", pr_id::text);
    pr_payload text := "postrider_enqueue"."payload";
    pr_what text;
    pr_text text;
    pr_json jsonb;
BEGIN
    IF coalesce("postrider_enqueue"."channel", '') = '' THEN
        RAISE EXCEPTION 'the channel is empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF coalesce("postrider_enqueue"."recipient_address", '') = '' THEN
        RAISE EXCEPTION 'the recipient_address is empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length("postrider_enqueue"."channel") > 255 OR "postrider_enqueue"."channel" ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the channel holds a control character or is longer than 255 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF "postrider_enqueue"."recipient_address" ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the recipient_address holds a control character' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF strpos("postrider_enqueue"."subject", chr(10)) > 0 OR strpos("postrider_enqueue"."subject", chr(13)) > 0 THEN
        RAISE EXCEPTION 'the subject holds a line break' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF pr_key = '' OR octet_length(convert_to(pr_key, 'UTF8')) > 255 THEN
        RAISE EXCEPTION 'the dedupe_key is empty or longer than 255 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(convert_to("postrider_enqueue"."tenant_id", 'UTF8')) > 64 OR "postrider_enqueue"."tenant_id" ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the tenant_id holds a control character or is longer than 64 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF "postrider_enqueue"."at" < '0001-01-01Z' OR "postrider_enqueue"."at" >= '9999-12-30Z' OR "postrider_enqueue"."expires_at" >= '9999-12-30Z' THEN
        RAISE EXCEPTION 'at or expires_at is no time of these millennia' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF "postrider_enqueue"."expires_at" <= greatest("postrider_enqueue"."at", pr_now) THEN
        RAISE EXCEPTION 'expires_at is past, or not after at: nothing would be sent'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF "postrider_enqueue"."max_attempts" NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts is %; it must be 1 to 1000', "postrider_enqueue"."max_attempts"
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF "postrider_enqueue"."priority" NOT BETWEEN -2147483648 AND 2147483647 THEN
        RAISE EXCEPTION 'the priority does not fit in 32 bits' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR pr_what, pr_text IN
        SELECT pr_given.what, pr_given.given FROM (VALUES
            ('recipient_address', "postrider_enqueue"."recipient_address"), ('recipient', "postrider_enqueue"."recipient"), ('category', "postrider_enqueue"."category"),
            ('locale', "postrider_enqueue"."locale"), ('template', "postrider_enqueue"."template"), ('ordering_key', "postrider_enqueue"."ordering_key"),
            ('traceparent', "postrider_enqueue"."traceparent")
        ) AS pr_given (what, given) WHERE octet_length(pr_given.given) > 2000
    LOOP
        RAISE EXCEPTION 'the % is % bytes long; at most 2000 are allowed', pr_what, octet_length(pr_text)
            USING ERRCODE = 'invalid_parameter_value';
    END LOOP;
    IF coalesce(octet_length("postrider_enqueue"."subject"), 0) + coalesce(octet_length("postrider_enqueue"."body"), 0) + coalesce(octet_length("postrider_enqueue"."html"), 0)
        > 16777216 THEN
        RAISE EXCEPTION 'subject, body and html are longer than 16 MiB' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR pr_what, pr_text IN
        SELECT pr_given.what, pr_given.given
        FROM (VALUES ('cc', "postrider_enqueue"."cc"), ('payload', "postrider_enqueue"."payload"), ('metadata', "postrider_enqueue"."metadata")) AS pr_given (what, given)
        WHERE pr_given.given IS NOT NULL
    LOOP
        BEGIN
            pr_json := pr_text::jsonb;
        EXCEPTION WHEN data_exception THEN
            RAISE EXCEPTION 'the % is no JSON that can be stored', pr_what
                USING ERRCODE = 'invalid_parameter_value', DETAIL = SQLERRM;
        END;
        IF pr_what = 'payload' AND jsonb_typeof(pr_json) <> 'object' THEN
            RAISE EXCEPTION 'the payload is no JSON object' USING ERRCODE = 'invalid_parameter_value';
        ELSIF pr_what = 'cc' AND jsonb_typeof(pr_json) <> 'array' THEN
            RAISE EXCEPTION 'the cc is no JSON list of addresses' USING ERRCODE = 'invalid_parameter_value';
        ELSIF pr_what = 'cc' AND EXISTS (
            SELECT FROM jsonb_array_elements(pr_json) AS pr_each (item)
            WHERE jsonb_typeof(pr_each.item) <> 'string' OR (pr_each.item #>> '{}') ~ '^$|[[:cntrl:]]'
                OR octet_length(pr_each.item #>> '{}') > 2000
        ) THEN
            RAISE EXCEPTION 'the cc is no JSON list of addresses' USING ERRCODE = 'invalid_parameter_value';
        ELSIF pr_what = 'cc' AND "postrider_enqueue"."channel" <> 'email' AND pr_json <> '[]' THEN
            RAISE EXCEPTION 'only e-mail can have a cc' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    IF "postrider_enqueue"."html" IS NOT NULL THEN
        pr_payload := (coalesce("postrider_enqueue"."payload", '{}')::jsonb || jsonb_build_object('html', "postrider_enqueue"."html"))::text;
    END IF;
    FOR pr_try IN 1..3 LOOP
        INSERT INTO "postrider_outbox" AS pr_row (
            "id",
            "recipient",
            "payload",
            "dedupe_key",
            "next_attempt_at",
            "priority",
            "max_attempts",
            "created_at",
            "updated_at",
            "status",
            "attempts",
            "claim_seq",
            "lost_claims",
            "deferrals",
            "resends",
            "in_doubt",
            "tenant_id",
            "channel",
            "recipient_address",
            "subject",
            "body",
            "cc_addresses",
            "expires_at",
            "category",
            "locale",
            "template",
            "ordering_key",
            "traceparent",
            "metadata"
        ) VALUES (
            pr_id,
            coalesce("postrider_enqueue"."recipient", "postrider_enqueue"."recipient_address"),
            pr_payload,
            pr_key,
            coalesce("postrider_enqueue"."at", pr_now),
            coalesce("postrider_enqueue"."priority", 0),
            coalesce("postrider_enqueue"."max_attempts", 11),
            pr_now,
            pr_now,
            'PENDING',
            0,
            0,
            0,
            0,
            0,
            false,
            coalesce("postrider_enqueue"."tenant_id", ''),
            "postrider_enqueue"."channel",
            "postrider_enqueue"."recipient_address",
            "postrider_enqueue"."subject",
            "postrider_enqueue"."body",
            "postrider_enqueue"."cc",
            "postrider_enqueue"."expires_at",
            "postrider_enqueue"."category",
            "postrider_enqueue"."locale",
            "postrider_enqueue"."template",
            "postrider_enqueue"."ordering_key",
            "postrider_enqueue"."traceparent",
            "postrider_enqueue"."metadata"
        ) ON CONFLICT ("tenant_id", "dedupe_key") DO NOTHING;
        IF FOUND THEN
            id := pr_id;
            created := true;
            RETURN;
        END IF;
        SELECT pr_row."id" INTO id FROM "postrider_outbox" AS pr_row WHERE pr_row."tenant_id" = coalesce("postrider_enqueue"."tenant_id", '') AND pr_row."dedupe_key" = pr_key;
        IF FOUND THEN
            created := false;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'a row with the same dedupe key came and went while this one was written; try again'
        USING ERRCODE = 'serialization_failure';
END
$postrider$;

DO $postrider$
BEGIN
    EXECUTE format('ALTER FUNCTION "postrider_enqueue" SET search_path = pg_catalog, %I, pg_temp', (
        SELECT n.nspname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = '"postrider_outbox"'::regclass
    ));
END
$postrider$;

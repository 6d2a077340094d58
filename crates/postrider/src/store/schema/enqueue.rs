//! A function of PostgreSQL's that writes a row in its caller's transaction, for writers in any
//! language: named parameters, checked, and told of a duplicate as the library's own callers are.
//!
//! It runs with its caller's rights, sends no notification, and is part of the numbered steps.
//! Inside of it every name is either a column, a parameter behind the function's name, or begins
//! with `pr_`, which no column may. Source: contract C1.4, C2.2, C2.5.

use super::ddl::Ddl;
use crate::model::column::{self, Column};
use crate::model::{IdType, Kind};
use crate::store::Dialect;

/// PostgreSQL allows a function no more parameters.
const MAX_PARAMETERS: usize = 100;
/// What the function answers with.
const ANSWER: [&str; 2] = ["id", "created"];

/// A parameter, its type, and the column that it is written into as it is, if there is one.
struct Parameter {
    name: String,
    typed: &'static str,
    column: Option<String>,
}

/// The parameters in order; `None`: what is written is made of it.
const OURS: [(&str, Kind, Option<Column>); 20] = [
    ("channel", Kind::Text, Some(column::CHANNEL)),
    ("recipient_address", Kind::Text, Some(column::RECIPIENT_ADDRESS)),
    ("recipient", Kind::Text, None),
    ("subject", Kind::Text, Some(column::SUBJECT)),
    ("body", Kind::Text, Some(column::BODY)),
    ("html", Kind::Text, None),
    ("cc", Kind::Text, Some(column::CC_ADDRESSES)),
    ("dedupe_key", Kind::Text, None),
    (TENANT, Kind::Text, None),
    ("at", Kind::Time, None),
    ("expires_at", Kind::Time, Some(column::EXPIRES_AT)),
    ("priority", Kind::Int, None),
    ("max_attempts", Kind::Int, None),
    ("category", Kind::Text, Some(column::CATEGORY)),
    ("locale", Kind::Text, Some(column::LOCALE)),
    ("template", Kind::Text, Some(column::TEMPLATE)),
    ("ordering_key", Kind::Text, Some(column::ORDERING_KEY)),
    ("traceparent", Kind::Text, Some(column::TRACEPARENT)),
    ("payload", Kind::Text, None),
    ("metadata", Kind::Text, Some(column::METADATA)),
];
/// The parameter that only a table with tenants has.
const TENANT: &str = "tenant_id";

/// The columns whose values the function makes: of several parameters, or of none. An application's
/// own table need have no defaults.
const MADE: [(Column, &str); 16] = [
    (column::ID, "pr_id"),
    (column::RECIPIENT, "coalesce(@recipient, @recipient_address)"),
    (column::PAYLOAD, "pr_payload"),
    (column::DEDUPE_KEY, "pr_key"),
    (column::NEXT_ATTEMPT_AT, "coalesce(@at, pr_now)"),
    (column::PRIORITY, "coalesce(@priority, 0)"),
    (column::MAX_ATTEMPTS, "coalesce(@max_attempts, 11)"),
    (column::CREATED_AT, "pr_now"),
    (column::UPDATED_AT, "pr_now"),
    (column::STATUS, "'PENDING'"),
    (column::ATTEMPTS, "0"),
    (column::CLAIM_SEQ, "0"),
    (column::LOST_CLAIMS, "0"),
    (column::DEFERRALS, "0"),
    (column::RESENDS, "0"),
    (column::IN_DOUBT, "false"),
];

const BODY: &str = r"#variable_conflict use_column
DECLARE
    pr_id uuid := {new_id};
    pr_now timestamptz := clock_timestamp();
    pr_key text := coalesce(@dedupe_key, pr_id::text);
    pr_payload text := @payload;
    pr_what text;
    pr_text text;
    pr_json jsonb;
BEGIN
    IF coalesce(@channel, '') = '' THEN
        RAISE EXCEPTION 'the channel is empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF coalesce(@recipient_address, '') = '' THEN
        RAISE EXCEPTION 'the recipient_address is empty' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(@channel) > 255 OR @channel ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the channel holds a control character or is longer than 255 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @recipient_address ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the recipient_address holds a control character' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF strpos(@subject, chr(10)) > 0 OR strpos(@subject, chr(13)) > 0 THEN
        RAISE EXCEPTION 'the subject holds a line break' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF pr_key = '' OR octet_length(convert_to(pr_key, 'UTF8')) > 255 THEN
        RAISE EXCEPTION 'the dedupe_key is empty or longer than 255 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;{tenant_check}
    IF @at < '0001-01-01Z' OR @at >= '9999-12-30Z' OR @expires_at >= '9999-12-30Z' THEN
        RAISE EXCEPTION 'at or expires_at is no time of these millennia' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @expires_at <= greatest(@at, pr_now) THEN
        RAISE EXCEPTION 'expires_at is past, or not after at: nothing would be sent'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @max_attempts NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'max_attempts is %; it must be 1 to 1000', @max_attempts
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @priority NOT BETWEEN -2147483648 AND 2147483647 THEN
        RAISE EXCEPTION 'the priority does not fit in 32 bits' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR pr_what, pr_text IN
        SELECT pr_given.what, pr_given.given FROM (VALUES
            ('recipient_address', @recipient_address), ('recipient', @recipient), ('category', @category),
            ('locale', @locale), ('template', @template), ('ordering_key', @ordering_key),
            ('traceparent', @traceparent)
        ) AS pr_given (what, given) WHERE octet_length(pr_given.given) > 2000
    LOOP
        RAISE EXCEPTION 'the % is % bytes long; at most 2000 are allowed', pr_what, octet_length(pr_text)
            USING ERRCODE = 'invalid_parameter_value';
    END LOOP;
    IF coalesce(octet_length(@subject), 0) + coalesce(octet_length(@body), 0) + coalesce(octet_length(@html), 0)
        > 16777216 THEN
        RAISE EXCEPTION 'subject, body and html are longer than 16 MiB' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR pr_what, pr_text IN
        SELECT pr_given.what, pr_given.given
        FROM (VALUES ('cc', @cc), ('payload', @payload), ('metadata', @metadata)) AS pr_given (what, given)
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
        ELSIF pr_what = 'cc' AND @channel <> 'email' AND pr_json <> '[]' THEN
            RAISE EXCEPTION 'only e-mail can have a cc' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    IF @html IS NOT NULL THEN
        pr_payload := (coalesce(@payload, '{}')::jsonb || jsonb_build_object('html', @html))::text;
    END IF;
    FOR pr_try IN 1..3 LOOP
        INSERT INTO {table} AS pr_row (
            {columns}
        ) VALUES (
            {values}
        ) ON CONFLICT ({key}) DO NOTHING;
        IF FOUND THEN
            id := pr_id;
            created := true;
            RETURN;
        END IF;
        SELECT pr_row.{id} INTO id FROM {table} AS pr_row WHERE {same};
        IF FOUND THEN
            created := false;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'a row with the same dedupe key came and went while this one was written; try again'
        USING ERRCODE = 'serialization_failure';
END";

const TENANT_CHECK: &str = r"
    IF octet_length(convert_to(@tenant_id, 'UTF8')) > 64 OR @tenant_id ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the tenant_id holds a control character or is longer than 64 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;";

impl Ddl {
    /// What makes the function; nothing where the database has no such functions.
    pub(super) fn enqueue_statements(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => [Some(self.create_enqueue()), self.pin_enqueue()].into_iter().flatten().collect(),
            Dialect::Sqlite | Dialect::Mysql => Vec::new(),
        }
    }

    fn create_enqueue(&self) -> String {
        let parameters = self.parameters();
        let mut lines: Vec<String> = parameters
            .iter()
            .map(|Parameter { name, typed, .. }| {
                let default =
                    if matches!(name.as_str(), "channel" | "recipient_address") { "" } else { " DEFAULT NULL" };
                format!("{} {typed}{default}", self.quoted(name))
            })
            .collect();
        lines.extend(["OUT id uuid".to_owned(), "OUT created boolean".to_owned()]);
        // Nobody else's table or operator can come before those that are meant.
        let path = match self.table.schema() {
            Some(schema) => format!("\nSET search_path = pg_catalog, {}, pg_temp", self.quoted(schema)),
            None => String::new(),
        };
        format!(
            "CREATE OR REPLACE FUNCTION {}(\n    {}\n)\nLANGUAGE plpgsql VOLATILE SECURITY INVOKER{path}\n\
             AS $postrider$\n{}\n$postrider$",
            self.qualified(&self.table.enqueue_name()),
            lines.join(",\n    "),
            self.body(&parameters)
        )
    }

    /// As `SET search_path` above, where the schema is known only to the database.
    fn pin_enqueue(&self) -> Option<String> {
        if self.table.schema().is_some() {
            return None;
        }
        let (table, function) = (self.quoted(self.table.name()), self.quoted(&self.table.enqueue_name()));
        Some(format!(
            "DO $postrider$
BEGIN
    EXECUTE format('ALTER FUNCTION {function} SET search_path = pg_catalog, %I, pg_temp', (
        SELECT n.nspname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = '{table}'::regclass
    ));
END
$postrider$"
        ))
    }

    fn parameters(&self) -> Vec<Parameter> {
        let by_tenant = self.table.tenant().is_some();
        let ours =
            OURS.iter().filter(|(name, ..)| by_tenant || *name != TENANT).map(|(name, kind, column)| Parameter {
                name: (*name).to_owned(),
                typed: self.type_of(*kind),
                column: column.map(|column| self.named(column)),
            });
        let mut parameters: Vec<Parameter> = ours.collect();
        for own in &self.own {
            let taken = |name: &str| ANSWER.contains(&name) || parameters.iter().any(|it| it.name == name);
            let name = if taken(own.name) { format!("own_{}", own.name) } else { own.name.to_owned() };
            parameters.push(Parameter { name, typed: self.type_of(own.kind), column: Some(self.quoted(own.name)) });
        }
        parameters.truncate(MAX_PARAMETERS - ANSWER.len());
        parameters
    }

    fn body(&self, parameters: &[Parameter]) -> String {
        let function = self.quoted(&self.table.enqueue_name());
        let tenant = self.table.tenant().map(|tenant| self.quoted(tenant));
        let id = if self.table.id_type() == IdType::Text { "pr_id::text" } else { "pr_id" };
        let made = MADE.iter().map(|(column, value)| {
            let value = if *column == column::ID { id } else { value };
            (self.named(*column), value.to_owned())
        });
        let whose = "coalesce(@tenant_id, '')".to_owned();
        let given = parameters.iter().filter_map(|it| Some((it.column.clone()?, format!("@{}", it.name))));
        let written: Vec<(String, String)> =
            made.chain(tenant.iter().map(|tenant| (tenant.clone(), whose.clone()))).chain(given).collect();
        let (columns, values): (Vec<_>, Vec<_>) = written.into_iter().unzip();
        let key = self.named(column::DEDUPE_KEY);
        let keys: Vec<String> = tenant.iter().chain([&key]).cloned().collect();
        let same = tenant.iter().map(|tenant| format!("pr_row.{tenant} = {whose} AND "));
        let body = BODY
            .replace("{new_id}", super::columns::POSTGRES_UUID)
            .replace("{tenant_check}", if tenant.is_some() { TENANT_CHECK } else { "" })
            .replace("{table}", &self.qualified(self.table.name()))
            .replace("{columns}", &columns.join(",\n            "))
            .replace("{values}", &values.join(",\n            "))
            .replace("{key}", &keys.join(", "))
            .replace("{id}", &self.named(column::ID))
            .replace("{same}", &format!("{}pr_row.{key} = pr_key", same.collect::<String>()));
        // Longer names first: none is the beginning of another that is still to come.
        let mut names: Vec<&str> = parameters.iter().map(|it| it.name.as_str()).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names
            .iter()
            .fold(body, |body, name| body.replace(&format!("@{name}"), &format!("{function}.{}", self.quoted(name))))
    }
}

//! The function of PostgreSQL's with which any language writes a row in its own transaction.

use std::sync::Arc;

use postrider::OutboxEntity;
use postrider::model::{Clock, IdType, OutboxId, OutboxRow, OutboxStatus, TableDef, TenantId, Timestamp};
use postrider::store::schema::{create_tables, migrate};
use postrider::store::{Dialect, OutboxRepository};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use super::support::World;

async fn connection(world: &World) -> PgConnection {
    PgConnection::connect(world.test.url()).await.unwrap()
}

/// Calls the function with these arguments.
async fn call(connection: &mut PgConnection, arguments: &str) -> sqlx::Result<(Uuid, bool)> {
    call_as(connection, "postrider_enqueue", arguments).await
}

async fn call_as(connection: &mut PgConnection, function: &str, arguments: &str) -> sqlx::Result<(Uuid, bool)> {
    let sql = format!("SELECT id, created FROM {function}({arguments})");
    sqlx::query_as(AssertSqlSafe(sql)).fetch_one(connection).await
}

async fn count(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM postrider_outbox").fetch_one(connection).await.unwrap()
}

fn state_of(error: &sqlx::Error) -> String {
    error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned()).unwrap_or_default()
}

/// Contract C1.2, C1.4: due at once, its own id is its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_and_an_address_are_enough() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let (id, created) = call(&mut caller, "'email', 'alice@example.com'").await.unwrap();
    assert!(created);
    assert_eq!(id.get_version_num(), 7);
    let found = world.find(OutboxId::from(id)).await;
    let row = &found.row;
    assert_eq!((row.channel.as_str(), row.recipient_address.as_str()), ("email", "alice@example.com"));
    assert_eq!((row.recipient.as_str(), row.dedupe_key.clone()), ("alice@example.com", id.to_string()));
    assert_eq!((row.state.status, row.state.attempts, row.max_attempts), (OutboxStatus::Pending, 0, 11));
    assert_eq!((row.state.next_attempt_at, row.state.updated_at), (row.created_at, row.created_at));
    assert_eq!((&row.payload, row.subject.as_ref(), row.priority), (&None, None, 0));
    assert!(found.tenant_id.is_root());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_parameter_reaches_its_column() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let arguments = "metadata => '{\"order\": 7}', payload => '{\"reply_to\": \"x@example.com\"}', traceparent => '00-1', \
        ordering_key => 'o', template => 'welcome', locale => 'de', category => 'news', max_attempts => 3, \
        priority => -5, expires_at => '2999-01-02T00:00:00Z', at => '2999-01-01T00:00:00.123456Z', \
        tenant_id => 'acme', dedupe_key => 'k', cc => '[\"bob@example.com\"]', html => '<p>Hi</p>', body => 'Hi', \
        subject => 'Hello', recipient => 'user-17', recipient_address => 'alice@example.com', channel => 'email'";
    let (id, _) = call(&mut caller, arguments).await.unwrap();
    let found = world.find(OutboxId::from(id)).await;
    let row = found.row;
    assert_eq!(found.tenant_id.as_str(), "acme");
    assert_eq!(row.metadata, Some(serde_json::json!({ "order": 7 })));
    assert_eq!(row.payload, Some(serde_json::json!({ "reply_to": "x@example.com", "html": "<p>Hi</p>" })));
    assert_eq!((row.traceparent.as_deref(), row.ordering_key.as_deref()), (Some("00-1"), Some("o")));
    assert_eq!((row.template.as_deref(), row.locale.as_deref()), (Some("welcome"), Some("de")));
    assert_eq!((row.category.as_deref(), row.max_attempts, row.priority), (Some("news"), 3, -5));
    assert_eq!(row.expires_at, Some(Timestamp::parse("2999-01-02T00:00:00Z").unwrap()));
    assert_eq!(row.state.next_attempt_at, Timestamp::parse("2999-01-01T00:00:00.123456Z").unwrap());
    assert_eq!((row.dedupe_key.as_str(), row.cc_addresses), ("k", vec!["bob@example.com".to_owned()]));
    assert_eq!((row.body.as_deref(), row.subject.as_deref()), (Some("Hi"), Some("Hello")));
    assert_eq!((row.recipient.as_str(), row.recipient_address.as_str()), ("user-17", "alice@example.com"));
}

/// Contract C2.1.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_rolled_back_was_never_there() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let mut open = caller.begin().await.unwrap();
    call(&mut open, "'email', 'alice@example.com', dedupe_key => 'k'").await.unwrap();
    open.rollback().await.unwrap();
    assert_eq!(count(&mut caller).await, 0);
    assert!(call(&mut caller, "'email', 'alice@example.com', dedupe_key => 'k'").await.unwrap().1);
}

/// Contract C2.2, C2.3: whatever the status, and within a tenant.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_exists_in_the_tenant_writes_nothing_and_names_the_row() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let (root, _) = call(&mut caller, "'email', 'alice@example.com', dedupe_key => 'k'").await.unwrap();
    sqlx::raw_sql("UPDATE postrider_outbox SET status = 'DEAD'").execute(&mut caller).await.unwrap();
    let again = "'email', 'bob@example.com', subject => 'Another', dedupe_key => 'k'";
    assert_eq!(call(&mut caller, again).await.unwrap(), (root, false));
    // Root's own rows are those of the empty tenant, and no tenant's.
    assert_eq!(call(&mut caller, &format!("{again}, tenant_id => ''")).await.unwrap(), (root, false));
    let (acme, created) = call(&mut caller, &format!("{again}, tenant_id => 'acme'")).await.unwrap();
    assert!(created && acme != root);
    // Case and blanks at the end count.
    for other in ["K", "k ", "k\u{e9}"] {
        assert!(call(&mut caller, &format!("'email', 'a@example.com', dedupe_key => '{other}'")).await.unwrap().1);
    }
    assert_eq!(count(&mut caller).await, 5);
}

/// Contract C2.2: the loser waits, and its transaction stays usable.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_transactions_with_one_key_the_second_waits_for_the_first() {
    let Some(world) = World::postgres().await else { return };
    for commit in [true, false] {
        let mut first = connection(&world).await;
        let mut second = connection(&world).await;
        let arguments = format!("'email', 'alice@example.com', dedupe_key => 'k-{commit}'");
        let mut open = first.begin().await.unwrap();
        let (winner, _) = call(&mut open, &arguments).await.unwrap();
        let waiting = tokio::spawn(async move {
            let mut open = second.begin().await.unwrap();
            let answer = call(&mut open, &arguments).await.unwrap();
            sqlx::raw_sql("SELECT 1").execute(&mut *open).await.unwrap();
            open.commit().await.unwrap();
            answer
        });
        super::support::eventually("the second to wait", || async {
            let waits = "SELECT count(*) FROM pg_stat_activity \
                         WHERE datname = current_database() AND wait_event = 'transactionid'";
            let mut look = connection(&world).await;
            sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut look).await.unwrap() == 1
        })
        .await;
        if commit {
            open.commit().await.unwrap()
        } else {
            open.rollback().await.unwrap()
        }
        let (id, created) = waiting.await.unwrap();
        assert_eq!((id == winner, created), (commit, !commit));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_input_is_refused_and_named() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let base = "'email', 'alice@example.com'";
    let (long, name) = ("k".repeat(256), "n".repeat(2_001));
    for (arguments, said) in [
        ("NULL, 'alice@example.com'".to_owned(), "the channel is empty"),
        ("'', 'alice@example.com'".to_owned(), "the channel is empty"),
        (format!("'{long}', 'alice@example.com'"), "the channel holds"),
        ("'email', NULL".to_owned(), "the recipient_address is empty"),
        ("'email', ''".to_owned(), "the recipient_address is empty"),
        ("'email', E'a@example.com\\r\\nBcc: b@example.com'".to_owned(), "the recipient_address holds a control"),
        (format!("'email', '{name}'"), "the recipient_address is 2001 bytes long"),
        (format!("{base}, subject => E'a\\r\\nBcc: b'"), "the subject holds a line break"),
        (format!("{base}, subject => E'a\\nb'"), "the subject holds a line break"),
        (format!("{base}, dedupe_key => ''"), "the dedupe_key is empty or longer"),
        (format!("{base}, dedupe_key => '{long}'"), "the dedupe_key is empty or longer"),
        (format!("{base}, dedupe_key => repeat('\u{e9}', 128)"), "the dedupe_key is empty or longer"),
        (format!("{base}, tenant_id => repeat('t', 65)"), "the tenant_id holds"),
        (format!("{base}, tenant_id => E'a\\nb'"), "the tenant_id holds"),
        (format!("{base}, cc => 'bob@example.com'"), "the cc is no JSON"),
        (format!("{base}, cc => '\"bob@example.com\"'"), "the cc is no JSON list"),
        (format!("{base}, cc => '{{}}'"), "the cc is no JSON list"),
        (format!("{base}, cc => 'null'"), "the cc is no JSON list"),
        (format!("{base}, cc => '[1]'"), "the cc is no JSON list"),
        (format!("{base}, cc => '[\"\"]'"), "the cc is no JSON list"),
        (format!("{base}, cc => '[\"a@example.com\\r\\nX: y\"]'"), "the cc is no JSON list"),
        ("'sms', '+491', cc => '[\"a@example.com\"]'".to_owned(), "only e-mail can have a cc"),
        (format!("{base}, payload => '[]'"), "the payload is no JSON object"),
        (format!("{base}, payload => '{{'"), "the payload is no JSON"),
        (format!("{base}, metadata => '\"\\u0000\"'"), "the metadata is no JSON that can be stored"),
        (format!("{base}, recipient => '{name}'"), "the recipient is 2001 bytes long"),
        (format!("{base}, category => '{name}'"), "the category is 2001 bytes long"),
        (format!("{base}, max_attempts => 0"), "max_attempts is 0; it must be 1 to 1000"),
        (format!("{base}, max_attempts => 1001"), "max_attempts is 1001"),
        (format!("{base}, priority => 3000000000"), "the priority does not fit"),
        (format!("{base}, at => 'infinity'"), "at or expires_at is no time"),
        (format!("{base}, at => '-infinity'"), "at or expires_at is no time"),
        (format!("{base}, expires_at => 'infinity'"), "at or expires_at is no time"),
        (format!("{base}, expires_at => '2000-01-01Z'"), "expires_at is past"),
        (format!("{base}, at => '2999-01-02Z', expires_at => '2999-01-01Z'"), "expires_at is past, or not after at"),
        (format!("{base}, body => repeat('x', 16777217)"), "longer than 16 MiB"),
    ] {
        let refused = call(&mut caller, &arguments).await.unwrap_err();
        assert_eq!(state_of(&refused), "22023", "{arguments}: {refused}");
        assert!(refused.to_string().contains(said), "{said}: {refused}");
    }
    assert_eq!(count(&mut caller).await, 0);
    let longest = format!("{base}, dedupe_key => repeat('\u{e9}', 127), cc => '[]', payload => '{{}}'");
    assert!(call(&mut caller, &longest).await.unwrap().1);
    assert!(call(&mut caller, "'sms', '+491', cc => '[]'").await.unwrap().1);
}

/// An index of the application's own is no duplicate of ours.
#[tokio::test(flavor = "multi_thread")]
async fn another_unique_index_is_an_error_of_its_own() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    sqlx::raw_sql("CREATE UNIQUE INDEX ON postrider_outbox (category)").execute(&mut caller).await.unwrap();
    call(&mut caller, "'email', 'alice@example.com', category => 'c'").await.unwrap();
    let refused = call(&mut caller, "'email', 'alice@example.com', category => 'c'").await.unwrap_err();
    assert_eq!(state_of(&refused), "23505");
}

/// It finds its table wherever its caller looks first, with its caller's rights.
#[tokio::test(flavor = "multi_thread")]
async fn a_callers_search_path_leads_it_nowhere_else() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    let trap = "CREATE SCHEMA other;
                CREATE TABLE other.postrider_outbox (LIKE public.postrider_outbox INCLUDING ALL);
                CREATE TEMPORARY TABLE postrider_outbox (LIKE public.postrider_outbox INCLUDING ALL);
                CREATE FUNCTION other.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 1/0';
                SET search_path = pg_temp, other, pg_catalog";
    sqlx::raw_sql(trap).execute(&mut caller).await.unwrap();
    let (id, _) = call_as(&mut caller, "public.postrider_enqueue", "'email', 'alice@example.com'").await.unwrap();
    world.find(OutboxId::from(id)).await;
    let rights = "SELECT prosecdef FROM pg_catalog.pg_proc WHERE oid = 'public.postrider_enqueue'::regproc";
    let rights: bool = sqlx::query_scalar(rights).fetch_one(&mut caller).await.unwrap();
    assert!(!rights);
}

/// Columns of its own, one of them with the name of a parameter.
#[derive(Clone, Debug, OutboxEntity)]
#[outbox(table = "order_mail")]
struct OrderMail {
    #[outbox(row)]
    row: OutboxRow,
    order_id: i64,
    html: Option<String>,
}

/// Another table, in a schema, without tenants, with text ids and other names: `<table>_enqueue`.
#[tokio::test(flavor = "multi_thread")]
async fn another_table_has_a_function_of_its_name_with_its_own_columns() {
    let Some(world) = World::postgres().await else { return };
    let mut caller = connection(&world).await;
    sqlx::raw_sql("CREATE SCHEMA shop").execute(&mut caller).await.unwrap();
    let clock: Arc<dyn Clock> = world.clock.clone();
    let table = TableDef::new("Order_Mail").unwrap().in_schema("shop").unwrap().with_id_type(IdType::Text);
    let table = table.rename("dedupe_key", "unique_key").unwrap().rename("subject", "title").unwrap();
    migrate::<OrderMail>(&world.database, &clock, &table).await.unwrap();
    // As an application makes it: without our defaults.
    let bare = "ALTER TABLE shop.\"Order_Mail\" ALTER status DROP DEFAULT, ALTER claim_seq DROP DEFAULT, \
                ALTER in_doubt DROP DEFAULT, ALTER id DROP DEFAULT, ALTER created_at DROP DEFAULT";
    sqlx::raw_sql(bare).execute(&mut caller).await.unwrap();
    let function = "shop.\"Order_Mail_enqueue\"";
    let arguments = "'email', 'a@example.com', subject => 'Hi', html => '<p>', order_id => 7, own_html => 'mine', \
                     dedupe_key => 'k'";
    let (id, created) = call_as(&mut caller, function, arguments).await.unwrap();
    assert!(created);
    assert_eq!(call_as(&mut caller, function, arguments).await.unwrap(), (id, false));
    let rows = OutboxRepository::<OrderMail>::with_table(Arc::clone(&world.database), clock, table).unwrap().root();
    let found = rows.find_by_id(OutboxId::from(id)).await.unwrap().unwrap();
    assert_eq!((found.order_id, found.html.as_deref(), found.row.subject.as_deref()), (7, Some("mine"), Some("Hi")));
    assert_eq!(found.row.payload, Some(serde_json::json!({ "html": "<p>" })));
    assert_eq!(found.tenant(), TenantId::root());
    // Its own columns are required where its table requires them, and a tenant is no parameter.
    let refused = call_as(&mut caller, function, "'email', 'a@example.com'").await.unwrap_err();
    assert_eq!(state_of(&refused), "23502");
    let refused = call_as(&mut caller, function, "'email', 'a@example.com', tenant_id => 'acme'").await.unwrap_err();
    assert_eq!(state_of(&refused), "42883");
}

#[test]
fn the_name_follows_from_the_tables_and_other_databases_have_none() {
    let name = |table: &str| TableDef::new(table).unwrap().enqueue_name();
    assert_eq!(
        (name("postrider_outbox").as_str(), name("order_mail").as_str()),
        ("postrider_enqueue", "order_mail_enqueue")
    );
    for (dialect, has) in [(Dialect::Sqlite, false), (Dialect::Postgres, true), (Dialect::Mysql, false)] {
        let ddl = create_tables::<OrderMail>(dialect).unwrap().concat();
        assert_eq!(ddl.contains("order_mail_enqueue"), has, "{ddl}");
        assert!(!ddl.to_uppercase().contains("NOTIFY"), "{ddl}");
    }
}

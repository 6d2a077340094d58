//! Entities of the application's own: derived, with columns of every type, on every database.

use std::sync::Arc;

use postrider::model::{
    Clock, ColumnValue, Kind, OutboxId, OutboxRow, OutboxStatus, TableDef, TenantId, Timestamp, Value, column,
};
use postrider::store::{ClaimOrder, Claimed, Dialect, Inserted, OutboxRepository, Query, schema};
use postrider::{Error, ErrorKind, OutboxEntity, Result};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::support::{World, on_each, seconds};

#[path = "../../../postrider-derive/src/columns.rs"]
mod names_in_the_macro;

/// An entity with two columns of every type, one of them nullable.
macro_rules! entity {
    ($(#[$on:meta])* $name:ident { $($tenant:ident)? }) => {
        #[derive(Clone, Debug, PartialEq, OutboxEntity)]
        $(#[$on])*
        struct $name {
            #[outbox(row)]
            row: OutboxRow,
            $($tenant: TenantId,)?
            truth: bool,
            short: i16,
            int: i32,
            long: i64,
            byte: u8,
            word: u16,
            double_word: u32,
            float: f64,
            words: String,
            uuid: Uuid,
            at: Timestamp,
            jiff_at: jiff::Timestamp,
            #[outbox(column = "raw_bytes")]
            bytes: Vec<u8>,
            r#type: Json,
            whose: TenantId,
            maybe_truth: Option<bool>,
            maybe_short: Option<i16>,
            maybe_int: Option<i32>,
            maybe_long: Option<i64>,
            maybe_byte: Option<u8>,
            maybe_word: Option<u16>,
            maybe_double_word: Option<u32>,
            maybe_float: Option<f64>,
            maybe_words: Option<String>,
            maybe_uuid: Option<Uuid>,
            maybe_at: Option<Timestamp>,
            maybe_jiff_at: Option<jiff::Timestamp>,
            maybe_bytes: Option<Vec<u8>>,
            maybe_json: Option<Json>,
            maybe_whose: Option<TenantId>,
        }

        impl $name {
            fn least(row: OutboxRow $(, $tenant: TenantId)?) -> Self {
                Self {
                    row,
                    $($tenant,)?
                    truth: false,
                    short: i16::MIN,
                    int: i32::MIN,
                    long: i64::MIN,
                    byte: 0,
                    word: 0,
                    double_word: 0,
                    float: -0.0,
                    words: String::new(),
                    uuid: Uuid::nil(),
                    at: Timestamp::MIN,
                    jiff_at: Timestamp::MIN.to_jiff(),
                    bytes: Vec::new(),
                    r#type: Json::Null,
                    whose: TenantId::ROOT,
                    maybe_truth: None,
                    maybe_short: None,
                    maybe_int: None,
                    maybe_long: None,
                    maybe_byte: None,
                    maybe_word: None,
                    maybe_double_word: None,
                    maybe_float: None,
                    maybe_words: None,
                    maybe_uuid: None,
                    maybe_at: None,
                    maybe_jiff_at: None,
                    maybe_bytes: None,
                    maybe_json: None,
                    maybe_whose: None,
                }
            }

            fn most(row: OutboxRow $(, $tenant: TenantId)?) -> Self {
                let megabyte: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
                let words = "\u{1f469}\u{200d}\u{1f4bb} e\u{301} \u{ffff} \u{10ffff} '\"\\ \r\n".to_owned();
                let json = json!({ "a": [1, -2.5, null, { "\u{0}\u{ffff}": "\u{1f600}" }], "": i64::MIN, "u": u64::MAX });
                let whose = TenantId::new("\u{e4}".repeat(32)).unwrap();
                Self {
                    row,
                    $($tenant,)?
                    truth: true,
                    short: i16::MAX,
                    int: i32::MAX,
                    long: i64::MAX,
                    byte: u8::MAX,
                    word: u16::MAX,
                    double_word: u32::MAX,
                    float: f64::MAX,
                    words: words.clone(),
                    uuid: Uuid::max(),
                    at: Timestamp::MAX,
                    jiff_at: Timestamp::MAX.to_jiff(),
                    bytes: megabyte.clone(),
                    r#type: json.clone(),
                    whose: whose.clone(),
                    maybe_truth: Some(false),
                    maybe_short: Some(i16::MIN),
                    maybe_int: Some(i32::MIN),
                    maybe_long: Some(i64::MIN),
                    maybe_byte: Some(0),
                    maybe_word: Some(u16::MAX),
                    maybe_double_word: Some(u32::MAX),
                    maybe_float: Some(f64::MIN_POSITIVE),
                    maybe_words: Some(String::new()),
                    maybe_uuid: Some(Uuid::nil()),
                    maybe_at: Some(Timestamp::MIN),
                    maybe_jiff_at: Some(Timestamp::MIN.to_jiff()),
                    maybe_bytes: Some(Vec::new()),
                    maybe_json: Some(Json::Null),
                    maybe_whose: Some(TenantId::ROOT),
                }
            }
        }
    };
}

entity! {
    #[outbox(table = "order_mail", tenant = "org", rename(created_at = "created_date", updated_at = "last_modified_date"))]
    OrderMail { org }
}

entity! {
    #[outbox(table = "system_mail", rename(status = "STATUS"))]
    SystemMail {}
}

/// A type of the application's, which refuses in its own words, and panics for `bug`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rank(u8);

impl ColumnValue for Rank {
    const KIND: Kind = Kind::Text;

    fn to_value(&self) -> Value {
        format!("rank {}", self.0).into()
    }

    fn from_value(value: Value) -> Result<Self> {
        let text = String::from_value(value)?;
        assert_ne!(text, "bug");
        let number = text.strip_prefix("rank ").and_then(|number| number.parse().ok());
        number.map(Self).ok_or_else(|| Error::invalid(format!("{text:?} is no rank")))
    }
}

/// Fields and types that come out of different macros.
macro_rules! ranked {
    ($row:ty, $weight:ident: $number:ty) => {
        #[derive(Clone, Debug, PartialEq, OutboxEntity)]
        #[outbox(table = "ranked_mail")]
        struct RankedMail {
            #[outbox(row)]
            row: $row,
            #[outbox(column = "rank_text")]
            rank: Rank,
            second: Option<Rank>,
            $weight: $number,
        }
    };
}

ranked!(OutboxRow, weight: f64);

/// Makes the entity's tables by the texts that an application gets for its own migrations.
async fn repository<E: OutboxEntity>(world: &World) -> OutboxRepository<E> {
    let clock: Arc<dyn Clock> = world.clock.clone();
    for statement in schema::create_tables::<E>(world.database.dialect()).unwrap() {
        world.sql(&statement).await;
    }
    let missing = schema::missing_columns::<E>(&world.database, &clock, &E::table().unwrap()).await.unwrap();
    assert_eq!(missing, [""; 0]);
    OutboxRepository::new(Arc::clone(&world.database), clock).unwrap()
}

async fn insert<E: OutboxEntity>(world: &World, repository: &OutboxRepository<E>, entities: &[E]) -> Result<()> {
    let mut open = world.database.begin().await.unwrap();
    let written = repository.root().insert(open.connection(), entities).await?;
    let expected: Vec<_> = entities.iter().map(|entity| Inserted::Created(entity.row().id)).collect();
    assert_eq!(written, expected);
    open.commit().await
}

async fn claim_all<E: OutboxEntity>(world: &World, repository: &OutboxRepository<E>) -> Vec<Claimed<E>> {
    let (now, reclaim_at) = (world.now(), world.now().plus(seconds(60)));
    let order = ClaimOrder { now, reclaim_at, node: "n1".into(), floor: None, limit: 100 };
    repository.root().claim_due(&order).await.unwrap()
}

fn row(world: &World, recipient: &str) -> OutboxRow {
    OutboxRow::new(OutboxId::new(&*world.clock), "email", recipient, "alice@example.com", world.now())
}

/// What is stored, bit by bit: unlike the numbers themselves, their texts tell −0 from 0.
fn bits<E: OutboxEntity>(entity: &E) -> String {
    format!("{:?} {:?}", entity.tenant(), entity.own_values())
}

/// Writes, finds, claims; all of it comes back as it was given.
async fn comes_back<E: OutboxEntity + PartialEq>(world: &World, repository: &OutboxRepository<E>, entities: Vec<E>) {
    insert(world, repository, &entities).await.unwrap();
    for entity in &entities {
        let found = repository.root().find_by_id(entity.row().id).await.unwrap().unwrap();
        assert!(found == *entity && bits(&found) == bits(entity), "found otherwise than it was written");
    }
    let claimed = claim_all(world, repository).await;
    assert_eq!(claimed.len(), entities.len());
    for claimed in claimed {
        let entity = claimed.entity.unwrap();
        assert_eq!(entity.row().state.status, OutboxStatus::Sending);
        let written = entities.iter().find(|written| written.row().id == entity.row().id).unwrap();
        assert!(bits(&entity) == bits(written), "claimed otherwise than it was written");
    }
}

on_each! {
    /// Contract C1.6: own columns of every type, at the ends of their ranges, in a tenant's rows.
    async fn a_tenants_entity_comes_back_as_it_was_given(world: World) {
        let repository = repository::<OrderMail>(&world).await;
        let acme = TenantId::new("acme").unwrap();
        let entities = vec![
            OrderMail::least(row(&world, "a"), acme.clone()),
            OrderMail::most(row(&world, "b"), acme.clone()),
            OrderMail::most(row(&world, "c"), TenantId::ROOT),
        ];
        let ids: Vec<_> = entities.iter().map(|entity| entity.row.id).collect();
        comes_back(&world, &repository, entities).await;
        let scoped = repository.scoped(&acme);
        assert!(scoped.find_by_id(ids[0]).await.unwrap().is_some());
        assert!(scoped.find_by_id(ids[2]).await.unwrap().is_none());
    }

    /// Contract C1.6, C6.3: the same in an entity that has no tenants.
    async fn an_ownership_entity_comes_back_as_it_was_given(world: World) {
        let repository = repository::<SystemMail>(&world).await;
        let entities = vec![SystemMail::least(row(&world, "a")), SystemMail::most(row(&world, "b"))];
        assert_eq!(entities[0].tenant(), &TenantId::ROOT);
        comes_back(&world, &repository, entities).await;
    }

    /// Every number comes back, −0 as 0; what is none is refused, and nothing is written.
    async fn numbers_come_back_and_what_is_none_is_refused(world: World) {
        let repository = repository::<RankedMail>(&world).await;
        let ranked = |weight| RankedMail { row: row(&world, "a"), rank: Rank(7), second: None, weight };
        let numbers = [
            0.0, -0.0, 1.0, -1.0, 0.1, 1e15, 9_007_199_254_740_992.0, 1e300, f64::MIN, f64::MAX, f64::MIN_POSITIVE,
            f64::EPSILON, 5e-324,
        ];
        comes_back(&world, &repository, numbers.into_iter().map(ranked).collect()).await;

        for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = insert(&world, &repository, &[ranked(1.0), ranked(none)]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
            assert!(refused.to_string().starts_with("weight: "), "{refused}");
        }
        assert_eq!(repository.root().page(&Query::new().limit(100)).await.unwrap().rows.len(), numbers.len());
    }

    /// Contract C4.7, case C29: an own value that cannot be read is its row's failure alone.
    async fn a_broken_own_value_hurts_only_its_row(world: World) {
        let repository = repository::<OrderMail>(&world).await;
        let mail = |n: u32| OrderMail::least(row(&world, &format!("r{n}")), TenantId::ROOT);
        insert(&world, &repository, &(0..7).map(mail).collect::<Vec<_>>()).await.unwrap();
        // As another program would leave them.
        let mysql = world.database.dialect() == Dialect::Mysql;
        let type_is_broken = if mysql { "`type` = '{not json'" } else { "\"type\" = '{not json'" };
        for (n, set) in [(0, "word = 65536"), (2, "byte = -1"), (3, type_is_broken), (5, "whose = 'a\tb'")] {
            world.sql(&format!("UPDATE order_mail SET {set} WHERE recipient = 'r{n}'")).await;
        }
        let claimed = claim_all(&world, &repository).await;
        assert_eq!(claimed.len(), 7);
        let mut errors: Vec<_> = claimed.iter().filter_map(|claimed| claimed.entity.as_ref().err()).collect();
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Decode));
        errors.sort_by_key(|error| error.to_string());
        let told: Vec<_> = errors.iter().map(|error| error.to_string()).collect();
        assert_eq!(told[0], "byte: the integer -1 does not fit into u8");
        assert!(told[1].starts_with("type: no JSON"), "{}", told[1]);
        assert!(told[2].starts_with("whose: "), "{}", told[2]);
        assert_eq!(told[3], "word: the integer 65536 does not fit into u16");
        let page = repository.root().page(&Query::new().limit(100)).await.unwrap();
        assert_eq!((page.rows.len(), page.unreadable.len()), (3, 4));
    }

    /// The same for a type of the application's own, whatever its error is called, and if it panics.
    async fn a_type_of_the_applications_own_fails_its_row_alone(world: World) {
        let repository = repository::<RankedMail>(&world).await;
        let mail = |n: u8| RankedMail { row: row(&world, &format!("r{n}")), rank: Rank(n), second: None, weight: 1.0 };
        insert(&world, &repository, &(0..3).map(mail).collect::<Vec<_>>()).await.unwrap();
        world.sql("UPDATE ranked_mail SET second = 'first' WHERE recipient = 'r0'").await;
        world.sql("UPDATE ranked_mail SET rank_text = 'bug' WHERE recipient = 'r1'").await;
        let claimed = claim_all(&world, &repository).await;
        let mut told: Vec<_> = claimed.iter().map(|claimed| match &claimed.entity {
            Ok(mail) => format!("{:?}", mail.rank),
            Err(error) => format!("{:?} {error}", error.kind()),
        }).collect();
        told.sort();
        assert_eq!(told, [
            "Decode second: \"first\" is no rank",
            "Decode the entity panicked when it was put together",
            "Rank(2)",
        ]);
    }
}

#[test]
fn the_macro_knows_the_names_of_our_columns() {
    let ours: Vec<_> = column::ALL.iter().map(|column| column.name).collect();
    assert_eq!(names_in_the_macro::COLUMNS, ours);
}

#[test]
fn the_derived_table_is_the_one_that_was_described() {
    let table = TableDef::new("order_mail").unwrap().rename("created_at", "created_date").unwrap();
    let table = table.rename("updated_at", "last_modified_date").unwrap().with_tenant("org").unwrap();
    assert_eq!(OrderMail::table().unwrap(), table);
    let own = RankedMail::own_columns().iter().map(|own| (own.name, own.kind, own.nullable));
    let expected = [("rank_text", Kind::Text, false), ("second", Kind::Text, true), ("weight", Kind::Float, false)];
    assert_eq!(own.collect::<Vec<_>>(), expected);
}

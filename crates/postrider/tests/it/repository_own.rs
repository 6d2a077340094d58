//! An application's own entity with a tenant and columns of every kind, on a test's database.

use std::sync::Arc;

use postrider::Result;
use postrider::model::{
    ByTenant, Clock, Kind, OutboxEntity, OutboxId, OutboxRow, OwnColumn, TableDef, TenantId, Timestamp, Value,
};
use postrider::store::database::{Extent, write};
use postrider::store::{Connection, OutboxRepository, Query, Root, Rows, Saved, schema};
use uuid::Uuid;

use super::support::World;

/// A mail about an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderMail {
    pub(crate) row: OutboxRow,
    pub(crate) shop: TenantId,
    pub(crate) order_id: Option<Uuid>,
    pub(crate) score: Option<i64>,
    pub(crate) note: Option<String>,
    pub(crate) urgent: bool,
    pub(crate) seen_at: Option<Timestamp>,
    pub(crate) weight: Option<f64>,
    pub(crate) raw: Option<Vec<u8>>,
}

const fn own(name: &'static str, kind: Kind, nullable: bool) -> OwnColumn {
    OwnColumn { name, kind, nullable }
}

impl OutboxEntity for OrderMail {
    type Tenancy = ByTenant;

    fn table() -> Result<TableDef> {
        TableDef::new("order_mail")?.with_tenant("shop")?.rename("created_at", "created_date")
    }

    fn own_columns() -> &'static [OwnColumn] {
        const {
            &[
                own("order_id", Kind::Uuid, true),
                own("score", Kind::Int, true),
                own("note", Kind::Text, true),
                own("urgent", Kind::Bool, false),
                own("seen_at", Kind::Time, true),
                own("weight", Kind::Float, true),
                own("raw", Kind::Bytes, true),
            ]
        }
    }

    fn row(&self) -> &OutboxRow {
        &self.row
    }

    fn tenant(&self) -> &TenantId {
        &self.shop
    }

    fn own_values(&self) -> Vec<Value> {
        let Self { order_id, score, note, urgent, seen_at, weight, raw, .. } = self;
        vec![
            (*order_id).into(),
            (*score).into(),
            note.clone().into(),
            (*urgent).into(),
            (*seen_at).into(),
            (*weight).into(),
            raw.clone().into(),
        ]
    }

    fn assemble(row: OutboxRow, shop: TenantId, own: Vec<Value>) -> Result<Self> {
        let [order_id, score, note, urgent, seen_at, weight, raw]: [Value; 7] = own.try_into().unwrap();
        Ok(Self {
            row,
            shop,
            order_id: order_id.try_into()?,
            score: score.try_into()?,
            note: note.try_into()?,
            urgent: urgent.try_into()?,
            seen_at: seen_at.try_into()?,
            weight: weight.try_into()?,
            raw: raw.try_into()?,
        })
    }
}

/// The order mails of a test.
pub(crate) struct Shop<'w> {
    pub(crate) world: &'w World,
    pub(crate) repository: OutboxRepository<OrderMail>,
}

impl<'w> Shop<'w> {
    pub(crate) async fn on(world: &'w World) -> Self {
        Self::in_table(world, OrderMail::table().unwrap()).await
    }

    pub(crate) async fn in_table(world: &'w World, table: TableDef) -> Self {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let database = Arc::clone(&world.database);
        let repository = OutboxRepository::with_table(database, Arc::clone(&clock), table).unwrap();
        schema::migrate::<OrderMail>(&world.database, &clock, repository.table()).await.unwrap();
        Self { world, repository }
    }

    pub(crate) fn rows(&self) -> Rows<OrderMail, Root> {
        self.repository.root()
    }

    /// A row of a tenant, not written yet; the empty name is root's.
    pub(crate) fn draft(&self, shop: &str) -> OrderMail {
        let id = OutboxId::new(&*self.world.clock);
        OrderMail {
            row: OutboxRow::new(id, "email", "alice", "alice@example.com", self.world.now()),
            shop: if shop.is_empty() { TenantId::ROOT } else { tenant(shop) },
            order_id: None,
            score: None,
            note: None,
            urgent: false,
            seen_at: None,
            weight: None,
            raw: None,
        }
    }

    /// Saves rows in a transaction of their own, as root.
    pub(crate) async fn save(&self, entities: &[OrderMail]) -> Vec<Saved> {
        self.try_save(&self.rows(), entities).await.unwrap()
    }

    pub(crate) async fn try_save<S: Send + 'static>(
        &self,
        rows: &Rows<OrderMail, S>,
        entities: &[OrderMail],
    ) -> Result<Vec<Saved>> {
        let clock: Arc<dyn Clock> = self.world.clock.clone();
        let work = Arc::new((rows.clone(), entities.to_vec()));
        write(&self.world.database, &clock, Extent::Transaction, move |connection: &mut dyn Connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.0.save_all(connection, &work.1).await })
        })
        .await
    }

    /// Writes one row that a closure makes out of a draft of root's.
    pub(crate) async fn made(&self, make: impl FnOnce(&mut OrderMail)) -> OrderMail {
        let mut draft = self.draft("");
        make(&mut draft);
        assert_eq!(self.save(&[draft.clone()]).await, [Saved::Created(draft.row.id)]);
        draft
    }

    /// Which of the rows the query selects, by their recipients, in order.
    pub(crate) async fn names(&self, query: Query) -> Vec<String> {
        self.rows().find_by(&query).await.unwrap().into_iter().map(|mail| mail.row.recipient).collect()
    }
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

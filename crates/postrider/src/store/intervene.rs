//! What people and policies do to rows that nobody is delivering: requeue, cancel, expedite,
//! postpone. Each is one conditional UPDATE; from SENDING each is a Conflict.
//!
//! Source: contract C3, C3.5.

use std::sync::Arc;

use super::database::{Extent, write};
use super::history::{self, HistoryEvent, HistoryLine};
use super::statements::Statement;
use super::{Claim, Connection, Root, Rows};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::storable_error;
use crate::model::transition::{Event, Verdict, verdict};
use crate::model::{Kind, OutboxEntity, OutboxId, OutboxStatus, Timestamp, Value};

/// What a requeue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// The row is PENDING again, with its whole budget.
    Reset,
    /// It was PENDING; nothing changed.
    AlreadyPending,
}

/// What a requeue makes of the instant after which a row is not sent any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// It stays. If it has passed, the row ends SUPPRESSED, `expired`, once more.
    #[default]
    Keep,
    /// The row never expires.
    Never,
    /// Another instant.
    At(Timestamp),
}

/// What a cancel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// The row will not be sent.
    Cancelled,
    /// Its To address had accepted it in this send: it ends SENT, `partial`, and no copy more goes
    /// out. Source: contract C3.6.
    AlreadyDelivered,
    /// It was final already; nothing changed.
    AlreadyFinal(OutboxStatus),
}

impl<E: OutboxEntity, S: Send + 'static> Rows<E, S> {
    /// Sends a row again: PENDING, due at `at`, no attempts used. From SENT it is a new send.
    ///
    /// What the row was goes into its history first, with `actor`. Source: contract C3, C3.5.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if it is SENDING, overdue or not; [`ErrorKind::NotFound`].
    ///
    /// # Cancel safety
    /// Safe: the change is made or not made as a whole.
    pub async fn requeue(&self, id: OutboxId, at: Timestamp, actor: &str) -> Result<Requeue> {
        self.requeue_expiring(id, at, Expiry::Keep, actor).await
    }

    /// As [`Self::requeue`], and decides when the row expires. A row that was PENDING keeps what it
    /// has. Source: contract C3.5.
    ///
    /// # Errors
    /// As [`Self::requeue`].
    ///
    /// # Cancel safety
    /// Safe: the change is made or not made as a whole.
    pub async fn requeue_expiring(&self, id: OutboxId, at: Timestamp, expiry: Expiry, actor: &str) -> Result<Requeue> {
        let (replaces, expires_at) = match expiry {
            Expiry::Keep => (false, None),
            Expiry::Never => (true, None),
            Expiry::At(at) => (true, Some(at)),
        };
        let ids = self.ids_batch(&[id]);
        let (actor, now) = (storable_error(actor), self.shared.clock.now());
        let shared = Arc::clone(&self.shared);
        let tenant = self.tenant_value();
        let changed = write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let (shared, ids, tenant, actor) = (Arc::clone(&shared), ids.clone(), tenant.clone(), actor.clone());
            Box::pin(async move {
                let history = [ids.clone(), tenant.clone(), now.into(), actor.into()];
                let kept = shared.statements.requeue_history.execute(connection, &history).await?;
                let values = [ids, tenant, at.into(), now.into(), replaces.into(), expires_at.into()];
                let reset = shared.statements.requeue.fetch(connection, &values, &[Kind::Uuid]).await?;
                let reset = u64::try_from(reset.len()).unwrap_or(u64::MAX);
                // Somebody changed the row between the two statements: undo both, look again.
                if kept != reset {
                    return Err(Error::new(ErrorKind::Transient, "the row changed while it was requeued"));
                }
                Ok(reset)
            })
        })
        .await?;
        if changed > 0 {
            return Ok(Requeue::Reset);
        }
        self.explain(id, Event::Requeue).await.map(|_| Requeue::AlreadyPending)
    }

    /// Stops a row that is not sent yet: SUPPRESSED, `cancelled`.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if it is SENDING; [`ErrorKind::NotFound`].
    ///
    /// # Cancel safety
    /// Safe: the change is made or not made as a whole.
    pub async fn cancel(&self, id: OutboxId, at: Timestamp, actor: &str) -> Result<Cancel> {
        let ids = self.ids_batch(&[id]);
        let actor = storable_error(actor);
        let shared = Arc::clone(&self.shared);
        let tenant = self.tenant_value();
        let changed = write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let (shared, actor) = (Arc::clone(&shared), actor.clone());
            let reason = format!("cancelled by {actor}");
            let values = [ids.clone(), tenant.clone(), at.into(), reason.clone().into()];
            Box::pin(async move {
                let kinds = [Kind::Uuid, Kind::Int, Kind::Text];
                let changed = shared.statements.cancel.fetch(connection, &values, &kinds).await?;
                let Some(row) = changed.into_iter().next() else { return Ok(None) };
                let [_, seq, status]: [Value; 3] =
                    row.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a cancelled row has other columns"))?;
                let status: OutboxStatus = String::try_from(status)?.parse()?;
                let claim = Claim { id, seq: seq.try_into()? };
                let mut line = HistoryLine::new(claim, HistoryEvent::Cancel, at, status);
                (line.actor, line.error) = (Some(actor), Some(reason));
                history::write(connection, &shared, &[line]).await?;
                Ok(Some(status))
            })
        })
        .await?;
        match changed {
            Some(OutboxStatus::Sent) => return Ok(Cancel::AlreadyDelivered),
            Some(_) => return Ok(Cancel::Cancelled),
            None => {}
        }
        self.explain(id, Event::Cancel).await.map(Cancel::AlreadyFinal)
    }

    /// Makes a waiting row due now.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if it is SENDING, [`ErrorKind::WrongStatus`] if it is final;
    /// [`ErrorKind::NotFound`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn expedite(&self, id: OutboxId, now: Timestamp) -> Result<()> {
        let values = [self.ids_batch(&[id]), self.tenant_value(), now.into()];
        let shared = Arc::clone(&self.shared);
        let changed = write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection| {
            let (shared, values) = (Arc::clone(&shared), values.clone());
            Box::pin(async move { shared.statements.expedite.fetch(connection, &values, &[Kind::Uuid]).await })
        })
        .await?;
        if changed.is_empty() { self.explain(id, Event::Expedite).await.map(drop) } else { Ok(()) }
    }

    /// Why an event changed nothing: the status if that is in order, a typed error if not.
    async fn explain(&self, id: OutboxId, event: Event) -> Result<OutboxStatus> {
        let status = self.status_of(id).await?;
        match verdict(status, event) {
            Verdict::Nothing => Ok(status),
            Verdict::Conflict => Err(Error::new(
                ErrorKind::Conflict,
                format!("the row {id} is being delivered (SENDING); try again once it is settled"),
            )),
            Verdict::Refused => {
                Err(Error::new(ErrorKind::WrongStatus, format!("the row {id} is {status}, which is final; requeue it")))
            }
            Verdict::To(_) => {
                Err(Error::new(ErrorKind::Transient, format!("the row {id} changed at the same moment; try again")))
            }
        }
    }
}

impl<E: OutboxEntity> Rows<E, Root> {
    /// Moves up to `limit` due rows of a channel on to `until`, unclaimed; returns how many.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn postpone(
        &self,
        channel: &str,
        now: Timestamp,
        until: Timestamp,
        reason_code: &str,
        limit: usize,
    ) -> Result<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = vec![channel.into(), now.into(), until.into(), reason_code.into(), limit.into()];
        self.run(&self.shared.statements.postpone, values).await
    }

    /// Makes up to `limit` rows of a channel that were moved on for this reason due again;
    /// returns how many.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn resume(&self, channel: &str, now: Timestamp, reason_code: &str, limit: usize) -> Result<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = vec![channel.into(), now.into(), reason_code.into(), limit.into()];
        self.run(&self.shared.statements.resume, values).await
    }

    async fn run(&self, statement: &Statement, values: Vec<Value>) -> Result<u64> {
        let work = Arc::new((statement.clone(), values));
        write(&self.shared.database, &self.shared.clock, Extent::Transaction, move |connection: &mut dyn Connection| {
            let work = Arc::clone(&work);
            Box::pin(async move { work.0.execute(connection, &work.1).await })
        })
        .await
    }
}

//! Writing how attempts ended: fenced, in batches, with their history.
//!
//! Source: contract C3, C4.4, C4.7.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::database::{Extent, write};
use super::history::{self, HistoryEvent, HistoryLine};
use super::statements::SETTLE_BATCH;
use super::{Claim, Connection, Dialect, Root, Rows, Shared, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::storable_error;
use crate::model::transition::{Event, Verdict, verdict};
use crate::model::{Blame, Kind, Ledger, OutboxEntity, OutboxId, OutboxStatus, Timestamp, Value};

/// How one claimed row is to be settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The claim under which it was tried.
    pub claim: Claim,
    /// When it ended, UTC.
    pub at: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// The answer per address, if there was one.
    pub ledger: Option<Ledger>,
    /// When the attempt began, for the history.
    pub started_at: Option<Timestamp>,
    /// The node, for the history.
    pub node: Option<String>,
    /// Who is to blame, for the history.
    pub blame: Option<Blame>,
    /// Claims lost in a row before this one, for the history.
    pub losses: i32,
}

/// How an attempt ended, as the store writes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// SENT.
    Sent {
        /// The vendor that took it.
        provider: Option<String>,
        /// The vendor's id of the message.
        provider_message_id: Option<String>,
        /// `partial` if an address was left out.
        reason_code: Option<String>,
    },
    /// FAILED, or DEAD with the last attempt.
    Failure {
        /// What was said.
        error: String,
        /// When to try again.
        next: Timestamp,
        /// Why, for programs.
        reason_code: Option<String>,
        /// The peer may have taken it.
        in_doubt: bool,
    },
    /// DEAD: it can never succeed, its destination is gone, or it is held.
    Dead {
        /// What was said.
        error: String,
        /// Why, for programs: `rejected`, `gone`, `held`.
        reason_code: String,
        /// The peer may have taken it.
        in_doubt: bool,
    },
    /// SUPPRESSED, without using an attempt.
    Suppressed {
        /// Why, for people.
        reason: String,
        /// Why, for programs.
        reason_code: String,
    },
    /// Put off without using an attempt.
    Deferred {
        /// When to try again.
        until: Timestamp,
        /// Why, for programs.
        reason_code: String,
        /// What was said; kept on the row only if it is given up.
        error: String,
        /// What it means for the run of deferrals.
        run: Run,
    },
    /// Given back, due now.
    Released,
}

/// What a deferral means for the unbroken run of them that ends DEAD after 72 h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Run {
    /// A failure caused it: the run begins or goes on; over `limit`, the row is DEAD.
    Failure {
        /// The longest that a run may last.
        limit: Duration,
    },
    /// A limit of one's own: it does not count.
    OwnLimit,
    /// A pause or a quiet hour: it breaks the run.
    Pause,
}

/// What became of a settlement.
#[derive(Debug)]
pub struct Settled {
    /// The claim under which the row was tried.
    pub claim: Claim,
    /// The row's status and attempts now; `None` if the claim was lost and nothing changed; an
    /// error if the database refused this row for good.
    pub now: Result<Option<(OutboxStatus, i32)>>,
}

/// The statement that an ending goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Sent,
    Failure,
    Dead,
    Suppressed,
    Deferred,
    Released,
}

impl Text {
    const ALL: [Self; 6] = [Self::Sent, Self::Failure, Self::Dead, Self::Suppressed, Self::Deferred, Self::Released];

    fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Sent { .. } => Self::Sent,
            Ending::Failure { .. } => Self::Failure,
            Ending::Dead { .. } => Self::Dead,
            Ending::Suppressed { .. } => Self::Suppressed,
            Ending::Deferred { .. } => Self::Deferred,
            Ending::Released => Self::Released,
        }
    }

    fn statement(self, shared: &Shared) -> &str {
        let statements = &shared.statements;
        match self {
            Self::Sent => &statements.mark_sent,
            Self::Failure => &statements.record_failure,
            Self::Dead => &statements.finish_dead,
            Self::Suppressed => &statements.finish_suppressed,
            Self::Deferred => &statements.defer,
            Self::Released => &statements.release,
        }
    }
}

impl<E: OutboxEntity> Rows<E, Root> {
    /// Writes how attempts ended, each fenced by its claim; one answer per settlement, in the
    /// order of their ids.
    ///
    /// One transaction for all. If the database refuses the batch for good, each row is settled
    /// by itself, so that one bad row blocks no other. Source: contract C4.7.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if nothing is known to be written: settle all of them again. A
    /// settlement whose commit was unknown then answers that its claim is lost.
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>> {
        let mut settlements = settlements.to_vec();
        settlements.sort_by_key(|settlement| settlement.claim.id);
        let settlements = Arc::new(settlements);
        match self.settle_together(Arc::clone(&settlements)).await {
            Err(error) if !error.is_transient() => {
                let mut all = Vec::with_capacity(settlements.len());
                for settlement in settlements.iter() {
                    match self.settle_together(Arc::new(vec![settlement.clone()])).await {
                        Ok(settled) => all.extend(settled),
                        Err(error) => all.push(Settled { claim: settlement.claim, now: Err(error) }),
                    }
                }
                Ok(all)
            }
            answer => answer,
        }
    }

    async fn settle_together(&self, settlements: Arc<Vec<Settlement>>) -> Result<Vec<Settled>> {
        let shared = Arc::clone(&self.shared);
        let one = settlements.windows(2).all(|pair| Text::of(&pair[0].ending) == Text::of(&pair[1].ending));
        let one_statement = one && !settlements.iter().any(needs_history);
        let extent = if one_statement { Extent::Statement } else { Extent::Transaction };
        write(&self.shared.database, &self.shared.clock, extent, move |connection| {
            let (shared, settlements) = (Arc::clone(&shared), Arc::clone(&settlements));
            Box::pin(async move { write_all(connection, &shared, &settlements).await })
        })
        .await
    }

    /// Settles one row as SENT.
    ///
    /// # Errors
    /// [`ErrorKind::ClaimLost`] or [`ErrorKind::WrongStatus`]: nothing changed.
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn mark_sent(&self, claim: Claim, at: Timestamp) -> Result<()> {
        let ending = Ending::Sent { provider: None, provider_message_id: None, reason_code: None };
        self.settle_one(Settlement::new(claim, at, ending), Event::MarkSent).await.map(drop)
    }

    /// Settles one row as SUPPRESSED, for this reason.
    ///
    /// # Errors
    /// As [`Self::mark_sent`].
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn mark_suppressed(&self, claim: Claim, at: Timestamp, reason: &str) -> Result<()> {
        let ending = Ending::Suppressed { reason: reason.to_owned(), reason_code: "policy".to_owned() };
        self.settle_one(Settlement::new(claim, at, ending), Event::MarkSuppressed).await.map(drop)
    }

    /// Records a failure; FAILED and due again at `next`, or DEAD with the last attempt.
    ///
    /// # Errors
    /// As [`Self::mark_sent`].
    ///
    /// # Cancel safety
    /// Safe: the writing goes on.
    pub async fn record_failure(
        &self,
        claim: Claim,
        at: Timestamp,
        error: &str,
        next: Timestamp,
    ) -> Result<OutboxStatus> {
        let ending = Ending::Failure { error: error.to_owned(), next, reason_code: None, in_doubt: false };
        self.settle_one(Settlement::new(claim, at, ending), Event::RecordFailure).await
    }

    async fn settle_one(&self, settlement: Settlement, event: Event) -> Result<OutboxStatus> {
        let id = settlement.claim.id;
        let settled = self.settle(&[settlement]).await?.pop().map_or(Ok(None), |settled| settled.now)?;
        match settled {
            Some((status, _)) => Ok(status),
            None => Err(self.refusal(id, event).await?),
        }
    }

    /// Why an event changed nothing.
    async fn refusal(&self, id: OutboxId, event: Event) -> Result<Error> {
        let status = self.status_of(id).await?;
        Ok(match verdict(status, event) {
            Verdict::Refused => Error::new(ErrorKind::WrongStatus, format!("the row {id} is {status}, not SENDING")),
            _ => Error::new(ErrorKind::ClaimLost, format!("the claim of row {id} was lost to a newer one")),
        })
    }

    /// Keeps these claims until `reclaim_at`; returns those that are lost.
    ///
    /// # Errors
    /// What the database says; the claims may or may not have been kept.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn renew(&self, claims: &[Claim], now: Timestamp, reclaim_at: Timestamp) -> Result<Vec<Claim>> {
        let mut claims = claims.to_vec();
        claims.sort_by_key(|claim| claim.id);
        let dialect = self.shared.database.dialect();
        let rows: Vec<_> = claims
            .iter()
            .map(|claim| {
                serde_json::json!({
                    "row_id": dialect.json(&claim.id.as_uuid().into()),
                    "seq": claim.seq,
                    "at": dialect.json(&now.into()),
                    "next": dialect.json(&reclaim_at.into()),
                })
            })
            .collect();
        let batch: Value = codec::json_text(&rows)?.into();
        let shared = Arc::clone(&self.shared);
        let kept = write(&self.shared.database, &self.shared.clock, Extent::Statement, move |connection| {
            let (shared, batch) = (Arc::clone(&shared), batch.clone());
            Box::pin(async move { connection.fetch(&shared.statements.renew, &[batch], &SETTLED[..2]).await })
        })
        .await?;
        let kept: HashSet<Claim> = kept.into_iter().map(claim_of).collect::<Result<_>>()?;
        claims.retain(|claim| !kept.contains(claim));
        Ok(claims)
    }
}

impl Settlement {
    /// A settlement with nothing for the history but the ending.
    #[must_use]
    pub fn new(claim: Claim, at: Timestamp, ending: Ending) -> Self {
        Self { claim, at, ending, ledger: None, started_at: None, node: None, blame: None, losses: 0 }
    }

    /// The event of the state machine that this is.
    fn history_event(&self) -> HistoryEvent {
        match &self.ending {
            Ending::Sent { .. } => HistoryEvent::Sent,
            Ending::Failure { in_doubt: true, .. } | Ending::Dead { in_doubt: true, .. } => HistoryEvent::InDoubt,
            Ending::Failure { .. } => HistoryEvent::Failure,
            Ending::Dead { reason_code, .. } if reason_code == "gone" => HistoryEvent::Gone,
            Ending::Dead { .. } => HistoryEvent::Reject,
            Ending::Suppressed { .. } => HistoryEvent::Suppress,
            Ending::Deferred { .. } | Ending::Released => HistoryEvent::Defer,
        }
    }
}

fn claim_of(values: Vec<Value>) -> Result<Claim> {
    let [id, seq]: [Value; 2] =
        values.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a renewed claim has other columns"))?;
    Ok(Claim { id: OutboxId::from(uuid::Uuid::try_from(id)?), seq: seq.try_into()? })
}

/// A plain success stands on the row, and giving a claim back tells nothing.
fn needs_history(settlement: &Settlement) -> bool {
    settlement.losses > 0 || !matches!(settlement.ending, Ending::Sent { .. } | Ending::Released)
}

/// What every settling returns: the claim, then where the row stands.
const SETTLED: [Kind; 4] = [Kind::Uuid, Kind::Int, Kind::Text, Kind::Int];

async fn write_all(
    connection: &mut dyn Connection,
    shared: &Shared,
    settlements: &[Settlement],
) -> Result<Vec<Settled>> {
    let mut now = HashMap::with_capacity(settlements.len());
    for text in Text::ALL {
        let rows: Vec<_> = settlements
            .iter()
            .filter(|settlement| Text::of(&settlement.ending) == text)
            .map(|settlement| batch_row(connection.dialect(), settlement))
            .collect::<Result<_>>()?;
        if rows.is_empty() {
            continue;
        }
        let values = [codec::json_text(&rows)?.into()];
        let fetched = connection.fetch(text.statement(shared), &values, &SETTLED).await?;
        for mut values in fetched {
            let standing = values.split_off(2);
            let [status, attempts]: [Value; 2] =
                standing.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a settled row has other columns"))?;
            now.insert(claim_of(values)?, (String::try_from(status)?.parse::<OutboxStatus>()?, attempts.try_into()?));
        }
    }
    let lines: Vec<_> = settlements
        .iter()
        .filter_map(|settlement| now.get(&settlement.claim).map(|(status, _)| lines(settlement, *status)))
        .flatten()
        .collect();
    history::write(connection, shared, &lines).await?;
    Ok(settlements.iter().map(|s| Settled { claim: s.claim, now: Ok(now.get(&s.claim).copied()) }).collect())
}

/// The lines of one settlement: the claims lost before it, then itself.
fn lines(settlement: &Settlement, status: OutboxStatus) -> Vec<HistoryLine> {
    let claim = settlement.claim;
    let mut lines: Vec<_> = (1..=i64::from(settlement.losses))
        .rev()
        .map(|back| {
            let lost = Claim { id: claim.id, seq: claim.seq - back };
            HistoryLine::new(lost, HistoryEvent::Lost, settlement.at, OutboxStatus::Sending)
        })
        .collect();
    if matches!(settlement.ending, Ending::Sent { .. } | Ending::Released) {
        return lines;
    }
    let mut line = HistoryLine::new(claim, settlement.history_event(), settlement.at, status);
    line.started_at = settlement.started_at;
    line.node.clone_from(&settlement.node);
    line.blame = settlement.blame.and_then(|blame| serde_json::to_value(blame).ok()?.as_str().map(str::to_owned));
    line.recipients = settlement.ledger.as_ref().and_then(|ledger| codec::json_text(ledger).ok());
    let (error, code) = match &settlement.ending {
        Ending::Failure { error, reason_code, .. } => (Some(error), reason_code.as_ref()),
        Ending::Dead { error, reason_code, .. } | Ending::Deferred { error, reason_code, .. } => {
            (Some(error), Some(reason_code))
        }
        Ending::Suppressed { reason, reason_code } => (Some(reason), Some(reason_code)),
        Ending::Sent { .. } | Ending::Released => (None, None),
    };
    line.error = error.map(|error| storable_error(error));
    line.reason_code = code.map(|code| storable_error(code));
    lines.push(line);
    lines
}

/// One settlement as the batch wants it; every text is made storable here.
fn batch_row(dialect: Dialect, settlement: &Settlement) -> Result<serde_json::Value> {
    let text = |text: Option<&String>| text.map(|text| storable_error(text));
    let (mut next, mut error, mut code, mut provider, mut message) = (None, None, None, None, None);
    let (mut doubt, mut run, mut run_limit) = (false, None, None);
    match &settlement.ending {
        Ending::Sent { provider: vendor, provider_message_id, reason_code } => {
            (provider, message, code) =
                (text(vendor.as_ref()), text(provider_message_id.as_ref()), reason_code.clone());
        }
        Ending::Failure { error: said, next: at, reason_code, in_doubt } => {
            (error, next, code, doubt) = (text(Some(said)), Some(*at), reason_code.clone(), *in_doubt);
        }
        Ending::Dead { error: said, reason_code, in_doubt } => {
            (error, code, doubt) = (text(Some(said)), Some(reason_code.clone()), *in_doubt);
        }
        Ending::Suppressed { reason, reason_code } => {
            (error, code) = (text(Some(reason)), Some(reason_code.clone()));
        }
        Ending::Deferred { until, reason_code, error: said, run: what } => {
            (error, next, code) = (text(Some(said)), Some(*until), Some(reason_code.clone()));
            (run, run_limit) = match what {
                Run::Failure { limit } => (Some("failure"), Some(settlement.at.minus(*limit))),
                Run::OwnLimit => (Some("limit"), None),
                Run::Pause => (Some("pause"), None),
            };
        }
        Ending::Released => {}
    }
    let ledger = settlement.ledger.as_ref().map(codec::json_text).transpose()?;
    let accepted = settlement.ledger.as_ref().and_then(Ledger::to_accepted_at);
    let values: [Value; 13] = [
        settlement.claim.id.as_uuid().into(),
        settlement.claim.seq.into(),
        settlement.at.into(),
        next.into(),
        error.into(),
        code.map(|code| storable_error(&code)).into(),
        provider.into(),
        message.into(),
        ledger.into(),
        accepted.into(),
        doubt.into(),
        run.map(str::to_owned).into(),
        run_limit.into(),
    ];
    let named = SETTLE_BATCH.iter().zip(&values).map(|((name, _), value)| ((*name).to_owned(), dialect.json(value)));
    Ok(serde_json::Value::Object(named.collect()))
}

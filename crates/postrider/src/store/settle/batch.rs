//! One settling of many rows: a statement per kind of ending, then the history of all.

use std::collections::HashMap;

use super::{Ending, Run, Settled, Settlement};
use crate::error::{Error, ErrorKind, Result};
use crate::model::text::storable_error;
use crate::model::{Kind, Ledger, OutboxId, OutboxStatus, Timestamp, Value};
use crate::store::history::{self, HistoryLine};
use crate::store::statements::{Batches, Change, SETTLE_BATCH};
use crate::store::{Claim, Connection, Shared, codec};

/// The statement that an ending goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Sent,
    Failure,
    Dead,
    Suppressed,
    Deferred,
    Released,
}

impl Text {
    const ALL: [Self; 6] = [Self::Sent, Self::Failure, Self::Dead, Self::Suppressed, Self::Deferred, Self::Released];

    pub(super) fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Sent { .. } => Self::Sent,
            Ending::Failure { .. } => Self::Failure,
            Ending::Dead { .. } => Self::Dead,
            Ending::Suppressed { .. } => Self::Suppressed,
            Ending::Deferred { .. } => Self::Deferred,
            Ending::Released => Self::Released,
        }
    }

    fn change(self, shared: &Shared) -> &Change {
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
pub(super) fn claim_of(values: Vec<Value>) -> Result<Claim> {
    let [id, seq]: [Value; 2] =
        values.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a renewed claim has other columns"))?;
    Ok(Claim { id: OutboxId::from(uuid::Uuid::try_from(id)?), seq: seq.try_into()? })
}
/// A plain success stands on the row, and giving a claim back tells nothing.
pub(super) fn needs_history(settlement: &Settlement) -> bool {
    settlement.losses > 0 || !matches!(settlement.ending, Ending::Sent { .. } | Ending::Released)
}

/// What every settling returns: the claim, then where the row stands.
pub(super) const SETTLED: [Kind; 4] = [Kind::Uuid, Kind::Int, Kind::Text, Kind::Int];

pub(super) async fn write_all(
    connection: &mut dyn Connection,
    shared: &Shared,
    settlements: &[Settlement],
) -> Result<Vec<Settled>> {
    let mut now = HashMap::with_capacity(settlements.len());
    for text in Text::ALL {
        let rows: Vec<_> = settlements
            .iter()
            .filter(|settlement| Text::of(&settlement.ending) == text)
            .map(|settlement| batch_row(shared.statements.batches, settlement))
            .collect::<Result<_>>()?;
        if rows.is_empty() {
            continue;
        }
        let values = [codec::json_text(&rows)?.into()];
        let fetched = text.change(shared).fetch(connection, &values, &SETTLED).await?;
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
    let mut lines = history::lost(claim, settlement.losses.into(), settlement.at);
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
fn batch_row(batches: Batches, settlement: &Settlement) -> Result<serde_json::Value> {
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
    Ok(batches.row(SETTLE_BATCH, &values))
}

/// One renewal as the batch wants it.
pub(super) fn renewal(batches: Batches, claim: Claim, now: Timestamp, reclaim_at: Timestamp) -> serde_json::Value {
    let values = [claim.id.as_uuid().into(), claim.seq.into(), now.into(), reclaim_at.into()];
    batches.row(SETTLE_BATCH, &values)
}

//! The history of a row: what happened to it beside a plain success, append only.
//!
//! Written in the transaction of the event that it tells of.

use serde::{Deserialize, Serialize};

use super::statements::ATTEMPT_BATCH;
use super::{Claim, Connection, Shared, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Kind, OutboxId, OutboxStatus, Timestamp, Value};

/// What a line of history tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HistoryEvent {
    /// An attempt succeeded (written only where it was no plain success).
    Sent,
    /// An attempt failed.
    Failure,
    /// An attempt was refused for good.
    Reject,
    /// The destination is gone.
    Gone,
    /// An attempt's answer was lost.
    InDoubt,
    /// Policy said no.
    Suppress,
    /// The row was put off.
    Defer,
    /// A worker lost its claim: it died, or was too slow.
    Lost,
    /// A person sent the row again; the line holds what it was before.
    Requeue,
    /// A person stopped the row.
    Cancel,
}

impl HistoryEvent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failure => "failure",
            Self::Reject => "reject",
            Self::Gone => "gone",
            Self::InDoubt => "in_doubt",
            Self::Suppress => "suppress",
            Self::Defer => "defer",
            Self::Lost => "lost",
            Self::Requeue => "requeue",
            Self::Cancel => "cancel",
        }
    }
}

/// One line of a row's history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryLine {
    /// The row.
    #[serde(rename = "outbox_id")]
    pub row: OutboxId,
    /// The claim under which it happened.
    pub claim_seq: i64,
    /// What happened, as stored (lower case).
    pub event: String,
    /// When, UTC.
    pub at: Timestamp,
    /// When the attempt began, UTC.
    pub started_at: Option<Timestamp>,
    /// The node that tried.
    pub node: Option<String>,
    /// The person or program that asked for it.
    pub actor: Option<String>,
    /// The row's status after it (before it, for a requeue).
    pub status: String,
    /// What the peer or policy said.
    pub error: Option<String>,
    /// Why, for programs.
    pub reason_code: Option<String>,
    /// Who is to blame.
    pub blame: Option<String>,
    /// The vendor.
    pub provider: Option<String>,
    /// The vendor's id of the message.
    pub provider_message_id: Option<String>,
    /// The ledger per address, as JSON text.
    pub recipients: Option<String>,
}

impl HistoryLine {
    /// A line with nothing but the event.
    #[must_use]
    pub fn new(claim: Claim, event: HistoryEvent, at: Timestamp, status: OutboxStatus) -> Self {
        Self {
            row: claim.id,
            claim_seq: claim.seq,
            event: event.as_str().to_owned(),
            at,
            started_at: None,
            node: None,
            actor: None,
            status: status.as_str().to_owned(),
            error: None,
            reason_code: None,
            blame: None,
            provider: None,
            provider_message_id: None,
            recipients: None,
        }
    }

    fn values(&self, id: OutboxId) -> [Value; 15] {
        [
            id.as_uuid().into(),
            self.row.as_uuid().into(),
            self.claim_seq.into(),
            self.event.as_str().into(),
            self.at.into(),
            self.started_at.into(),
            self.node.clone().into(),
            self.actor.clone().into(),
            self.status.as_str().into(),
            self.error.clone().into(),
            self.reason_code.clone().into(),
            self.blame.clone().into(),
            self.provider.clone().into(),
            self.provider_message_id.clone().into(),
            self.recipients.clone().into(),
        ]
    }

    /// Reads a line back.
    pub(super) fn read(values: Vec<Value>) -> Result<Self> {
        let values: [Value; 15] =
            values.try_into().map_err(|_| Error::new(ErrorKind::Decode, "a line of history has other columns"))?;
        let [_, row, seq, event, at, started, node, actor, status, error, code, blame, provider, message, recipients] =
            values;
        Ok(Self {
            row: OutboxId::from(uuid::Uuid::try_from(row)?),
            claim_seq: seq.try_into()?,
            event: event.try_into()?,
            at: at.try_into()?,
            started_at: started.try_into()?,
            node: node.try_into()?,
            actor: actor.try_into()?,
            status: status.try_into()?,
            error: error.try_into()?,
            reason_code: code.try_into()?,
            blame: blame.try_into()?,
            provider: provider.try_into()?,
            provider_message_id: message.try_into()?,
            recipients: recipients.try_into()?,
        })
    }
}

/// The kinds of a line, for fetching.
pub(super) fn kinds() -> Vec<Kind> {
    ATTEMPT_BATCH.iter().map(|(_, kind)| *kind).collect()
}

/// Appends the lines, in one statement.
pub(super) async fn write(connection: &mut dyn Connection, shared: &Shared, lines: &[HistoryLine]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|line| shared.statements.batches.row(ATTEMPT_BATCH, &line.values(OutboxId::new(&*shared.clock))))
        .collect();
    shared.statements.insert_attempts.execute(connection, &[codec::json_text(&rows)?.into()]).await?;
    Ok(())
}

/// The lines of a row that `bury_lost` gave up: each lost claim, the last one with the error.
pub(super) fn buried(values: &[Value], at: Timestamp, error: &str) -> Result<Vec<HistoryLine>> {
    let [id, seq, status, node, losses] = values else {
        return Err(Error::new(ErrorKind::Decode, "a buried row has other columns"));
    };
    let id = OutboxId::from(uuid::Uuid::try_from(id.clone())?);
    let seq: i64 = seq.clone().try_into()?;
    let losses: i64 = losses.clone().try_into()?;
    let status = String::try_from(status.clone())?.parse()?;
    let mut lines = lost(Claim { id, seq }, losses, at);
    let mut last = HistoryLine::new(Claim { id, seq }, HistoryEvent::Lost, at, status);
    last.node = node.clone().try_into()?;
    last.error = Some(error.to_owned());
    lines.push(last);
    Ok(lines)
}

/// The lines of the claims that were lost in a row before `claim`.
pub(super) fn lost(claim: Claim, losses: i64, at: Timestamp) -> Vec<HistoryLine> {
    let line = |back| {
        let before = Claim { id: claim.id, seq: claim.seq - back };
        HistoryLine::new(before, HistoryEvent::Lost, at, OutboxStatus::Sending)
    };
    // Three losses and the lone one are the most that the state machine makes.
    (1..=losses.min(4)).rev().map(line).collect()
}

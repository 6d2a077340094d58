//! `postrider send --wait`: looks at the rows until they are final, and says how they stand if not.

use std::time::Duration;

use postrider::model::{OutboxEntity, OutboxId, OutboxStatus, Timestamp};
use postrider::store::{Root, Rows};
use serde::Serialize;

use super::Answer;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::words;
use crate::start::Store;

/// How often the rows are looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// How a row stood when the waiting ended.
#[derive(Debug, Serialize)]
pub(super) struct End {
    status: OutboxStatus,
    sandbox: bool,
    attempts: i32,
    next_attempt_at: Timestamp,
    reason_code: Option<String>,
    last_error: Option<String>,
    #[serde(skip)]
    words: String,
    /// What happens next, for a row that is not final.
    #[serde(skip)]
    next: String,
    /// It is due, and nobody has ever claimed it.
    #[serde(skip)]
    ignored: bool,
}

/// Waits for all rows, at most `seconds`; the failure of the command unless all are SENT.
pub(super) async fn wait<E: OutboxEntity>(
    store: &Store,
    answers: &mut [Answer],
    seconds: u32,
    output: Output,
) -> Result<Option<Failure>, Failure> {
    let rows = store.repository::<E>()?.root();
    let until = store.clock.monotonic() + Duration::from_secs(seconds.into());
    loop {
        let mut open = false;
        for answer in answers.iter_mut() {
            if answer.end.as_ref().is_some_and(|end| end.status.is_final()) {
                continue;
            }
            if let Some(row) = rows.find_by_id(answer.id).await? {
                let end = End::of(&row, store.clock.now());
                open |= !end.status.is_final();
                if end.status.is_final() && !output.is_json() {
                    let error = end.last_error.as_deref().map(|error| format!(": {}", words::printable(error)));
                    let status = output.paint(&end.words, words::color(end.status));
                    output.line(&format!("{}  {status}{}", answer.id, error.unwrap_or_default()))?;
                }
                answer.end = Some(end);
            }
        }
        if !open || store.clock.monotonic() >= until {
            break;
        }
        store.clock.sleep(INTERVAL).await;
    }
    for answer in answers.iter_mut() {
        if let Some(end) = answer.end.as_mut().filter(|end| !end.status.is_final()) {
            end.learn(&rows, answer.id).await?;
        }
    }
    Ok(verdict(answers, seconds))
}

impl End {
    fn of(row: &impl OutboxEntity, now: Timestamp) -> Self {
        let view = row.view();
        let state = view.state();
        Self {
            status: state.status,
            sandbox: view.is_sandbox(),
            attempts: state.attempts,
            next_attempt_at: state.next_attempt_at,
            reason_code: state.reason_code.clone(),
            last_error: state.last_error.clone(),
            words: words::status(view),
            next: words::next(view, now),
            ignored: state.claim_seq == 0 && state.next_attempt_at <= now,
        }
    }

    /// What a row that was put off failed with stands in its history only.
    async fn learn<E: OutboxEntity>(&mut self, rows: &Rows<E, Root>, id: OutboxId) -> Result<(), Failure> {
        let history = rows.history(id).await?;
        if let Some(error) = history.into_iter().rev().find_map(|line| line.error) {
            self.last_error = Some(error);
        }
        Ok(())
    }

    /// How it stands, for people.
    fn so_far(&self) -> String {
        let error = self.last_error.as_deref().map(|error| format!("\n  last error: {}", words::printable(error)));
        format!("{}, attempts {}: {}{}", self.words, self.attempts, self.next, error.unwrap_or_default())
    }
}

fn verdict(answers: &[Answer], seconds: u32) -> Option<Failure> {
    let status = |answer: &Answer| answer.end.as_ref().map(|end| end.status);
    let unsent: Vec<_> = answers.iter().filter(|answer| status(answer) != Some(OutboxStatus::Sent)).collect();
    let first = unsent.first()?;
    let waiting = |answer: &&&Answer| status(answer).is_some_and(|status| !status.is_final());
    if !unsent.iter().any(|answer| waiting(&answer)) {
        return Some(Failure::not_sent(match &first.end {
            Some(end) => format!("not SENT: {} is {}", first.id, end.words),
            None => format!("not SENT: {} is gone", first.id),
        }));
    }
    let mut message = format!("not SENT within {seconds} s");
    for (answer, end) in unsent.iter().filter_map(|answer| Some((answer, answer.end.as_ref()?))) {
        message.push_str(&format!("\n{} is {}", answer.id, end.so_far()));
    }
    let ignored = unsent.iter().all(|answer| answer.end.as_ref().is_some_and(|end| end.ignored));
    if ignored {
        message.push_str("\nno node has claimed it yet: is a `postrider serve` running on this database?");
    }
    Some(Failure::not_sent(message))
}

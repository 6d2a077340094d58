//! `postrider send --wait`: looks at the rows until they are final.

use std::time::Duration;

use postrider::model::{OutboxEntity, OutboxStatus};
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
    last_error: Option<String>,
    #[serde(skip)]
    words: String,
}

/// Waits for all rows, at most `seconds`; the failure of the command unless all are SENT.
pub(super) async fn wait(
    store: &Store,
    answers: &mut [Answer],
    seconds: u32,
    output: Output,
) -> Result<Option<Failure>, Failure> {
    let rows = store.repository()?.root();
    let until = store.clock.monotonic() + Duration::from_secs(seconds.into());
    loop {
        let mut open = false;
        for answer in answers.iter_mut() {
            if answer.end.as_ref().is_some_and(|end| end.status.is_final()) {
                continue;
            }
            if let Some(row) = rows.find_by_id(answer.id).await? {
                let view = row.view();
                open |= !view.status().is_final();
                let end = End {
                    status: view.status(),
                    sandbox: view.is_sandbox(),
                    last_error: view.state().last_error.clone(),
                    words: words::status(view),
                };
                let news = answer.end.as_ref().is_none_or(|before| before.status != end.status);
                if news && end.status.is_final() && !output.is_json() {
                    let error = end.last_error.as_deref().map(|error| format!(": {}", words::printable(error)));
                    let color = words::color(end.status);
                    let status = output.paint(&end.words, color);
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
    Ok(verdict(answers, seconds))
}

fn verdict(answers: &[Answer], seconds: u32) -> Option<Failure> {
    let status = |answer: &Answer| answer.end.as_ref().map(|end| end.status);
    let unsent: Vec<_> = answers.iter().filter(|answer| status(answer) != Some(OutboxStatus::Sent)).collect();
    let first = unsent.first()?;
    let stands = match &first.end {
        Some(end) => format!("{} is {}", first.id, end.words),
        None => format!("{} is gone", first.id),
    };
    let waiting = unsent.iter().any(|answer| status(answer).is_some_and(|status| !status.is_final()));
    let message = match (waiting, unsent.len()) {
        (true, _) => format!("not SENT within {seconds} s: {stands}; is a `postrider serve` running?"),
        (false, _) => format!("not SENT: {stands}"),
    };
    Some(Failure::not_sent(message))
}

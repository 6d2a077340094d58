//! What a row's state means, in words for people.
//!
//! Programs get the columns themselves; nothing here is for them to read.

use postrider::model::{OutboxStatus, OutboxView, Timestamp};

use super::output::Color;

/// Whether an address did not get it.
fn is_partial(view: OutboxView<'_>) -> bool {
    view.state().reason_code.as_deref() == Some("partial")
}

/// The status as people see it: what the sandbox took was not sent to anybody, and what is partial
/// not to everybody.
pub(super) fn status(view: OutboxView<'_>) -> String {
    match view.status() {
        OutboxStatus::Sent if view.is_sandbox() => "SENT (sandbox)".to_owned(),
        OutboxStatus::Sent if is_partial(view) => "SENT (partial)".to_owned(),
        status => status.to_string(),
    }
}

/// The colour of a status.
pub(super) fn color(status: OutboxStatus) -> Color {
    match status {
        OutboxStatus::Pending | OutboxStatus::Sending => Color::Cyan,
        OutboxStatus::Sent => Color::Green,
        OutboxStatus::Failed => Color::Yellow,
        OutboxStatus::Dead => Color::Red,
        OutboxStatus::Suppressed => Color::Magenta,
    }
}

/// What happens to the row next, and what a person can do.
pub(super) fn next(view: OutboxView<'_>, now: Timestamp) -> String {
    let (row, state) = (view.content(), view.state());
    let due = state.next_attempt_at;
    let again = format!("`postrider requeue {}` sends it again", row.id);
    match state.status {
        OutboxStatus::Pending if due > now && state.deferrals > 0 => {
            let why = state.reason_code.as_deref().map(|code| format!(" ({})", printable(code))).unwrap_or_default();
            format!(
                "was put off at no cost of attempts{why}; it is tried again at {} ({})",
                seconds(due),
                distance(now, due)
            )
        }
        OutboxStatus::Pending if due > now => {
            format!("waits until {} ({}), then it is delivered", seconds(due), distance(now, due))
        }
        OutboxStatus::Pending => format!(
            "due since {} ({}): a running `postrider serve` delivers it at once",
            seconds(due),
            distance(now, due)
        ),
        OutboxStatus::Sending if due > now => format!(
            "is being delivered by {}; unless that node renews its claim, another may take it over at {} ({})",
            node(view),
            seconds(due),
            distance(now, due)
        ),
        OutboxStatus::Sending => format!(
            "was being delivered by {}, whose claim ran out at {} ({}): any running node takes it over",
            node(view),
            seconds(due),
            distance(now, due)
        ),
        OutboxStatus::Failed => format!(
            "attempt {} of {} failed; the next one is at {} ({})",
            state.attempts,
            row.max_attempts,
            seconds(due),
            distance(now, due)
        ),
        OutboxStatus::Sent if view.is_sandbox() => {
            "nothing: the sandbox took it, and nothing left this machine".to_owned()
        }
        OutboxStatus::Sent if is_partial(view) => format!(
            "nothing by itself: the peer accepted it, but not for every address: a copy was not delivered; {again} to \
             all of them"
        ),
        OutboxStatus::Sent => "nothing: the peer accepted it".to_owned(),
        OutboxStatus::Dead if state.in_doubt => format!(
            "nothing by itself: the peer may have taken it, and its answer was lost; {again}, which may make a copy"
        ),
        OutboxStatus::Dead => format!("nothing by itself: it was given up; {again}"),
        OutboxStatus::Suppressed => format!("nothing: it was stopped by policy or a person; {again}"),
    }
}

fn node(view: OutboxView<'_>) -> String {
    view.state().claimed_by.as_deref().map_or_else(|| "a node".to_owned(), printable)
}

/// How often, such as `once` or `3 times`.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// A count with its thousands apart.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An instant without its fraction, UTC.
pub(super) fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// How far an instant is, such as `in 4 min` or `2 h ago`.
pub(super) fn distance(now: Timestamp, at: Timestamp) -> String {
    let (ahead, behind) = (at.since(now), now.since(at));
    if ahead.is_zero() && behind.as_secs() == 0 {
        return "just now".to_owned();
    }
    let rough = |seconds: u64| match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    };
    // Rounded up: what is due in half a second is not due in none.
    if ahead.is_zero() {
        format!("{} ago", rough(behind.as_secs()))
    } else {
        format!("in {}", rough(ahead.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)))
    }
}

/// Text that a terminal may show: control characters could move its cursor or worse.
pub(super) fn printable(text: &str) -> String {
    let unsafe_ = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if unsafe_(c) { '\u{fffd}' } else { c }).collect()
}

/// Printable text of at most `limit` characters.
pub(super) fn short(text: &str, limit: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= limit {
        return text;
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// A word for the shell, in quotes if it needs them.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@=+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postrider::model::{OutboxRow, RowState, TenantId};

    use super::*;

    #[test]
    fn a_distance_is_rough_and_has_a_direction() {
        let now = Timestamp::parse("2026-03-01T10:00:00Z").unwrap();
        let after = |millis| now.plus(Duration::from_millis(millis));
        assert_eq!(distance(now, now), "just now");
        assert_eq!(distance(now, after(400)), "in 1 s");
        assert_eq!(distance(now, after(300_000)), "in 5 min");
        assert_eq!(distance(after(7_200_000), now), "2 h ago");
        assert_eq!(distance(now, after(200_000_000)), "in 2 d");
    }

    #[test]
    fn every_status_says_what_happens_next() {
        let now = Timestamp::parse("2026-03-01T10:00:00Z").unwrap();
        let later = now.plus(Duration::from_secs(600));
        let base = OutboxRow::new(uuid::Uuid::nil().into(), "email", "a", "a@example.com", now);
        let said = |change: &dyn Fn(&mut RowState)| {
            let mut row = base.clone();
            change(&mut row.state);
            next(OutboxView::new(&row, &TenantId::ROOT), now)
        };
        let with = |status, at| move |state: &mut RowState| (state.status, state.next_attempt_at) = (status, at);
        for (change, text) in [
            (&with(OutboxStatus::Pending, now) as &dyn Fn(&mut RowState), "due since 2026-03-01T10:00:00Z (just now)"),
            (&with(OutboxStatus::Pending, later), "waits until 2026-03-01T10:10:00Z (in 10 min)"),
            (&with(OutboxStatus::Sending, later), "is being delivered by a node"),
            (&with(OutboxStatus::Sending, now), "claim ran out at"),
            (&with(OutboxStatus::Failed, later), "attempt 0 of 11 failed; the next one is at"),
            (&with(OutboxStatus::Sent, now), "the peer accepted it"),
            (&with(OutboxStatus::Dead, now), "given up; `postrider requeue 00000000-"),
            (&with(OutboxStatus::Suppressed, now), "stopped by policy or a person; `postrider requeue"),
        ] {
            let said = said(change);
            assert!(said.contains(text), "{text:?} is not in {said:?}");
        }
        let held = said(&|state| (state.status, state.in_doubt) = (OutboxStatus::Dead, true));
        assert!(held.contains("may make a copy"), "{held}");
        let sandbox = said(&|state| (state.status, state.provider) = (OutboxStatus::Sent, Some("sandbox".into())));
        assert!(sandbox.contains("nothing left this machine"), "{sandbox}");
        let deferred = said(&|state| {
            (state.next_attempt_at, state.deferrals, state.reason_code) = (later, 1, Some("destination".into()));
        });
        assert!(deferred.contains("was put off at no cost of attempts (destination)"), "{deferred}");
    }

    #[test]
    fn what_moves_a_cursor_is_not_printed() {
        assert_eq!(printable("a\u{1b}[2Jb\r\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
        assert_eq!(printable("ab\u{202e}c"), "ab\u{fffd}c");
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("sqlite:a.db"), "sqlite:a.db");
    }
}

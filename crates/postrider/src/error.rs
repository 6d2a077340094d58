//! The one error of the library: opaque, with a kind and predicates.
//!
//! What went wrong is asked with [`Error::kind`] or a predicate, never by matching text.
//! A delivery's outcome is not an error: see [`crate::model::Outcome`].
//! The cause stays in `source()`; messages are lower-case fragments that name the thing.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// What a call can fail with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// Why a call failed. See [`ErrorKind`] for the classes.
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    cause: Option<Cause>,
}

/// The class of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input can never be accepted as it is; nothing was written.
    Invalid,
    /// A template failed to load or render; nothing was written.
    Template,
    /// No such row (or none in this scope).
    NotFound,
    /// More than one row is there where one at most was asked for.
    Ambiguous,
    /// The row is being delivered (SENDING): try again once it is settled. HTTP 409.
    Conflict,
    /// The event is not allowed from the row's status; nothing changed.
    WrongStatus,
    /// The claim was lost: somebody else holds the row, or it is final. Nothing changed.
    ClaimLost,
    /// The database refused for now (busy, unreachable, timed out); the call may be repeated.
    Transient,
    /// The database undid the whole transaction (serialization failure, deadlock): the caller
    /// must roll back and repeat **all** of it. Nothing more was sent on the connection.
    TransactionGone,
    /// The connection was lost while a commit was under way: all of it was done, or nothing. Look
    /// before you repeat it.
    CommitUnknown,
    /// Somebody else holds a lock for longer than is waited for; the call may be repeated.
    Locked,
    /// A unique constraint of the table refused the row, and it is not the one of the dedupe key:
    /// this row is to blame.
    Duplicate,
    /// The database refused a value (a constraint, its type, its size): this row is to blame.
    Refused,
    /// The database failed in a way that says nothing about a row.
    Database,
    /// A stored value cannot be read.
    Decode,
    /// The configuration is wrong.
    Configuration,
}

impl Error {
    /// Makes an error of `kind`; `message` is a lower-case fragment that names the thing.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), cause: None }
    }

    /// Keeps `cause` as the error's source.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Puts `context` in front of the message: `context: message`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message).into();
        self
    }

    /// A value that can never be accepted.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True if the same call may succeed later, with nothing to mend.
    ///
    /// Includes [`Self::is_transaction_gone`], where the whole transaction is to be repeated.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Transient | ErrorKind::TransactionGone | ErrorKind::Locked)
    }

    /// True if the database has undone the caller's transaction (contract C2.2).
    #[must_use]
    pub fn is_transaction_gone(&self) -> bool {
        self.kind == ErrorKind::TransactionGone
    }

    /// True if nobody knows whether the transaction was committed: not to be repeated blindly.
    #[must_use]
    pub fn is_commit_unknown(&self) -> bool {
        self.kind == ErrorKind::CommitUnknown
    }

    /// True if it is this row's own values that were refused, so that others may go on without it.
    #[must_use]
    pub fn blames_the_row(&self) -> bool {
        matches!(self.kind, ErrorKind::Refused | ErrorKind::Duplicate | ErrorKind::Invalid | ErrorKind::Decode)
    }

    /// True if the row is being delivered at this moment.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind == ErrorKind::Conflict
    }

    /// True if there is no such row in the scope asked.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// True if the input was refused before anything was written.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.kind, ErrorKind::Invalid | ErrorKind::Template)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind).field("message", &self.message);
        if let Some(cause) = &self.cause {
            out.field("cause", cause);
        }
        out.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

//! Pure data and rules: no I/O, no async, no clock of its own.
//!
//! The lowest layer but the error. What a row is, where it may go, what an attempt can end in.

mod address;
pub mod clock;
pub mod column;
mod entity;
mod id;
mod ledger;
mod outcome;
mod own;
mod payload;
mod row;
mod scope;
mod status;
mod table;
pub mod text;
mod time;
pub mod transition;
mod value;
mod view;

pub use address::MailAddress;
pub use clock::{Clock, SystemClock};
pub use column::Column;
pub use entity::{ByTenant, NotificationRow, OutboxEntity, Ownership, SystemRow, Tenancy};
pub use id::OutboxId;
pub use ledger::{AddressState, Ledger, LedgerEntry, Role};
pub use outcome::{Blame, FailureScope, InDoubt, InDoubtPolicy, Outcome, Reject, Retry, Sent, Suppress};
pub use own::{ColumnValue, OwnColumn, OwnValues};
pub use payload::MailPayload;
pub use row::{OutboxRow, RowState};
pub use scope::TenantId;
pub use status::OutboxStatus;
pub(crate) use table::RESERVED as RESERVED_PREFIX;
pub use table::{IdType, TableDef};
pub use text::MAX_ERROR_LENGTH;
pub use time::Timestamp;
pub use value::{Kind, Value};
pub use view::OutboxView;

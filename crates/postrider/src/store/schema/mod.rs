//! The tables: DDL as text, numbered steps, and whether a real table can be used.
//!
//! The library owns no table: the texts are for the application's own migration tool, or are run
//! by [`migrate`] for the daemon and a first try. [`verify`] compares what is there with what the
//! statements and the codec need, and says how to mend it. All text is SQL per dialect: what the
//! databases tell of themselves stands in `catalogue`, what their types can hold in `types`.

mod catalogue;
mod columns;
mod ddl;
mod enqueue;
mod finding;
mod mend;
mod migrate;
mod script;
mod types;
mod verify;
mod versions;

pub use ddl::{create_tables, steps};
pub use finding::Finding;
pub use migrate::migrate;
pub use script::script;
pub use verify::{missing_columns, require, verify};
pub use versions::version;

//! The library's integration tests: every rule on every database.
//!
//! Run by `cargo xtask test`, which brings a private PostgreSQL.

#![expect(clippy::disallowed_methods, reason = "these tests wait for real databases and real time limits")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what cannot go on fails the test")]

mod accept;
mod cancel;
mod claim;
mod commit;
mod contract;
mod dedupe;
mod dispatch;
mod enqueue_function;
mod hardened_dispatch;
mod hardened_outage;
mod hardened_store;
mod hardened_suspects;
mod history;
mod java_table;
mod key_race;
mod lease;
mod listen;
mod odd_rows;
mod own_entity;
mod pool;
mod repository;
mod repository_delete;
mod repository_isolation;
mod repository_own;
mod repository_paging;
mod repository_save;
mod repository_stream;
mod row_locks;
mod schema;
mod shutdown;
mod sqlite_locks;
mod state_machine;
mod support;
mod time_zone;
mod unreadable;
mod verify;
mod wire;

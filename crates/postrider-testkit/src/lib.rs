//! Temporary databases and peers for postrider's own tests: real ones, and scripted ones.
//!
//! `cargo xtask test` provides the servers; a test whose server is missing says so (see
//! [`server::required`]). Not published, and no part of the library.

pub mod aiosmtpd;
pub mod database;
pub mod postfix;
pub mod python;
pub mod server;
pub mod smtp;

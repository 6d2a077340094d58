//! The real binary, driven as people and programs drive it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails at the line")]

mod configuration;
mod database;
mod help;
mod migrations;
mod outboxes;
mod python;
mod quick_start;
mod real_mail;
mod relay;
mod rows;
mod schema;
mod send;
mod serve;
mod servers;
mod support;
mod wake;

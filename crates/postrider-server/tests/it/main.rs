//! The real binary, driven as people and programs drive it.

mod configuration;
mod database;
mod help;
mod quick_start;
mod relay;
mod rows;
mod send;
mod serve;
mod support;

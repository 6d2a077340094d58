//! The channels against scripted peers: one binary, one module per subject.
#![expect(clippy::unwrap_used, reason = "a test ends where what it needs is not there")]

mod batch;
mod content;
mod contract;
mod doubt;
mod login;
mod pool;
mod probe;
mod recipients;
mod refusals;
mod sandbox;
mod support;
mod tls;

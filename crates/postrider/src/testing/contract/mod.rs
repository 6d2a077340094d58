//! The contract of rows, as a suite: an entity on a database is done when it passes.
//!
//! An application runs it on its own entity, in its own tests, against a table made for that. The
//! library runs it on three entities and three databases. A rule is an async function that is handed
//! a [`Bench`]; a broken one panics, and the others still run.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what cannot go on breaks the rule that is tried")]

mod bench;
mod claims;
mod delivery;
mod history;
mod repository;
mod row;
mod scopes;
mod states;
mod writing;

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::model::clock::within;
use crate::model::{ByTenant, OutboxEntity, Ownership, SystemClock};

pub use bench::Bench;

/// How long a rule may take, in truth.
const LIMIT: Duration = Duration::from_secs(30);

/// One rule of the contract, and how it is tried.
pub struct Rule<E> {
    /// The rule's number in the contract.
    pub id: &'static str,
    /// The rule in words, with underscores.
    pub name: &'static str,
    run: for<'b> fn(&'b Bench<E>) -> BoxFuture<'b, ()>,
}

impl<E> fmt::Debug for Rule<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

/// Lists functions as rules: the number, then the function.
macro_rules! listed {
    ($($id:literal $name:ident;)*) => {
        vec![$($crate::testing::contract::Rule {
            id: $id,
            name: stringify!($name),
            run: |bench| Box::pin($name(bench)),
        }),*]
    };
}
use listed;

/// The rules that every entity keeps.
#[must_use]
pub fn rules<E: OutboxEntity>() -> Vec<Rule<E>> {
    [
        row::rules(),
        writing::rules(),
        states::rules(),
        history::rules(),
        claims::rules(),
        delivery::rules(),
        repository::rules(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Holds an entity whose rows belong to tenants to the contract of rows; returns what was tried.
///
/// # Panics
/// If a rule is broken; the message names each of them.
pub async fn assert_tenant_contract<E: OutboxEntity<Tenancy = ByTenant>>(bench: &Bench<E>) -> Vec<String> {
    try_all(bench, rules().into_iter().chain(scopes::tenant_rules()).collect()).await
}

/// Holds an entity without tenants to the contract of rows; returns what was tried.
///
/// # Panics
/// If a rule is broken; the message names each of them.
pub async fn assert_ownership_contract<E: OutboxEntity<Tenancy = Ownership>>(bench: &Bench<E>) -> Vec<String> {
    try_all(bench, rules().into_iter().chain(scopes::ownership_rules()).collect()).await
}

async fn try_all<E: OutboxEntity>(bench: &Bench<E>, rules: Vec<Rule<E>>) -> Vec<String> {
    let truth = SystemClock::new();
    let (mut kept, mut broken) = (Vec::new(), Vec::new());
    for rule in rules {
        let tried = async {
            (rule.run)(bench).await;
            bench.finish_all().await;
        };
        let tried = within(&truth, LIMIT, tried).map(|ended| assert!(ended.is_some(), "it does not end"));
        match AssertUnwindSafe(tried).catch_unwind().await {
            Ok(()) => kept.push(format!("{rule:?}")),
            Err(why) => {
                broken.push(format!("{rule:?}: {}", said(&*why)));
                // What the broken rule left must not break the next one.
                let _ = AssertUnwindSafe(bench.finish_all()).catch_unwind().await;
            }
        }
    }
    assert!(broken.is_empty(), "{} rules are kept, {} are broken:\n{}", kept.len(), broken.len(), broken.join("\n"));
    kept
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

//! Proofs with real processes: nothing is lost and nothing is doubled, whoever races or dies.

#![expect(clippy::disallowed_methods, reason = "these tests wait for real processes")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what cannot go on fails the test")]

mod crash;
mod race;
mod scene;

//! What does not compile, and what the compiler then says.
//!
//! The messages are in `tests/ui`, beside the programs, as the toolchain in `Cargo.toml` words them;
//! `TRYBUILD=overwrite` writes them anew.

#[test]
fn wrong_entities_and_forgotten_scopes_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

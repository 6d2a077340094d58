//! `cargo xtask mutants`: deliberate faults, one for each rule of the contract, that a test must find.
//!
//! A fault is a change of a text in one file (`xtask/mutants.toml`). Each is made in a copy of the
//! workspace, built, and tried with the tests that should find it; the workspace itself is never
//! touched. The run can be stopped and goes on where it was; what was found stands in
//! `docs/MUTANTS.md`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;

use crate::system;

/// What to try.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only the faults of this rule, for instance C4.4.
    #[arg(long)]
    rule: Option<String>,
    /// Try again what was tried before.
    #[arg(long)]
    again: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One deliberate fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    rule: String,
    what: String,
    file: String,
    find: String,
    replace: String,
    /// The filter of the library's tests that should find it.
    tests: String,
}

const DOCUMENT: &str = "docs/MUTANTS.md";

/// Tries the faults, with `variables` telling the tests their servers.
pub(crate) fn run(options: &Options, variables: &[(&'static str, OsString)]) -> Result<()> {
    let root = system::workspace();
    let text = fs::read_to_string(root.join("xtask/mutants.toml")).context("cannot read xtask/mutants.toml")?;
    let list: List = toml::from_str(&text).context("xtask/mutants.toml")?;
    let copy = Copy::of(&root)?;
    let mut known = if options.again { Vec::new() } else { read(&root)? };
    for mutant in list.mutant.iter().filter(|mutant| options.rule.as_ref().is_none_or(|rule| *rule == mutant.rule)) {
        let line = |found: &str| format!("| {} | {} | `{}` | {found} |", mutant.rule, mutant.what, mutant.tests);
        if known.iter().any(|known| known.starts_with(&format!("| {} | {} |", mutant.rule, mutant.what))) {
            continue;
        }
        println!("{}: {}", mutant.rule, mutant.what);
        let found = copy.try_one(mutant, variables).with_context(|| format!("{}: {}", mutant.rule, mutant.what))?;
        println!("    {found}");
        known.push(line(&found));
        write(&root, &known)?;
    }
    let survivors = known.iter().filter(|line| line.contains("**survived**")).count();
    println!("{} faults tried, {survivors} survived; see {DOCUMENT}", known.len());
    Ok(())
}

/// The lines of the table as it is.
fn read(root: &Path) -> Result<Vec<String>> {
    let path = root.join(DOCUMENT);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().filter(|line| line.starts_with("| C")).map(str::to_owned).collect())
}

fn write(root: &Path, lines: &[String]) -> Result<()> {
    let mut out = String::from(
        "# Deliberate faults\n\nFor each rule of the [contract](CONTRACT.md) a small fault was made in the code, and the \
         tests were run that should find it. Repeat with `cargo xtask mutants --again`; the faults stand in \
         `xtask/mutants.toml`.\n\n| rule | fault | tests | found by |\n|---|---|---|---|\n",
    );
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    fs::write(root.join(DOCUMENT), out).with_context(|| format!("cannot write {DOCUMENT}"))
}

/// A copy of the workspace's sources, with a build folder of its own.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn of(root: &Path) -> Result<Self> {
        let target = system::env("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let copy = target.join("mutants/workspace");
        fs::create_dir_all(&copy).with_context(|| format!("cannot make {}", copy.display()))?;
        for name in ["Cargo.toml", "Cargo.lock", "crates", "xtask", "docs", "README.md", "rustfmt.toml", "clippy.toml"]
        {
            refresh(&root.join(name), &copy.join(name))?;
        }
        Ok(Self { root: copy })
    }

    fn try_one(&self, mutant: &Mutant, variables: &[(&'static str, OsString)]) -> Result<String> {
        let path = self.root.join(&mutant.file);
        let sound = fs::read_to_string(&path).with_context(|| format!("cannot read {}", mutant.file))?;
        ensure!(sound.matches(&mutant.find).count() == 1, "{} does not hold the text just once", mutant.file);
        fs::write(&path, sound.replace(&mutant.find, &mutant.replace))?;
        let tried = self.tests(mutant, variables);
        fs::write(&path, sound)?;
        tried
    }

    fn tests(&self, mutant: &Mutant, variables: &[(&'static str, OsString)]) -> Result<String> {
        let built = self.cargo(variables).args(["--no-run"]).stderr(Stdio::piped()).output()?;
        if !built.status.success() {
            bail!("the fault does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
        }
        let mut run = self.cargo(variables);
        run.arg("--").args(mutant.tests.split(' ')).stdout(Stdio::piped()).stderr(Stdio::null());
        let output = run.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut found: Vec<_> = said.lines().filter_map(|line| line.strip_suffix(" ... FAILED")).collect();
        ensure!(said.contains("test result:"), "no test answers to {}", mutant.tests);
        if output.status.success() {
            return Ok("**survived**".to_owned());
        }
        found.truncate(2);
        Ok(found.iter().map(|name| format!("`{}`", name.trim_start_matches("test "))).collect::<Vec<_>>().join(", "))
    }

    fn cargo(&self, variables: &[(&'static str, OsString)]) -> Command {
        let mut cargo = Command::new(system::env("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["test", "-p", "postrider", "--all-features", "--test", "it"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.root.with_file_name("target"))
            .envs(variables.iter().map(|(name, value)| (*name, value)));
        cargo
    }
}

/// Copies what differs, so that a build goes on where it was.
fn refresh(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if name != "target" {
                refresh(&from.join(&name), &to.join(&name))?;
            }
        }
        return Ok(());
    }
    let new = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).ok().as_ref() != Some(&new) {
        fs::write(to, new).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

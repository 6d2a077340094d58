//! Python for the tests: an interpreter of the system, and environments with what a test needs.
//!
//! Environments lie under cargo's target folder and are made once for each release of their packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::run::Runner;
use crate::system;

/// Drivers of databases, at the releases that the tests were written against: programs in other
/// languages write rows with them. The module, the package, the release.
const DRIVERS: [(&str, &str, &str); 2] = [("psycopg", "psycopg[binary]", "3.3.9"), ("pymysql", "PyMySQL", "1.2.4")];

/// A Python that can make environments: on Debian that is a package of its own.
pub(crate) fn find() -> Option<PathBuf> {
    let in_path = system::program("python3");
    let usual = Some(PathBuf::from("/usr/bin/python3"));
    in_path.into_iter().chain(usual).find(|python| {
        system::succeeds(Command::new(python).args(["-c", "import venv; from ensurepip import version"]))
    })
}

/// The interpreter of an environment that has the drivers.
pub(crate) async fn drivers(runner: &mut Runner, python: &Path) -> Result<PathBuf> {
    let releases: Vec<String> = DRIVERS.iter().map(|(module, _, release)| format!("{module}-{release}")).collect();
    environment(runner, python, &format!("python-{}", releases.join("-")), &DRIVERS).await
}

/// The interpreter of the environment `name` with these packages; made with `python` unless it is
/// there already. The module, the package, the release.
pub(crate) async fn environment(
    runner: &mut Runner,
    python: &Path,
    name: &str,
    packages: &[(&str, &str, &str)],
) -> Result<PathBuf> {
    let folder = system::target_dir()?.join(name);
    let interpreter = folder.join("bin").join("python");
    if !packages.iter().all(|(module, _, release)| has(&interpreter, module, release)) {
        let wanted: Vec<String> =
            packages.iter().map(|(_, package, release)| format!("{package}=={release}")).collect();
        println!("installing {} into {} …", wanted.join(" "), folder.display());
        let mut make = tokio::process::Command::new(python);
        runner.must(make.args(["-m", "venv", "--clear"]).arg(&folder)).await?;
        let mut pip = tokio::process::Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        runner.must(pip.args(wanted)).await?;
    }
    Ok(interpreter)
}

fn has(interpreter: &Path, module: &str, release: &str) -> bool {
    let check = format!("import {module}; assert {module}.__version__ == '{release}'");
    system::succeeds(Command::new(interpreter).args(["-c", &check]))
}

//! Runs other programs: prints each command, and ends it with everything it started when we are
//! asked to end.
//!
//! A child gets a process group of its own and no standard input. Ctrl-C, SIGTERM and SIGHUP
//! therefore come to us alone; we pass them on to the whole group and return [`Interrupted`], so
//! that guards (the private servers) are dropped on the way out like after any other error.

use std::error::Error;
use std::fmt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a child may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Somebody asked us to end (Ctrl-C, SIGTERM, SIGHUP).
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl Error for Interrupted {}

/// Starts commands and listens for signals while they run.
#[derive(Debug)]
pub(crate) struct Runner {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Runner {
    /// Takes over the signals; from here on they no longer end the process by themselves.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Prints and runs `command`, and returns how it ended.
    pub(crate) async fn run(&mut self, command: &mut Command) -> Result<ExitStatus> {
        let shown = shown(command);
        println!("$ {shown}");
        let mut child = command
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        tokio::select! {
            status = child.wait() => Ok(status?),
            () = self.asked_to_end() => {
                end(&mut child).await;
                Err(Interrupted.into())
            }
        }
    }

    /// Like [`Runner::run`]; anything but success is an error.
    pub(crate) async fn must(&mut self, command: &mut Command) -> Result<()> {
        let status = self.run(command).await?;
        if !status.success() {
            bail!("`{}` failed ({status})", shown(command));
        }
        Ok(())
    }

    async fn asked_to_end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let command = command.as_std();
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            if word.is_empty() || word.contains(char::is_whitespace) { format!("'{word}'") } else { word.into_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Ends the child's whole group: SIGTERM, then SIGKILL after [`GRACE`].
#[expect(clippy::disallowed_methods, reason = "a real process is given real time to end")]
async fn end(child: &mut Child) {
    let Some(group) = child.id() else { return };
    signal_group("TERM", group);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        signal_group("KILL", group);
        let _ = child.wait().await;
    }
    // Grandchildren that outlived the child (a test binary of a cargo that has already gone).
    signal_group("KILL", group);
}

/// The shell's own `kill` is always there; `/bin/kill` is not.
fn signal_group(name: &str, group: u32) {
    let _ = std::process::Command::new("sh")
        .args(["-c", &format!("kill -{name} -{group}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals come to the whole process: these tests must not meet.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("cargo");
        command.args(["test", "two words", ""]);
        assert_eq!(shown(&command), "cargo test 'two words' ''");
    }

    #[test]
    fn a_failed_command_is_an_error_that_names_it() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let error = runtime().block_on(async {
            let mut runner = Runner::new().unwrap();
            runner.must(Command::new("sh").args(["-c", "exit 3"])).await.unwrap_err()
        });
        assert!(error.to_string().starts_with("`sh -c 'exit 3'` failed"), "{error}");
    }

    #[test]
    fn a_signal_ends_the_child_with_its_own_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("grandchild");
        let script = format!("sleep 60 & echo $! > {}; kill -TERM {}; wait", pid_file.display(), std::process::id());
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let error = runtime().block_on(async {
            let mut runner = Runner::new().unwrap();
            runner.run(Command::new("sh").args(["-c", &script])).await.unwrap_err()
        });
        assert!(error.is::<Interrupted>());
        let grandchild = std::fs::read_to_string(pid_file).unwrap();
        // Gone, or a zombie that its new parent has not collected yet.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", grandchild.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "still there: {state}");
    }
}

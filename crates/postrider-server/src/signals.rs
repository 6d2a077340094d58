//! The signals that end the daemon: SIGTERM, SIGINT, and SIGHUP of a closed terminal.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment that it is made, so that no signal is lost or kills half-way.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    hang_up: Signal,
}

impl Signals {
    /// Begins to listen; must be called within a tokio runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let (interrupt, hang_up) = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
        Ok(Self { terminate, interrupt, hang_up })
    }

    /// Waits for the next signal and returns its name.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }

    /// Begins to listen; must be called within a tokio runtime.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal and returns its name.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> &'static str {
        let _ = tokio::signal::ctrl_c().await;
        "Ctrl-C"
    }
}

//! A way to PostgreSQL that understands its messages, and loses or refuses the ones that it is told to.
//!
//! What was asked for reaches the server or does not, and the answer never comes: that is how a
//! commit becomes unknown, and nothing but a proxy can do it on purpose.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::support::World;

/// A proxy in front of the world's server; connections by way of it have no TLS.
pub(crate) struct Wire {
    url: String,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    answer: Mutex<Option<String>>,
    request: Mutex<Option<String>>,
    refused: Mutex<Option<String>>,
    stalls: AtomicBool,
    down: AtomicBool,
    refusals: AtomicUsize,
    lost: AtomicUsize,
    connections: AtomicUsize,
}

impl Wire {
    pub(crate) async fn to(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (login, rest) = world.test.url().split_once('@').expect("the address names a user");
        let (server, name) = rest.split_once('/').unwrap();
        let server = if server.contains(':') { server.to_owned() } else { format!("{server}:5432") };
        let url = format!("{login}@{}/{name}?sslmode=disable", listener.local_addr().unwrap());
        let faults = Arc::new(Faults::default());
        let shared = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                if shared.down.load(Ordering::SeqCst) {
                    continue;
                }
                let far = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(near, far, Arc::clone(&shared)));
            }
        });
        Self { url, faults }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next answer that ends so (`COMMIT`, `UPDATE 1`) is lost with its connection, once the
    /// server has done all of it.
    pub(crate) fn lose_answer(&self, tag: &str) {
        *self.faults.answer.lock().unwrap() = Some(tag.to_owned());
    }

    /// Instead of being cut, a connection whose answer is lost stays open and silent.
    pub(crate) fn stall(&self) {
        self.faults.stalls.store(true, Ordering::SeqCst);
    }

    /// The next request with this text is lost with its connection before the server sees it.
    pub(crate) fn lose_request(&self, text: &str) {
        *self.faults.request.lock().unwrap() = Some(text.to_owned());
    }

    /// Requests with this text are answered as a standby does, until told otherwise.
    pub(crate) fn refuse(&self, text: Option<&str>) {
        *self.faults.refused.lock().unwrap() = text.map(str::to_owned);
    }

    /// Closes new connections at once, as long as it is down.
    pub(crate) fn set_down(&self, down: bool) {
        self.faults.down.store(down, Ordering::SeqCst);
    }

    /// Answers and requests that were lost.
    pub(crate) fn lost(&self) -> usize {
        self.faults.lost.load(Ordering::SeqCst)
    }

    /// Requests that were refused so far.
    pub(crate) fn refusals(&self) -> usize {
        self.faults.refusals.load(Ordering::SeqCst)
    }

    /// Connections that were tried so far.
    pub(crate) fn connections(&self) -> usize {
        self.faults.connections.load(Ordering::SeqCst)
    }
}

/// One connection, until either side ends it or a fault does.
async fn carry(mut near: TcpStream, mut far: TcpStream, faults: Arc<Faults>) {
    let (mut up, mut down) = ([0; 8192], [0; 8192]);
    let (mut answers, mut losing) = (Vec::new(), false);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let Ok(n @ 1..) = read else { return };
                let text = String::from_utf8_lossy(&up[..n]);
                let told = |fault: &Mutex<Option<String>>| fault.lock().unwrap().as_ref().is_some_and(|word| text.contains(word));
                if told(&faults.request) {
                    *faults.request.lock().unwrap() = None;
                    faults.lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                let sent = if told(&faults.refused) {
                    faults.refusals.fetch_add(1, Ordering::SeqCst);
                    let error = b"SERROR\0VERROR\0C25006\0Mcannot execute LISTEN during recovery\0\0";
                    let length = u32::try_from(error.len() + 4).unwrap().to_be_bytes();
                    near.write_all(&[b"E", &length[..], error, b"Z\0\0\0\x05I"].concat()).await
                } else {
                    far.write_all(&up[..n]).await
                };
                if sent.is_err() {
                    return;
                }
            }
            read = far.read(&mut down) => {
                let Ok(n @ 1..) = read else { return };
                answers.extend_from_slice(&down[..n]);
                while let Some(frame) = next_frame(&mut answers) {
                    let tag = frame.strip_prefix(b"C").and_then(|rest| rest.get(4..)).unwrap_or_default();
                    if faults.answer.lock().unwrap().take_if(|wanted| tag.strip_suffix(b"\0") == Some(wanted.as_bytes())).is_some() {
                        losing = true;
                    }
                    // Ready for the next query: only now is it sure that this one is committed.
                    if losing && frame[0] == b'Z' {
                        faults.lost.fetch_add(1, Ordering::SeqCst);
                        if faults.stalls.load(Ordering::SeqCst) {
                            std::future::pending::<()>().await;
                        }
                        return;
                    }
                    if !losing && near.write_all(&frame).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// The next whole message of the server: a letter, then its length without it.
fn next_frame(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = u32::from_be_bytes(buffer.get(1..5)?.try_into().unwrap()) as usize + 1;
    (buffer.len() >= length).then(|| buffer.drain(..length).collect())
}

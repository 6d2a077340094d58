//! The bytes of one connection, in and out, each under a time limit.
//!
//! Where it stands: under the session, over TCP or TLS. It must not interpret a reply, and must
//! not let bytes that came in clear be read as if they had come through TLS (CVE-2011-0411).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use postrider::model::Clock;
use postrider::model::clock::within;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, lookup_host};

use super::failure::Cause;
use super::reply::{Reply, ReplyParser};
use super::tls::TlsSetup;

/// Octets asked for in one read.
const READ_SIZE: usize = 4_096;

/// Octets handed over in one write, each under the time limit for a block.
const WRITE_SIZE: usize = 64 * 1_024;

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One connection to the relay.
pub(crate) struct Wire {
    stream: Box<dyn Duplex>,
    encrypted: bool,
    local: IpAddr,
    peer: IpAddr,
    replies: ReplyParser,
    chunk: Box<[u8]>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("encrypted", &self.encrypted).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Wire {
    /// Connects to the first address of `host` that answers, each within `limit`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no connection behind.
    pub(crate) async fn connect(host: &str, port: u16, limit: Duration, clock: &dyn Clock) -> Result<Self, Cause> {
        let found = within(clock, limit, lookup_host((host, port))).await.ok_or(Cause::TimedOut(limit))?;
        let addresses: Vec<SocketAddr> = found.map_err(Cause::Unresolved)?.collect();
        let mut last = Cause::Unresolved(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        for address in addresses {
            match within(clock, limit, TcpStream::connect(address)).await {
                Some(Ok(stream)) => return Self::over_tcp(stream).map_err(Cause::Unreachable),
                Some(Err(error)) => last = Cause::Unreachable(error),
                None => last = Cause::TimedOut(limit),
            }
        }
        Err(last)
    }

    fn over_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            local: stream.local_addr()?.ip().to_canonical(),
            peer: stream.peer_addr()?.ip().to_canonical(),
            stream: Box::new(stream),
            encrypted: false,
            replies: ReplyParser::default(),
            chunk: vec![0; READ_SIZE].into_boxed_slice(),
        })
    }

    /// Goes over to TLS; the server's name and certificate are verified.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(crate) async fn encrypt(self, tls: &TlsSetup, limit: Duration, clock: &dyn Clock) -> Result<Self, Cause> {
        if !self.replies.is_empty() {
            return Err(Cause::Injected);
        }
        let Self { stream, local, peer, replies, chunk, .. } = self;
        let handshake = tls.connector().connect(tls.server_name(), stream);
        let stream = within(clock, limit, handshake).await.ok_or(Cause::TimedOut(limit))?.map_err(Cause::Handshake)?;
        Ok(Self { stream: Box::new(stream), encrypted: true, local, peer, replies, chunk })
    }

    /// True once TLS protects the connection.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// True if the bytes do not leave this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.peer.is_loopback()
    }

    /// Our own address as a literal for EHLO. Source: RFC 5321 §4.1.3.
    pub(crate) fn address_literal(&self) -> String {
        match self.local {
            IpAddr::V4(address) => format!("[{address}]"),
            IpAddr::V6(address) => format!("[IPv6:{address}]"),
        }
    }

    /// The next reply, whole, within `limit`.
    ///
    /// # Cancel safety
    /// A part of a reply that was read is kept; the connection must not be used for another
    /// command all the same, since the reply still belongs to this one.
    pub(crate) async fn reply(&mut self, limit: Duration, clock: &dyn Clock) -> Result<Reply, Cause> {
        within(clock, limit, self.next_reply()).await.unwrap_or(Err(Cause::TimedOut(limit)))
    }

    async fn next_reply(&mut self) -> Result<Reply, Cause> {
        loop {
            if let Some(reply) = self.replies.next_reply().map_err(Cause::Malformed)? {
                return Ok(reply);
            }
            match self.stream.read(&mut self.chunk).await.map_err(Cause::Lost)? {
                0 => {
                    return Err(Cause::Lost(io::Error::new(io::ErrorKind::UnexpectedEof, "the relay closed it")));
                }
                count => self.replies.feed(&self.chunk[..count]),
            }
        }
    }

    /// Writes all bytes, in blocks that each must be taken within `limit`.
    ///
    /// # Cancel safety
    /// Dropping the future may leave a part written: the connection must be closed.
    pub(crate) async fn write(&mut self, bytes: &[u8], limit: Duration, clock: &dyn Clock) -> Result<(), Cause> {
        for block in bytes.chunks(WRITE_SIZE) {
            let written = async {
                self.stream.write_all(block).await?;
                self.stream.flush().await
            };
            within(clock, limit, written).await.ok_or(Cause::TimedOut(limit))?.map_err(Cause::Lost)?;
        }
        Ok(())
    }

    /// True if every byte that was read belongs to a reply that was taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.replies.is_empty()
    }

    /// True if nothing came that nobody asked for: no reply, no end of the connection. What came
    /// is kept for [`Self::reply`]. Case C17.
    ///
    /// # Cancel safety
    /// Completes at the first poll.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        if !self.is_drained() {
            return false;
        }
        let Self { stream, chunk, replies, .. } = self;
        poll_fn(|context| {
            let mut unasked = ReadBuf::new(chunk);
            let found = Pin::new(&mut *stream).poll_read(context, &mut unasked);
            replies.feed(unasked.filled());
            Poll::Ready(found.is_pending())
        })
        .await
    }
}

//! The SMTP conversation: ours, byte by byte, over tokio and rustls.
//!
//! | file | what it does |
//! |---|---|
//! | `reply` | reads replies out of bytes; pure |
//! | `ability` | what EHLO offered; pure |
//! | `classify` | the table: phase and codes to scope and blame; pure |
//! | `failure` | why a conversation ended |
//! | `stream` | bytes in and out, under time limits; TLS |
//! | `tls` | the client's TLS configuration |
//! | `session` | from the connection to a server that is ready for MAIL |
//! | `transaction` | MAIL, RCPT, DATA, the final dot, RSET, QUIT |
//! | `pool` | a bounded number of connections, kept only if they are known to be clean |
//!
//! Nothing in here knows rows, ledgers or outcomes: `attempt` drives it.

pub(crate) mod ability;
pub(crate) mod classify;
pub(crate) mod failure;
pub(crate) mod pool;
pub(crate) mod reply;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod transaction;

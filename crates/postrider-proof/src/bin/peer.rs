//! The outside world of a proof: receives keys, writes each to a file, answers `ok`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use postrider::model::{Clock as _, SystemClock};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// Receives keys on 127.0.0.1 and appends each, as a line, to a file.
#[derive(Debug, Parser)]
struct Arguments {
    /// The file that receives the keys.
    #[arg(long)]
    file: PathBuf,
    /// Milliseconds between writing a key and answering.
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let file = Arc::new(Mutex::new(File::options().create(true).append(true).open(&arguments.file).await?));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let file = Arc::clone(&file);
        let delay = Duration::from_millis(arguments.delay_ms);
        // A sender that dies in the middle is what the proof is about.
        tokio::spawn(async move { receive(stream, &file, delay).await.ok() });
    }
}

async fn receive(stream: TcpStream, file: &Mutex<File>, delay: Duration) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut key = String::new();
    stream.read_line(&mut key).await?;
    if !key.ends_with('\n') {
        return Ok(());
    }
    {
        let mut file = file.lock().await;
        file.write_all(key.as_bytes()).await?;
        file.flush().await?;
    }
    if !delay.is_zero() {
        SystemClock::new().sleep(delay).await;
    }
    stream.write_all(b"ok\n").await
}

//! TLS: from the first byte, by STARTTLS, and never with a peer that is not the relay.

use std::sync::Arc;

use postrider::model::Blame::{Configuration, Nobody};
use postrider::model::FailureScope::Destination;
use postrider_channels::{Credentials, EmailConfig, TlsMode};
use postrider_testkit::smtp::{Answer, Script, Step};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::PrivateKeyDer;

use crate::support::{Post, retry, row, scope, sent};

/// A certificate for `name` from an authority of its own: the server's side, and the root in PEM.
fn identity(name: &str) -> (Arc<ServerConfig>, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    let private_key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private_key)
        .unwrap();
    (Arc::new(config), root.pem())
}

fn trusting(root: String, mode: TlsMode) -> impl FnOnce(EmailConfig) -> EmailConfig {
    move |config| config.tls(mode).extra_roots_pem(root).credentials(Credentials::new("user", "pass"))
}

#[tokio::test]
async fn starttls_encrypts_the_login_and_the_message() {
    for mode in [TlsMode::StartTls, TlsMode::Opportunistic] {
        let (server, root) = identity("127.0.0.1");
        let script = Script::new().starttls(server).abilities(["AUTH PLAIN"]);
        let post = Post::configured(script, trusting(root, mode)).await;
        sent(post.deliver(&row()).await);
        sent(post.deliver(&row()).await);
        let record = post.relay.record();
        let clear: Vec<_> =
            record.commands.iter().filter(|command| !command.encrypted).map(|c| c.line.as_str()).collect();
        assert_eq!(clear, ["EHLO [127.0.0.1]", "STARTTLS"]);
        assert_eq!((record.lines("EHLO").len(), record.lines("AUTH").len(), record.connections), (2, 1, 1));
    }
}

#[tokio::test]
async fn implicit_tls_encrypts_everything() {
    let (server, root) = identity("127.0.0.1");
    let script = Script::new().implicit_tls(server).abilities(["AUTH PLAIN"]);
    let post = Post::configured(script, trusting(root, TlsMode::Implicit)).await;
    sent(post.deliver(&row()).await);
    sent(post.deliver(&row()).await);
    let record = post.relay.record();
    assert!(record.commands.iter().all(|command| command.encrypted));
    assert_eq!((record.connections, record.messages.len()), (1, 2));
}

#[tokio::test]
async fn a_certificate_of_another_name_or_authority_is_not_talked_to() {
    let (other_name, its_root) = identity("other.example");
    let (other_authority, _) = identity("127.0.0.1");
    for (server, mode) in [
        (Arc::clone(&other_name), TlsMode::StartTls),
        (Arc::clone(&other_authority), TlsMode::StartTls),
        (other_name, TlsMode::Opportunistic),
        (other_authority, TlsMode::Implicit),
    ] {
        let script = match mode {
            TlsMode::Implicit => Script::new().implicit_tls(server),
            _ => Script::new().starttls(server).abilities(["AUTH PLAIN"]),
        };
        let post = Post::configured(script, trusting(its_root.clone(), mode)).await;
        let failed = retry(post.deliver(&row()).await);
        assert_eq!((failed.scope, failed.blame), (Destination, Nobody), "{mode:?}");
        assert!(failed.error.contains("TLS"), "{}", failed.error);
        let record = post.relay.record();
        assert!(record.lines("AUTH").is_empty() && record.lines("MAIL").is_empty(), "{mode:?}");
    }
}

#[tokio::test]
async fn without_starttls_nothing_is_sent_where_it_is_required() {
    let post = Post::configured(Script::new().abilities(["AUTH PLAIN"]), |config| {
        config.tls(TlsMode::StartTls).credentials(Credentials::new("user", "pass"))
    })
    .await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Configuration));
    let record = post.relay.record();
    assert!(record.lines("AUTH").is_empty() && record.lines("MAIL").is_empty());

    let post = Post::configured(Script::new(), |config| config.tls(TlsMode::Opportunistic)).await;
    sent(post.deliver(&row()).await);
}

/// CVE-2011-0411: what was slipped in before the handshake is not read as an answer after it.
#[tokio::test]
async fn a_reply_slipped_in_behind_starttls_ends_the_conversation() {
    let (server, root) = identity("127.0.0.1");
    let slipped_in = Answer::bytes("220 go ahead\r\n250-scripted.example\r\n250 AUTH PLAIN\r\n");
    let script = Script::new().starttls(server).always(Step::StartTls, slipped_in);
    let post = Post::configured(script, trusting(root, TlsMode::StartTls)).await;
    assert_eq!(scope(post.deliver(&row()).await), (Destination, Nobody));
    let record = post.relay.record();
    assert!(record.lines("AUTH").is_empty() && record.lines("MAIL").is_empty());
}

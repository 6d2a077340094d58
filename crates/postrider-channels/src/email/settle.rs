//! The settings, checked: what is refused before a single row is taken.
//!
//! Where it stands: between the configuration and everything that uses it. Every refusal names the
//! setting and the remedy. It must not open a connection or resolve a name.

use std::net::IpAddr;
use std::time::Duration;

use postrider::model::{InDoubtPolicy, MailAddress};
use postrider::policy::RetryPolicy;
use postrider::{Error, ErrorKind, Result};

use super::config::{EmailConfig, TlsMode};
use super::mailbox::Mailbox;
use super::smtp::session::Relay;
use super::smtp::tls::TlsSetup;

/// Settings that were checked.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) relay: Relay,
    pub(crate) from: Mailbox,
    pub(crate) message_id_domain: String,
    pub(crate) deadline: Duration,
    pub(crate) retry_policy: RetryPolicy,
    pub(crate) in_doubt_policy: InDoubtPolicy,
    pub(crate) pool_size: usize,
}

impl EmailConfig {
    /// Checks everything.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], naming the setting and the remedy.
    pub(crate) fn settle(self) -> Result<Settled> {
        let from = Mailbox::parse(&self.from)
            .map_err(|cause| misconfigured("from", &cause.to_string(), "write 'Name <address>'").caused_by(cause))?;
        let message_id_domain = match &self.message_id_domain {
            Some(domain) => full_name("message_id_domain", domain)?,
            None => full_name("message_id_domain", from.address().ascii_domain())?,
        };
        let host = relay_host(&self.host)?;
        if self.port == 0 {
            return Err(misconfigured("port", "is 0", "give the relay's port, usually 587 or 465"));
        }
        if self.tls == TlsMode::None && !is_this_machine(&host) && !self.allow_cleartext {
            return Err(misconfigured(
                "tls",
                &format!("is off, and the relay {host} is another machine"),
                "use STARTTLS or implicit TLS, or allow clear text",
            ));
        }
        if let Some(login) = &self.credentials
            && (login.username().is_empty() || login.username().contains('\0') || login.password().contains('\0'))
        {
            return Err(misconfigured(
                "credentials",
                "are empty or hold a NUL character",
                "give a user name and a password",
            ));
        }
        if self.pool_size == 0 || self.pool_size > 1_000 {
            return Err(misconfigured("pool_size", &format!("is {}", self.pool_size), "give 1 to 1,000"));
        }
        for (name, limit) in self.timeouts.named() {
            if limit.is_zero() || limit > self.deadline {
                return Err(misconfigured(
                    name,
                    &format!("is {limit:?}, and a whole delivery may take {:?}", self.deadline),
                    "give more than zero and at most the deadline",
                ));
            }
        }
        let ehlo_name = self.ehlo_name.as_deref().map(|name| full_name("ehlo_name", name)).transpose()?;
        let relay = Relay {
            tls: TlsSetup::new(&host, &self.extra_roots)?,
            host,
            port: self.port,
            mode: self.tls,
            credentials: self.credentials,
            allow_cleartext: self.allow_cleartext,
            ehlo_name,
            timeouts: self.timeouts,
        };
        Ok(Settled {
            relay,
            from,
            message_id_domain,
            deadline: self.deadline,
            retry_policy: self.retry_policy,
            in_doubt_policy: self.in_doubt_policy,
            pool_size: self.pool_size,
        })
    }
}

/// An error that names the setting, what is wrong with it, and what to do.
pub(crate) fn misconfigured(setting: &str, why: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("the e-mail setting {setting}: {why}; {remedy}"))
}

/// A fully qualified domain name in A-labels, or an address literal. Case C19.
fn full_name(setting: &str, name: &str) -> Result<String> {
    let remedy = "give a full domain name such as mail.example.com, or an address literal such as [192.0.2.1]";
    let refused = |why: &str| misconfigured(setting, &format!("{name:?} {why}"), remedy);
    // The rules for a host are those for the domain of an address.
    let checked = MailAddress::parse(&format!("postmaster@{name}"))
        .map_err(|cause| refused("is no domain name").caused_by(cause))?;
    let domain = checked.ascii_domain();
    if domain.starts_with('[') {
        return Ok(domain.to_owned());
    }
    if domain.parse::<IpAddr>().is_ok() {
        return Err(refused("is an IP address without its brackets"));
    }
    if name.contains('@') || !domain.contains('.') {
        return Err(refused("is not fully qualified"));
    }
    Ok(domain.to_owned())
}

/// An IP address, or a DNS name in ASCII.
fn relay_host(host: &str) -> Result<String> {
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<IpAddr>().is_ok() || (host.is_ascii() && !host.is_empty()) {
        return Ok(bare.to_owned());
    }
    let refused =
        misconfigured("relay host", &format!("{host:?} is no name of a host"), "give a DNS name or an IP address");
    match MailAddress::parse(&format!("postmaster@{host}")) {
        Ok(checked) => Ok(checked.ascii_domain().to_owned()),
        Err(cause) => Err(refused.caused_by(cause)),
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::config::{Credentials, Timeouts};
    use super::*;

    fn config() -> EmailConfig {
        EmailConfig::new("relay.example.com", 587, "Shop <shop@example.com>")
    }

    fn refusal(config: EmailConfig) -> String {
        let error = config.settle().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    }

    /// Case C14: never `localhost` on the right-hand side. Case C19: never the machine's own name.
    #[test]
    fn names_are_full_domain_names_or_address_literals() {
        for bad in
            ["GRÜN-PC", "my_host", "localhost", "host.local.", "", "192.0.2.1", "a@example.com", "exa mple.com", "a..b"]
        {
            assert!(refusal(config().ehlo_name(bad)).contains("ehlo_name"), "{bad:?}");
            assert!(refusal(config().message_id_domain(bad)).contains("message_id_domain"), "{bad:?}");
        }
        for (given, kept) in [
            ("app.example.com", "app.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("[192.0.2.1]", "[192.0.2.1]"),
            ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
        ] {
            let settled = config().ehlo_name(given).message_id_domain(given).settle().unwrap();
            assert_eq!(settled.relay.ehlo_name.as_deref(), Some(kept));
            assert_eq!(settled.message_id_domain, kept);
        }
        assert_eq!(config().settle().unwrap().message_id_domain, "example.com");
        assert!(refusal(EmailConfig::new("localhost", 25, "me@localhost")).contains("message_id_domain"));
    }

    #[test]
    fn clear_text_needs_this_machine_or_leave() {
        let clear = |host: &str| EmailConfig::new(host, 25, "shop@example.com").tls(TlsMode::None);
        for host in ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"] {
            assert!(clear(host).settle().is_ok(), "{host}");
        }
        for host in ["relay.example.com", "192.0.2.1", "localhost.example.com"] {
            assert!(refusal(clear(host)).contains("allow clear text"), "{host}");
            assert!(clear(host).allow_cleartext().settle().is_ok(), "{host}");
        }
    }

    /// Case C20: a phase that outlasts the delivery is a mistake.
    #[test]
    fn a_phase_longer_than_the_whole_delivery_is_refused_by_name() {
        let short = config().deadline(Duration::from_secs(599));
        assert!(refusal(short).contains("timeouts.data_end"));
        assert!(refusal(config().timeouts(Timeouts::uniform(Duration::ZERO))).contains("timeouts.slot"));
        assert!(config().settle().is_ok());
    }

    #[test]
    fn every_other_setting_is_refused_by_name_too() {
        for (config, name) in [
            (EmailConfig::new("relay.example.com", 587, "Shop shop@example.com"), "from"),
            (EmailConfig::new("", 587, "shop@example.com"), "relay host"),
            (EmailConfig::new("rel ay", 587, "shop@example.com"), "relay host"),
            (EmailConfig::new("relay.example.com", 0, "shop@example.com"), "port"),
            (config().pool_size(0), "pool_size"),
            (config().credentials(Credentials::new("", "x")), "credentials"),
            (config().credentials(Credentials::new("a\0b", "x")), "credentials"),
            (config().extra_roots_pem("none"), "extra root certificates"),
        ] {
            assert!(refusal(config).contains(name), "{name}");
        }
        assert_eq!(
            EmailConfig::new("bücher.example", 587, "a@b.example").settle().unwrap().relay.host,
            "xn--bcher-kva.example"
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", config().credentials(Credentials::new("user", "hunter2")));
        assert!(shown.contains("user") && !shown.contains("hunter2"));
    }
}

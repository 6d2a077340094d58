//! The client's side of TLS: which roots are trusted, which name must match.
//!
//! Where it stands: made once when the channel is configured, used by every connection. It must
//! not depend on a process-wide default provider, and has no way to switch verification off.

use std::sync::Arc;

use postrider::Result;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;

use crate::email::settle::misconfigured;

/// How to speak TLS with one relay.
#[derive(Debug, Clone)]
pub(crate) struct TlsSetup {
    client: Arc<ClientConfig>,
    server_name: ServerName<'static>,
}

impl TlsSetup {
    /// TLS 1.2 or 1.3 with `host`, trusting Mozilla's roots and those of `extra_roots` (PEM).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](postrider::ErrorKind::Configuration) if a PEM text holds no
    /// usable certificate, or the host is no name that a certificate could carry.
    pub(crate) fn new(host: &str, extra_roots: &[String]) -> Result<Self> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for pem in extra_roots {
            add_roots(&mut roots, pem)?;
        }
        let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| misconfigured("tls", "cannot be set up", "report it").caused_by(cause))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server_name = ServerName::try_from(host.to_owned()).map_err(|cause| {
            misconfigured("relay host", &format!("{host:?} is no name of a host"), "give a DNS name or an IP address")
                .caused_by(cause)
        })?;
        Ok(Self { client: Arc::new(client), server_name })
    }

    /// What makes TLS streams.
    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.client))
    }

    /// The name that the relay's certificate must carry.
    pub(crate) fn server_name(&self) -> ServerName<'static> {
        self.server_name.clone()
    }
}

fn add_roots(roots: &mut RootCertStore, pem: &str) -> Result<()> {
    let refused = |why: &str| misconfigured("extra root certificates", why, "give certificates in PEM");
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|cause| refused(&format!("cannot be read: {cause:?}")))?;
        roots.add(certificate).map_err(|cause| refused("hold a certificate that is no root").caused_by(cause))?;
        found = true;
    }
    if found { Ok(()) } else { Err(refused("hold no certificate")) }
}

#[cfg(test)]
mod tests {
    use postrider::ErrorKind;

    use super::*;

    #[test]
    fn roots_that_are_none_are_refused_by_name() {
        for pem in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let error = TlsSetup::new("relay.example.com", &[pem.to_owned()]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{pem:?}");
            assert!(error.to_string().contains("extra root certificates"), "{error}");
        }
    }
}

//! Whom TLS trusts.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::outcome::EgressError;

/// TLS that trusts the public authorities, and also those of `pem`.
///
/// # Errors
/// [`EgressError::NoCertificate`] if `pem` holds anything but certificates, or none.
pub fn config(pem: Option<&[u8]>) -> Result<ClientConfig, EgressError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(pem) = pem {
        add(&mut roots, pem)?;
    }
    // Named here, instead of the process's default: nothing else decides about this.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| EgressError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), EgressError> {
    let mut any = false;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| EgressError::NoCertificate)?;
        roots
            .add(certificate)
            .map_err(|_| EgressError::NoCertificate)?;
        any = true;
    }
    if any {
        Ok(())
    } else {
        Err(EgressError::NoCertificate)
    }
}

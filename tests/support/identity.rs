//! A certificate for a server on loopback.
//!
//! What comes in: nothing. What goes out: a key with its certificate, under an authority that was made
//! for it alone.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate with its key and its authority. In PEM, where nothing else is said.
pub(crate) struct Identity {
    pub(crate) authority: String,
    pub(crate) authority_der: Vec<u8>,
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) public_key: String,
}

impl Identity {
    /// One for `localhost` and `127.0.0.1`.
    pub(crate) fn create() -> Result<Self> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let key = KeyPair::generate()?;
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
        Ok(Self {
            authority: signed.pem(),
            authority_der: signed.der().to_vec(),
            certificate: certificate.pem(),
            public_key: key.public_key_pem(),
            key: key.serialize_pem(),
        })
    }
}

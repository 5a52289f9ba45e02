//! Who may ask Prometheus, and how it shows who it is.
//!
//! What comes in: what a test wants of both. What goes out: the `web.yml` that makes Prometheus do
//! so, and a client that it answers.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};

/// Who may ask a Prometheus with [`Access::password`].
pub const USER: &str = "reader";
/// The password of [`USER`].
pub const PASSWORD: &str = "open sesame";
/// [`PASSWORD`] as bcrypt has it, at its least cost: no secret.
const PASSWORD_HASH: &str = "$2a$04$uNP5mLq/E0so0FyxJIk45usuANPgt756q4XvU01aORE9UFVmCnNh.";

/// What a Prometheus asks of its clients, and shows them. By default nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access {
    /// It answers [`USER`] with [`PASSWORD`] alone.
    pub password: bool,
    /// It speaks TLS, under an authority of its own, as `localhost` and `127.0.0.1`.
    pub tls: bool,
}

impl Access {
    /// Writes `web.yml` and what it names into `folder`.
    pub(super) fn write(self, identity: Option<&Identity>, folder: &Path) -> Result<()> {
        let mut web = Map::new();
        if self.password {
            let users = json!({USER: PASSWORD_HASH});
            web.insert("basic_auth_users".to_owned(), users);
        }
        if let Some(identity) = identity {
            fs::write(folder.join("server.crt"), &identity.certificate)?;
            fs::write(folder.join("server.key"), &identity.key)?;
            let files = json!({"cert_file": "server.crt", "key_file": "server.key"});
            web.insert("tls_server_config".to_owned(), files);
        }
        // JSON is YAML.
        fs::write(folder.join("web.yml"), Value::from(web).to_string())?;
        Ok(())
    }

    pub(super) fn url(self, address: SocketAddr) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// A client that has what is asked for. It is that of the API server, which knows basic
    /// authentication and foreign authorities, too.
    pub(super) fn client(self, address: SocketAddr, identity: Option<&Identity>) -> Result<Client> {
        let mut config = Config::new(self.url(address).parse()?);
        // Whoever asks polls.
        config.default_retry = false;
        config.root_cert = identity.map(|identity| vec![identity.authority_der.clone()]);
        if self.password {
            config.auth_info.username = Some(USER.to_owned());
            config.auth_info.password = Some(PASSWORD.to_owned().into());
        }
        Ok(Client::try_from(config)?)
    }
}

/// A certificate with its key and its authority. In PEM, where nothing else is said.
pub(super) struct Identity {
    pub(super) authority: String,
    authority_der: Vec<u8>,
    certificate: String,
    key: String,
}

impl Identity {
    pub(super) fn create() -> Result<Self> {
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
            key: key.serialize_pem(),
        })
    }
}

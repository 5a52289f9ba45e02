//! Who may ask Prometheus, and how it shows who it is.
//!
//! What comes in: what a test wants of both. What goes out: the `web.yml` that makes Prometheus do
//! so, and a client that it answers.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use kube::{Client, Config};
use serde_json::{Map, Value, json};

use crate::identity::Identity;

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
        // Those who ask poll.
        config.default_retry = false;
        config.root_cert = identity.map(|identity| vec![identity.authority_der.clone()]);
        if self.password {
            config.auth_info.username = Some(USER.to_owned());
            config.auth_info.password = Some(PASSWORD.to_owned().into());
        }
        Ok(Client::try_from(config)?)
    }
}

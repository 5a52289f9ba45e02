//! The user that a program is in a Gitea, and the Secrets by which it is.
//!
//! What comes in: a repository. What goes out: a user who may write to it, with a token; and Secrets with
//! that, as Flux and as the controller read them.

use anyhow::Result;
use serde_json::{Value, json};

use super::Gitea;

/// What a token needs for pull requests.
pub const SCOPES: [&str; 1] = ["write:repository"];

/// A user who may write to one repository.
#[derive(Clone, Debug)]
pub struct Bot {
    /// The user's name.
    pub name: String,
    /// A token of the user, which is no password elsewhere.
    pub token: String,
    /// The certificate of the authority that the server is trusted by, in PEM.
    authority: String,
}

impl Gitea {
    /// Makes a user who may write to this repository of [`super::OWNER`], and to no other.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn bot(&self, repository: &str) -> Result<Bot> {
        let name = format!("bot-{repository}");
        self.user(&name).await?;
        self.permit(&name, repository, "write").await?;
        let token = self.token(&name, &SCOPES).await?;
        Ok(Bot {
            name,
            token,
            authority: self.authority().to_owned(),
        })
    }
}

impl Bot {
    /// The Secret with which a GitRepository of Flux fetches.
    #[must_use]
    pub fn secret_for_flux(&self, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {
                "username": self.name, "password": self.token, "ca.crt": self.authority,
            },
        })
    }

    /// The Secret with which the controller works on pull requests.
    #[must_use]
    pub fn secret_for_pipelines(&self, name: &str) -> Value {
        let hosts = json!({"sluice.dev/allowed-hosts": "127.0.0.1"});
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "annotations": hosts},
            "stringData": {"token": self.token, "ca.crt": self.authority},
        })
    }
}

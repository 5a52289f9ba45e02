//! The way to forges: with the Secret that a repository names, under the rules of egress.
//!
//! What comes in: a repository as a spec has it, and the namespace of that spec. What goes out: where that is
//! ([`Located`]) and a [`Forge`], or a [`Failure`] in words that fit a status. Secrets are read when they are
//! needed, and not kept; tokens of GitHub Apps are kept for as long as they last.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use sluice_core::delivery::pull_request::Word;
use sluice_crds::pipeline::ForgeType;
use sluice_egress::Egress;
use sluice_egress::secrets::{self, AppKeys, Login, Unread};
use sluice_forges::{Access, Address, App, AppTokens, Forge, Told, Way};
use tokio::time::Instant;

use crate::tell::counters::Counters;

pub(crate) use failure::Failure;
pub use located::Located;
use located::provider;

mod failure;
mod located;

/// Opens the way to repositories.
pub struct Forges {
    client: Client,
    egress: Egress,
    told: Told,
    /// The tokens of GitHub Apps, which last for an hour.
    tokens: AppTokens,
}

impl Forges {
    /// Each request is counted.
    pub(crate) fn new(client: Client, egress: Egress, counters: Arc<Counters>) -> Self {
        Self {
            client,
            egress,
            tokens: AppTokens::default(),
            told: Arc::new(move |host, ended| {
                counters.forge_requests.note(host, ended, Instant::now());
            }),
        }
    }

    /// The repository, as its Secret opens it. No request goes to the forge, unless an App needs a token.
    ///
    /// # Errors
    /// The address or the Secret is not right, or may not be read, or GitHub gives the App no token.
    pub(crate) async fn open(&self, at: &Located, now: Timestamp) -> Result<Forge, Failure> {
        let Located {
            namespace,
            type_,
            url,
            secret,
            ..
        } = at;
        let address = Address::parse(provider(*type_), url);
        let wrong = |error| Failure::new(Word::InvalidSpec, format!("url: {error}"));
        let address = address.map_err(wrong)?;
        let login = secrets::login(&self.client, namespace, secret, url).await;
        let (login, authorities) = login.map_err(unread)?;
        let way = Way {
            egress: self.egress.clone(),
            authorities,
            namespace: namespace.clone(),
            told: Some(Arc::clone(&self.told)),
        };
        let token = match login {
            Login::Token(token) => token,
            Login::App(keys) => {
                let app = app(at, &keys)?;
                self.tokens.token(&app, &address, &way, now).await?
            }
        };
        Ok(Forge::new(address, Access { way, token }))
    }
}

/// The GitHub App whose private key is in the Secret. What the access says of it comes before what the Secret
/// says.
fn app(at: &Located, keys: &AppKeys) -> Result<App, Failure> {
    let wrong = |why: &str| {
        let message = format!("the Secret {}/{}: {why}", at.namespace, at.secret);
        Failure::new(Word::SecretNotUsable, message)
    };
    let (id, installation) = match &at.app {
        Some(app) => (
            Some(app.app_id.to_string()),
            Some(app.installation_id.to_string()),
        ),
        None => (keys.id.clone(), keys.installation.clone()),
    };
    if at.type_ != ForgeType::GitHub {
        return Err(wrong(
            "it has the key of a GitHub App, and the forge is another one; write `token`",
        ));
    }
    let id =
        id.ok_or_else(|| wrong("it has no githubAppID; write that, or githubApp into the access"))?;
    let no_number = |_| wrong("githubAppInstallationID: it is no number");
    let installation = installation.map(|it| it.parse().map_err(no_number));
    App::new(&id, installation.transpose()?, &keys.private_key)
        .map_err(|error| wrong(&error.to_string()))
}

/// What is wrong with a Secret, and who grants the right to read it. That the API server does not answer
/// lasts no longer than that.
fn unread(unread: Unread) -> Failure {
    match unread {
        Unread::NoAnswer(why) => Failure::new(Word::Unanswered, why),
        Unread::NoRight(why) => Failure::new(
            Word::SecretNotUsable,
            format!(
                "{why}, by a Role and a RoleBinding of the controller's account there, which the chart \
                 writes for what `forges.secrets` lists"
            ),
        ),
        Unread::NotUsable(why) => Failure::new(Word::SecretNotUsable, why),
    }
}

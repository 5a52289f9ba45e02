//! The way to forges: with the Secret that a repository names, under the rules of egress.
//!
//! What comes in: a repository as a spec has it, and the namespace of that spec. What goes out: where that is
//! ([`Located`]) and a [`Forge`], or a [`Failure`] in words that fit a status. Secrets are read when they are
//! needed, and not kept; tokens of GitHub Apps are kept for as long as they last. All who use a Secret at a host share
//! its [`Pace`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use sluice_core::delivery::pull_request::Word;
use sluice_crds::pipeline::ForgeType;
use sluice_egress::Egress;
use sluice_egress::secrets::{self, AppKeys, Login, Unread};
use sluice_forges::{Access, Address, App, AppTokens, Forge, Pace, Pacing, Told, Urgency, Way};
use tokio::time::Instant;

use crate::tell::counters::Counters;

pub(crate) use failure::Failure;
pub use located::Located;
use located::{credential, provider};

mod failure;
mod located;

/// Opens the way to repositories.
pub struct Forges {
    client: Client,
    egress: Egress,
    told: Told,
    /// The tokens of GitHub Apps, which last for an hour.
    tokens: AppTokens,
    /// The pace of each credential.
    paces: Mutex<HashMap<String, Arc<Pace>>>,
}

/// The time between two changes on github.com, which asks for that.
const APART: Duration = Duration::from_secs(1);

impl Forges {
    /// Each request is counted.
    pub(crate) fn new(client: Client, egress: Egress, counters: Arc<Counters>) -> Self {
        Self {
            client,
            egress,
            tokens: AppTokens::default(),
            paces: Mutex::default(),
            told: Arc::new(move |host, heard| {
                counters.forge_requests.note(host, heard, Instant::now());
            }),
        }
    }

    /// The repository, as its Secret opens it, for requests that an object of the namespace `by` wants. No request
    /// goes to the forge, unless an App needs a token.
    ///
    /// # Errors
    /// The address or the Secret is not right, or may not be read, or GitHub gives the App no token.
    pub(crate) async fn open(
        &self,
        at: &Located,
        (by, urgency): (&str, Urgency),
        now: Timestamp,
    ) -> Result<Forge, Failure> {
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
            pacing: Pacing {
                pace: self.pace(namespace, secret, address.host()),
                by: by.into(),
                urgency,
            },
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

    /// The pace of a credential, which all who use it share.
    fn pace(&self, namespace: &str, secret: &str, host: &str) -> Arc<Pace> {
        let credential = credential(namespace, secret, host);
        let mut paces = self.paces.lock();
        if !paces.contains_key(&credential) {
            paces.retain(|_, pace| Arc::strong_count(pace) > 1 || !pace.is_idle());
        }
        let apart = match host {
            "github.com" => APART,
            _ => Duration::ZERO,
        };
        let new = || Arc::new(Pace::new(apart));
        Arc::clone(paces.entry(credential).or_insert_with(new))
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

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use sluice_egress::Rules;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn those_who_use_a_secret_at_a_host_share_its_pace() {
        let nobody = service_fn(async |_: Request<Body>| {
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        });
        let egress = Egress::new(Rules::default()).unwrap();
        let forges = Forges::new(Client::new(nobody, "apps"), egress, Arc::default());
        let one = forges.pace("apps", "token", "git.example.com");
        for (namespace, secret, host, is_same) in [
            ("apps", "token", "git.example.com", true),
            ("shop", "token", "git.example.com", false),
            ("apps", "other", "git.example.com", false),
            ("apps", "token", "github.com", false),
        ] {
            let other = forges.pace(namespace, secret, host);
            assert_eq!(
                Arc::ptr_eq(&one, &other),
                is_same,
                "{namespace} {secret} {host}"
            );
        }
        // Those that nobody uses, and that say nothing, make room.
        forges.pace("apps", "another", "git.example.com");
        assert_eq!(forges.paces.lock().len(), 2);
    }
}

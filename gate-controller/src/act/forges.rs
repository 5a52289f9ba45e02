//! The way to forges: with the Secret that a repository names, under the rules of egress.
//!
//! What comes in: a repository as a spec has it, and the namespace of that spec. What goes out: a [`Forge`],
//! or a [`Failure`] in words that fit a status. Secrets are read when they are needed, and not kept.

use std::sync::Arc;

use kube::Client;
use sluice_core::delivery::pull_request::Word;
use sluice_crds::pipeline::ForgeType;
use sluice_crds::pull_request::{Repository, RepositoryKind};
use sluice_egress::Egress;
use sluice_egress::secrets::{self, Unread};
use sluice_forges::{Access, Address, Forge, Provider, Told};
use tokio::time::Instant;

use crate::tell::counters::Counters;

pub(crate) use failure::Failure;

mod failure;

/// Opens the way to repositories.
pub struct Forges {
    client: Client,
    egress: Egress,
    told: Told,
}

impl Forges {
    /// Each request is counted.
    pub(crate) fn new(client: Client, egress: Egress, counters: Arc<Counters>) -> Self {
        Self {
            client,
            egress,
            told: Arc::new(move |host, ended| {
                counters.forge_requests.note(host, ended, Instant::now());
            }),
        }
    }

    /// The host of a repository, by which those who wait for it are kept apart from others: the same
    /// however it is written.
    pub(crate) fn host(repository: &Repository) -> String {
        let Some(RepositoryKind::Address { type_, url, .. }) = repository.kind() else {
            return String::new();
        };
        let address = Address::parse(provider(type_), url);
        address.map_or_else(|_| String::new(), |address| address.host().to_owned())
    }

    /// The repository, as the token in its Secret opens it. No request goes to the forge.
    ///
    /// # Errors
    /// The address or the Secret is not right, or may not be read.
    pub(crate) async fn open(
        &self,
        namespace: &str,
        repository: &Repository,
    ) -> Result<Forge, Failure> {
        let Some(RepositoryKind::Address { type_, url, secret }) = repository.kind() else {
            let message =
                "repository: it is not named by its address; write type, url and secretRef";
            return Err(Failure::new(Word::InvalidSpec, message));
        };
        let address = Address::parse(provider(type_), url);
        let wrong = |error| Failure::new(Word::InvalidSpec, format!("url: {error}"));
        let address = address.map_err(wrong)?;
        let keys = secrets::token(&self.client, namespace, secret, url).await;
        let (credentials, authorities) = keys.map_err(unread)?;
        let access = Access {
            egress: self.egress.clone(),
            credentials,
            authorities,
            namespace: namespace.to_owned(),
            told: Some(Arc::clone(&self.told)),
        };
        Ok(Forge::new(address, access))
    }
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

fn provider(type_: ForgeType) -> Provider {
    match type_ {
        ForgeType::GitHub => Provider::GitHub,
        ForgeType::GitLab => Provider::GitLab,
        ForgeType::Gitea | ForgeType::Forgejo => Provider::Gitea,
        ForgeType::BitbucketServer => Provider::BitbucketServer,
    }
}

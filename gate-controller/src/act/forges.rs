//! The way to forges: with the Secret that a repository names, under the rules of egress.
//!
//! What comes in: a repository as a spec has it, and the namespace of that spec. What goes out: a [`Forge`],
//! or a [`Failure`] in words that fit a status. Secrets are read when they are needed, and not kept.

use std::sync::Arc;

use kube::Client;
use sluice_core::delivery::pull_request::Word;
use sluice_crds::git_repository_access::{GitRepositoryAccess, GitRepositoryAccessSpec};
use sluice_crds::pipeline::ForgeType;
use sluice_crds::pull_request::{Repository, RepositoryKind};
use sluice_egress::Egress;
use sluice_egress::secrets::{self, Unread};
use sluice_forges::{Access, Address, Forge, Provider, Told, Way};
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
        host(type_, url)
    }

    /// The same of what a GitRepositoryAccess names.
    pub(crate) fn host_of_access(access: &GitRepositoryAccess) -> String {
        host(access.spec.provider, &access.spec.url)
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
        self.open_at(namespace, (type_, url), secret).await
    }

    /// The same for what a GitRepositoryAccess names.
    ///
    /// # Errors
    /// The address or the Secret is not right, or may not be read.
    pub(crate) async fn open_access(&self, access: &GitRepositoryAccess) -> Result<Forge, Failure> {
        let namespace = access.metadata.namespace.as_deref().unwrap_or_default();
        let GitRepositoryAccessSpec {
            provider,
            url,
            secret_ref,
            github_app: _,
            interval: _,
            webhook: _,
            allow: _,
            author: _,
        } = &access.spec;
        let secret = &secret_ref.name;
        self.open_at(namespace, (*provider, url), secret).await
    }

    async fn open_at(
        &self,
        namespace: &str,
        (type_, url): (ForgeType, &str),
        secret: &str,
    ) -> Result<Forge, Failure> {
        let address = Address::parse(provider(type_), url);
        let wrong = |error| Failure::new(Word::InvalidSpec, format!("url: {error}"));
        let address = address.map_err(wrong)?;
        let keys = secrets::token(&self.client, namespace, secret, url).await;
        let (token, authorities) = keys.map_err(unread)?;
        let way = Way {
            egress: self.egress.clone(),
            authorities,
            namespace: namespace.to_owned(),
            told: Some(Arc::clone(&self.told)),
        };
        Ok(Forge::new(address, Access { way, token }))
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

fn host(type_: ForgeType, url: &str) -> String {
    let address = Address::parse(provider(type_), url);
    address.map_or_else(|_| String::new(), |address| address.host().to_owned())
}

fn provider(type_: ForgeType) -> Provider {
    match type_ {
        ForgeType::GitHub => Provider::GitHub,
        ForgeType::GitLab => Provider::GitLab,
        ForgeType::Gitea | ForgeType::Forgejo => Provider::Gitea,
        ForgeType::BitbucketServer => Provider::BitbucketServer,
    }
}

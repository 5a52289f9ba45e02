//! The way to forges: with the Secret that a repository names, under the rules of egress.
//!
//! What comes in: a repository as a spec has it, and the namespace of that spec. What goes out: a [`Forge`],
//! or a [`Failure`] in words that fit a status. Secrets are read when they are needed, and not kept.

use jiff::Timestamp;
use kube::Client;
use sluice_crds::pipeline::ForgeType;
use sluice_crds::pull_request::Repository;
use sluice_egress::{Egress, secrets};
use sluice_forges::{Access, Address, Forge, ForgeError, Provider, Trouble, Wait};

/// Opens the way to repositories.
pub struct Forges {
    client: Client,
    egress: Egress,
}

/// Why a forge was not asked, or has not answered.
#[derive(Debug)]
pub(crate) struct Failure {
    /// In a sentence.
    pub(crate) why: String,
    wait: Option<Wait>,
}

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        let why = why.into();
        Self { why, wait: None }
    }

    /// When the forge wants to be asked again, if it says so.
    pub(crate) fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        match self.wait? {
            Wait::For(time) => now.checked_add(time).ok(),
            Wait::Until(at) => Some(at),
            Wait::Unsaid => None,
        }
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        let wait = match error.trouble {
            Trouble::RateLimited(wait) => Some(wait),
            _ => None,
        };
        let why = error.to_string();
        Self { why, wait }
    }
}

impl Forges {
    pub(crate) fn new(client: Client, egress: Egress) -> Self {
        Self { client, egress }
    }

    /// The host of a repository, by which those who wait for it are kept apart from others.
    pub(crate) fn host(url: &str) -> String {
        let url = url.strip_prefix("https://").unwrap_or(url);
        url.split('/').next().unwrap_or_default().to_owned()
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
        let Repository {
            type_,
            url,
            secret_ref,
        } = repository;
        let address = Address::parse(provider(*type_), url);
        let address = address.map_err(|error| Failure::new(format!("url: {error}")))?;
        let secret = &secret_ref.name;
        let keys = secrets::token(&self.client, namespace, secret, url).await;
        let (credentials, authorities) = keys.map_err(|why| Failure::new(told(&why)))?;
        let access = Access {
            egress: self.egress.clone(),
            credentials,
            authorities,
            namespace: namespace.to_owned(),
        };
        Ok(Forge::new(address, access))
    }
}

/// What is wrong with a Secret, and who grants the right to read it.
fn told(why: &str) -> String {
    match why.starts_with(secrets::NO_RIGHT) {
        true => format!(
            "{why}, by a Role and a RoleBinding of the controller's account there, which the chart writes for \
             what `pipelines.secrets` lists"
        ),
        false => why.to_owned(),
    }
}

fn provider(type_: ForgeType) -> Provider {
    match type_ {
        ForgeType::GitHub => Provider::GitHub,
        ForgeType::GitLab => Provider::GitLab,
        ForgeType::Gitea => Provider::Gitea,
        ForgeType::BitbucketServer => Provider::BitbucketServer,
    }
}

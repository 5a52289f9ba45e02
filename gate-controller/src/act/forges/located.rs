//! Where a repository is, and by which Secret it is opened.
//!
//! What comes in: a repository as a spec has it, the namespace of that spec, and the branch that something is to
//! be merged into. What goes out: its address with the Secret, or why that namespace may not use it. Nobody is
//! asked: GitRepositoryAccesses are in memory.

use sluice_core::delivery::git_repository_access;
use sluice_core::delivery::pull_request::Word;
use sluice_core::gate::Named;
use sluice_crds::GitRepositoryAccess;
use sluice_crds::git_repository_access::{AccessReference, Author, GitHubApp};
use sluice_crds::pipeline::ForgeType;
use sluice_crds::pull_request::{Repository, RepositoryKind};
use sluice_forges::{Address, Provider, Signature};

use super::Failure;
use crate::observe::world::World;

/// Who makes the commits of the controller, where nobody says otherwise.
const NAME: &str = "Sluice";
const EMAIL: &str = "noreply@sluice.dev";

/// A repository, and what opens it. Those for whom this is the same see the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Located {
    /// The namespace of the Secret.
    pub(super) namespace: String,
    pub(super) type_: ForgeType,
    pub(super) url: String,
    pub(super) secret: String,
    /// The GitHub App, where the Secret has its key alone.
    pub(super) app: Option<GitHubApp>,
    author: Option<Author>,
}

impl Located {
    /// By its address, with a Secret of the same namespace.
    pub fn at(namespace: &str, type_: ForgeType, url: &str, secret: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            type_,
            url: url.to_owned(),
            secret: secret.to_owned(),
            app: None,
            author: None,
        }
    }

    /// A repository, as those of a namespace may use it to merge into a branch.
    ///
    /// # Errors
    /// It is not named as it has to be, or they may not.
    pub(crate) fn find(
        world: &World,
        namespace: &str,
        repository: &Repository,
        branch: &str,
    ) -> Result<Self, Failure> {
        match repository.kind() {
            Some(RepositoryKind::Address { type_, url, secret }) => {
                Ok(Self::at(namespace, type_, url, secret))
            }
            Some(RepositoryKind::Access(access)) => Self::of(world, namespace, access, branch),
            None => Err(Failure::new(
                Word::InvalidSpec,
                "repository: write repoRef alone, or type, url and secretRef",
            )),
        }
    }

    /// By a GitRepositoryAccess, as it is for its own namespace, which has its Secret.
    pub(crate) fn by(access: &GitRepositoryAccess) -> Self {
        let namespace = access.metadata.namespace.as_deref().unwrap_or_default();
        let spec = &access.spec;
        let (url, secret) = (&spec.url, &spec.secret_ref.name);
        Self {
            app: spec.github_app.clone(),
            author: spec.author.clone(),
            ..Self::at(namespace, spec.provider, url, secret)
        }
    }

    /// By a GitRepositoryAccess that those of a namespace name, to merge into a branch.
    fn of(
        world: &World,
        from: &str,
        access: &AccessReference,
        branch: &str,
    ) -> Result<Self, Failure> {
        let what = format!("to merge into the branch {branch}; write both into its field `allow`");
        let allows = |found: &GitRepositoryAccess, namespace: &str| {
            git_repository_access::allows(found, namespace, from, branch)
        };
        Self::allowed(world, from, access, &what, allows)
    }

    /// The same to tell something about a commit, for which the branch does not matter.
    ///
    /// # Errors
    /// It is not there, or they may not.
    pub(crate) fn to_tell(
        world: &World,
        from: &str,
        access: &AccessReference,
    ) -> Result<Self, Failure> {
        let what = "to use it; write that into its field `allow`";
        let allows = |found: &GitRepositoryAccess, namespace: &str| {
            git_repository_access::allows_namespace(found, namespace, from)
        };
        Self::allowed(world, from, access, what, allows)
    }

    fn allowed(
        world: &World,
        from: &str,
        access: &AccessReference,
        what: &str,
        allows: impl Fn(&GitRepositoryAccess, &str) -> bool,
    ) -> Result<Self, Failure> {
        let namespace = access.namespace.as_deref().unwrap_or(from);
        let it = format!("the GitRepositoryAccess {namespace}/{}", access.name);
        let why = match world.access(from, access) {
            Named::Here(found) if allows(&found, namespace) => return Ok(Self::by(&found)),
            // The same whether or not it is there.
            Named::Forbidden => format!(
                "{it} would be of another namespace, and this controller does not use what is in other \
                 namespaces; create one in the namespace {from}"
            ),
            // Whether it is there is not said to those who may not use it, nor to those of whom that is not
            // known.
            Named::Here(_) | Named::Missing | Named::Unreadable(_) if namespace != from => {
                format!("{it} is not there, or does not allow the namespace {from} {what}")
            }
            Named::Here(_) | Named::Missing => format!("{it} is not there; create it"),
            Named::Unreadable(why) => format!("{it} cannot be read: {why}"),
        };
        Err(Failure::new(Word::AccessNotUsable, why))
    }

    /// What it is asked with, by which those who wait for it are kept apart from others: the same however its
    /// address is written.
    pub(crate) fn credential(&self) -> String {
        let address = Address::parse(provider(self.type_), &self.url);
        let host = address.as_ref().map_or("", Address::host);
        credential(&self.namespace, &self.secret, host)
    }

    /// What names the repository, the same however its address is written. None: that cannot be said.
    pub(crate) fn repository(&self) -> Option<String> {
        let address = Address::parse(provider(self.type_), &self.url).ok()?;
        // No forge has two repositories whose names differ in capitals alone.
        Some(address.clone_url()?.to_lowercase())
    }

    /// Its page.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Who makes the commits of the controller there.
    pub(crate) fn author(&self) -> Signature {
        let author = self.author.as_ref();
        let (name, email) = author.map_or((NAME, EMAIL), |it| (&it.name, &it.email));
        Signature {
            name: name.to_owned(),
            email: email.to_owned(),
        }
    }
}

/// A Secret at a host that it is sent to.
pub(super) fn credential(namespace: &str, secret: &str, host: &str) -> String {
    format!("{namespace}/{secret} at {host}")
}

pub(super) fn provider(type_: ForgeType) -> Provider {
    match type_ {
        ForgeType::GitHub => Provider::GitHub,
        ForgeType::GitLab => Provider::GitLab,
        ForgeType::Gitea | ForgeType::Forgejo => Provider::Gitea,
        ForgeType::BitbucketServer => Provider::BitbucketServer,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use sluice_core::gate::Identity;
    use sluice_core::time::clock::Trust;
    use sluice_crds::GitRepositoryAccess;

    use super::*;
    use crate::cluster::key::{KeyRef, ObjectKey};
    use crate::observe::cache::Seen;
    use crate::observe::world::Standing;

    fn world(crosses: bool) -> World {
        let standing = Standing {
            trust: Trust::Good,
            identity: Identity::Verified,
        };
        World::new(standing, crosses)
    }

    fn holding(world: &World, allow: &Value) {
        let access = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
            "metadata": {"namespace": "platform", "name": "shop"},
            "spec": {
                "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
                "secretRef": {"name": "shop-push"}, "allow": allow,
                "author": {"name": "Release", "email": "release@example.com"},
            },
        });
        let access: GitRepositoryAccess = serde_json::from_value(access).unwrap();
        let key = ObjectKey::of(&access);
        world
            .accesses
            .hold(&key, Some(Seen::Object(Arc::new(access))));
    }

    fn repository(namespace: Option<&str>) -> Repository {
        let (name, namespace) = ("shop".to_owned(), namespace.map(str::to_owned));
        Repository::of(AccessReference { name, namespace })
    }

    #[test]
    fn an_access_opens_with_the_secret_of_its_own_namespace() {
        let world = world(true);
        holding(&world, &json!([]));
        let found = Located::find(&world, "platform", &repository(None), "main").unwrap();
        assert_eq!(
            (found.namespace.as_str(), found.secret.as_str()),
            ("platform", "shop-push")
        );
        assert_eq!(found.credential(), "platform/shop-push at git.example.com");
        assert_eq!(found.author().name, "Release");
        let address = Located::at(
            "platform",
            ForgeType::Gitea,
            "https://git.example.com/a",
            "t",
        );
        assert_eq!(address.author().name, "Sluice");
    }

    #[test]
    fn others_may_use_an_access_for_what_it_allows_them_alone() {
        let world = world(true);
        let allow = json!([{"namespaces": ["apps"], "branches": ["env/*"]}]);
        holding(&world, &allow);
        let find = |from: &str, branch: &str| {
            Located::find(&world, from, &repository(Some("platform")), branch)
        };
        assert!(find("apps", "env/prod").is_ok());
        assert_eq!(find("apps", "env/prod").unwrap().namespace, "platform");
        for (from, branch) in [("apps", "main"), ("other", "env/prod")] {
            let failure = find(from, branch).unwrap_err();
            assert_eq!(failure.word, Word::AccessNotUsable);
            // The same as of one that is not there.
            let absent = Located::find(
                &self::world(true),
                from,
                &repository(Some("platform")),
                branch,
            );
            assert_eq!(failure.why, absent.unwrap_err().why);
        }
        let failure = Located::find(&world, "apps", &repository(None), "env/prod").unwrap_err();
        assert!(
            failure.why.contains("apps/shop is not there"),
            "{}",
            failure.why
        );
    }

    #[test]
    fn to_tell_something_the_branch_does_not_matter() {
        let world = world(true);
        holding(
            &world,
            &json!([{"namespaces": ["apps"], "branches": ["env/*"]}]),
        );
        let access = repository(Some("platform")).repo_ref.unwrap();
        let find = |from: &str| Located::to_tell(&world, from, &access);
        assert!(find("apps").is_ok() && find("platform").is_ok());
        let failure = find("other").unwrap_err();
        assert_eq!(failure.word, Word::AccessNotUsable);
        assert!(
            failure
                .why
                .contains("or does not allow the namespace other")
        );
    }

    #[test]
    fn what_is_wrong_with_an_access_is_told_to_its_own_namespace_alone() {
        let broken = world(true);
        let access = repository(Some("platform"));
        let key = ObjectKey::from(KeyRef {
            namespace: "platform",
            name: "shop",
        });
        let seen = Seen::Unreadable("it has no url".into());
        broken.accesses.hold(&key, Some(seen));
        let why = |world: &World, from: &str| {
            Located::find(world, from, &access, "main").unwrap_err().why
        };
        assert_eq!(why(&broken, "apps"), why(&world(true), "apps"));
        assert!(why(&broken, "platform").contains("it has no url"));
        let (closed, empty) = (world(false), world(false));
        holding(&closed, &json!([]));
        assert_eq!(why(&closed, "apps"), why(&empty, "apps"));
    }

    #[test]
    fn nobody_uses_one_of_another_namespace_where_that_is_switched_off() {
        let world = world(false);
        let allow = json!([{"namespaces": ["apps"], "branches": ["**"]}]);
        holding(&world, &allow);
        let found = Located::find(&world, "apps", &repository(Some("platform")), "env/prod");
        assert_eq!(found.unwrap_err().word, Word::AccessNotUsable);
        assert!(Located::find(&world, "platform", &repository(None), "env/prod").is_ok());
    }
}

//! The PullRequests of a strategy: one for each pull request of an environment, one after another.
//!
//! What comes in: a strategy, one of its environments, which one it is, and its words. What goes out: the
//! PullRequest as it is created; and of any PullRequest whether it is one that a strategy makes: its name, its
//! branches and its key follow from each other.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use sluice_crds::git_repository_access::AccessReference;
use sluice_crds::promotion_strategy::Environment;
use sluice_crds::pull_request::{About, Change, Repository, RepositoryKind, Tree, marks};
use sluice_crds::{PromotionStrategy, PullRequest, PullRequestSpec};

use super::KIND;
use crate::delivery::pull_request::Key;

/// What every branch begins with that brings an environment back. Nobody else pushes to such a branch.
pub const REVERTS: &str = "sluice/revert-";

/// How many hexadecimal digits stand for the branch of an environment in a name.
const DIGITS: usize = 8;

/// The name of a PullRequest: `shop-3f9a1c2b-7`. At most 79 characters.
pub fn name(strategy: &str, branch: &str, n: i64) -> String {
    let key = Key::of(&[branch]).to_string();
    format!("{strategy}-{}-{n}", &key[..DIGITS])
}

/// The key of what a PullRequest of a strategy does: the same act has the same key. None: it does not say which
/// one it is, or names its repository by its address.
pub fn key(namespace: &str, spec: &PullRequestSpec) -> Option<String> {
    let about = &spec.about;
    let access = access(spec)?;
    let (n, access) = (about.run?.to_string(), of(namespace, access));
    let mut parts = vec![namespace, &about.name, &about.environment, &n, &access];
    parts.extend([spec.source_branch.as_str(), &spec.target_branch]);
    let Some(change) = &spec.change else {
        return Some(Key::of(&parts).to_string());
    };
    match change {
        Change::Markers(_) => None,
        Change::Tree(tree) => {
            let date = tree.date.to_string();
            parts.extend([tree.of.as_str(), &tree.parent, &tree.message, &date]);
            Some(Key::of(&parts).to_string())
        }
    }
}

/// The PullRequest that brings what is proposed for an environment into its branch. `n`: which one of the
/// environment it is, more than all before. `dry`: the dry commit that is proposed, if it is known.
pub fn make(
    strategy: &PromotionStrategy,
    environment: &Environment,
    n: i64,
    title: &str,
    description: &str,
    dry: Option<&str>,
) -> PullRequest {
    let source = strategy.spec.proposed_branch(environment);
    made(
        strategy,
        environment,
        (n, dry),
        (title, description),
        (source, None),
    )
}

/// The PullRequest that brings an environment back. `of`: the last part of the name of its branch, which was
/// never used before. `dry`: the dry commit that it goes back to.
pub fn make_revert(
    strategy: &PromotionStrategy,
    environment: &Environment,
    (n, dry): (i64, Option<&str>),
    words: (&str, &str),
    (of, tree): (&str, Tree),
) -> PullRequest {
    let branch = (format!("{REVERTS}{of}"), Some(Change::Tree(tree)));
    made(strategy, environment, (n, dry), words, branch)
}

fn made(
    strategy: &PromotionStrategy,
    environment: &Environment,
    (n, dry): (i64, Option<&str>),
    (title, description): (&str, &str),
    (source_branch, change): (String, Option<Change>),
) -> PullRequest {
    let metadata = &strategy.metadata;
    let of = metadata.name.clone().unwrap_or_default();
    let name = name(&of, &environment.branch, n);
    let mut spec = PullRequestSpec {
        repository: Repository::of(strategy.spec.repo_ref.clone()),
        source_branch,
        target_branch: environment.branch.clone(),
        title: title.to_owned(),
        description: description.to_owned(),
        change,
        about: About {
            kind: KIND.to_owned(),
            name: of,
            environment: environment.branch.clone(),
            revision: dry.map(str::to_owned),
            run: Some(n),
            key: String::new(),
        },
        suspend: false,
        close: None,
    };
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    spec.about.key = key(namespace, &spec).unwrap_or_default();
    let mut made = PullRequest::new(&name, spec);
    made.metadata = ObjectMeta {
        namespace: metadata.namespace.clone(),
        owner_references: owner(strategy).map(|owner| vec![owner]),
        labels: metadata.labels.clone(),
        annotations: mark(strategy).map(|mark| BTreeMap::from([(marks::LABELS.to_owned(), mark)])),
        ..made.metadata
    };
    made
}

/// Whether a PullRequest is one that a strategy makes: it merges into the branch of its environment, from a
/// branch that others push to or from one of ours that nobody else has, and its name and its key follow from
/// that. Another one was made by somebody else.
pub fn is_whole(object: &PullRequest) -> bool {
    let (metadata, spec) = (&object.metadata, &object.spec);
    let about = &spec.about;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let Some(n) = about.run else {
        return false;
    };
    let is_revert = spec.source_branch.starts_with(REVERTS);
    let is_branch_right = match &spec.change {
        None => !is_revert && spec.source_branch != spec.target_branch,
        Some(Change::Tree(_)) => is_revert,
        Some(Change::Markers(_)) => false,
    };
    about.kind == KIND
        && is_branch_right
        && spec.target_branch == about.environment
        && metadata.name.as_deref() == Some(&name(&about.name, &about.environment, n))
        && key(namespace, spec).as_ref() == Some(&about.key)
}

/// Whether a strategy still promotes to that environment in the way of this PullRequest.
pub(in crate::delivery) fn is_same_way(object: &PullRequest, strategy: &PromotionStrategy) -> bool {
    let spec = &object.spec;
    let mut all = strategy.spec.environments.iter();
    let environment = all.find(|it| it.branch == spec.target_branch);
    let is_source_right = |it: &Environment| match &spec.change {
        None => spec.source_branch == strategy.spec.proposed_branch(it),
        Some(_) => true,
    };
    environment.is_some_and(is_source_right) && access(spec) == Some(&strategy.spec.repo_ref)
}

fn access(spec: &PullRequestSpec) -> Option<&AccessReference> {
    match spec.repository.kind()? {
        RepositoryKind::Access(access) => Some(access),
        RepositoryKind::Address { .. } => None,
    }
}

fn of(namespace: &str, access: &AccessReference) -> String {
    let namespace = access.namespace.as_deref().unwrap_or(namespace);
    format!("{namespace}/{}", access.name)
}

/// The keys of the labels that a PullRequest has from its strategy. None: it has none.
fn mark(strategy: &PromotionStrategy) -> Option<String> {
    let keys = strategy.metadata.labels.iter().flatten();
    let keys: Vec<_> = keys.map(|(key, _)| key.as_str()).collect();
    (!keys.is_empty()).then(|| keys.join(","))
}

/// None: it was never created, as in a file.
fn owner(strategy: &PromotionStrategy) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: PromotionStrategy::api_version(&()).into_owned(),
        kind: KIND.to_owned(),
        name: strategy.metadata.name.clone()?,
        uid: strategy.metadata.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn strategy() -> PromotionStrategy {
        serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {
                "namespace": "apps", "name": "shop", "uid": "u", "labels": {"team": "a", "tier": "b"},
            },
            "spec": {
                "repoRef": {"name": "shop"},
                "environments": [{"branch": "env/dev"}, {"branch": "env/prod"}],
            },
        }))
        .unwrap()
    }

    fn proposed() -> PullRequest {
        let strategy = strategy();
        let prod = &strategy.spec.environments[1];
        make(&strategy, prod, 7, "Promote", "It waits.", Some("c0ffee"))
    }

    fn reverting() -> PullRequest {
        let strategy = strategy();
        let prod = &strategy.spec.environments[1];
        let tree = Tree {
            of: "a".repeat(40),
            parent: "b".repeat(40),
            message: "Go back\n".to_owned(),
            date: 1_000,
        };
        let words = ("Go back", "");
        make_revert(&strategy, prod, (8, None), words, ("shop-x7", tree))
    }

    #[test]
    fn what_is_made_is_whole_and_belongs_to_its_strategy() {
        let object = proposed();
        assert!(is_whole(&object) && is_same_way(&object, &strategy()));
        assert_eq!(
            object.metadata.name.as_deref(),
            Some(name("shop", "env/prod", 7).as_str())
        );
        let PullRequestSpec {
            source_branch,
            target_branch,
            change,
            about,
            ..
        } = &object.spec;
        assert_eq!(
            (source_branch.as_str(), target_branch.as_str(), change),
            ("env/prod-next", "env/prod", &None)
        );
        assert_eq!((about.kind.as_str(), about.run), (KIND, Some(7)));
        assert_eq!(about.key.len(), 12);
        let owner = &object.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.kind.as_str(), owner.name.as_str()), (KIND, "shop"));
        let marks = object.metadata.annotations.as_ref().unwrap();
        assert_eq!(marks[marks::LABELS], "team,tier");
        let revert = reverting();
        assert!(is_whole(&revert) && is_same_way(&revert, &strategy()));
        assert_eq!(revert.spec.source_branch, "sluice/revert-shop-x7");
    }

    /// They are found by these: they must never change.
    #[test]
    fn names_stay_the_same() {
        assert_eq!(name("shop", "env/prod", 7), "shop-717d96ab-7");
    }

    #[test]
    fn what_it_shows_makes_it_no_other_one() {
        let mut object = proposed();
        object.spec.title = "Another".to_owned();
        object.spec.description = "Another".to_owned();
        object.spec.about.revision = None;
        assert!(is_whole(&object));
    }

    #[rstest]
    #[case::another_name(|it: &mut PullRequest| it.metadata.name = Some("shop-1".into()))]
    #[case::another_namespace(|it: &mut PullRequest| it.metadata.namespace = Some("other".into()))]
    #[case::another_kind(|it: &mut PullRequest| it.spec.about.kind = "Pipeline".into())]
    #[case::another_owner(|it: &mut PullRequest| it.spec.about.name = "other".into())]
    #[case::another_number(|it: &mut PullRequest| it.spec.about.run = Some(9))]
    #[case::no_number(|it: &mut PullRequest| it.spec.about.run = None)]
    #[case::another_environment(|it: &mut PullRequest| it.spec.about.environment = "env/dev".into())]
    #[case::another_source(|it: &mut PullRequest| it.spec.source_branch = "evil".into())]
    #[case::another_target(|it: &mut PullRequest| it.spec.target_branch = "main".into())]
    #[case::another_access(|it: &mut PullRequest| it.spec.repository.repo_ref.as_mut().unwrap().name = "other".into())]
    #[case::of_another_namespace(|it: &mut PullRequest| it.spec.repository.repo_ref.as_mut().unwrap().namespace = Some("other".into()))]
    #[case::no_access(|it: &mut PullRequest| it.spec.repository.repo_ref = None)]
    fn one_that_no_strategy_makes_is_not_whole(#[case] forge: fn(&mut PullRequest)) {
        for mut object in [proposed(), reverting()] {
            forge(&mut object);
            assert!(!is_whole(&object), "{object:?}");
        }
    }

    #[test]
    fn a_commit_goes_to_a_branch_of_ours_alone() {
        let whole = |mut object: PullRequest| {
            object.spec.about.key = key("apps", &object.spec).unwrap_or_default();
            is_whole(&object)
        };
        let mut object = reverting();
        object.spec.source_branch = "env/prod-next".to_owned();
        assert!(!whole(object));
        let mut object = proposed();
        object.spec.source_branch = "sluice/revert-shop-x7".to_owned();
        assert!(!whole(object.clone()));
        object.spec.source_branch = object.spec.target_branch.clone();
        assert!(!whole(object));
        // Another tree is another act.
        let mut object = reverting();
        if let Some(Change::Tree(tree)) = &mut object.spec.change {
            tree.of = "c".repeat(40);
        }
        assert!(!is_whole(&object));
        assert!(whole(object));
    }

    #[rstest]
    #[case::suffix(|it: &mut PromotionStrategy| it.spec.proposed_branch_suffix = "-new".into())]
    #[case::environment(|it: &mut PromotionStrategy| it.spec.environments.truncate(1))]
    #[case::access(|it: &mut PromotionStrategy| it.spec.repo_ref.name = "other".into())]
    fn a_strategy_that_promotes_in_another_way_is_told_apart(
        #[case] change: fn(&mut PromotionStrategy),
    ) {
        let mut strategy = strategy();
        change(&mut strategy);
        assert!(!is_same_way(&proposed(), &strategy));
    }
}

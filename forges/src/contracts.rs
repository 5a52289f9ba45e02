//! The contracts with forges that no test runs: `contracts/<provider>/<subject>.yaml`.
//!
//! Each file is a list of scenarios, written from the forge's public documentation: what is asked for, the
//! requests that have to follow in exactly this order, their replies, and what comes of it. They are replayed
//! by a server over TLS that refuses whatever is not the next one: another path, query, header or body.
//!
//! In the texts, `<a>` is the id of a commit: forty times that digit.

pub(crate) mod replay;
mod scenario;
mod shown;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use scenario::Scenario;

use crate::address::Provider;

const PROVIDERS: [(&str, Provider); 4] = [
    ("github", Provider::GitHub),
    ("gitlab", Provider::GitLab),
    ("gitea", Provider::Gitea),
    ("bitbucket-server", Provider::BitbucketServer),
];

/// The scenarios of a provider, each with a name that says where it stands.
fn scenarios(folder: &str) -> Vec<(String, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("contracts")
        .join(folder);
    let files = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let list: Vec<Scenario> = serde_saphyr::from_str(&whole(&text))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        all.extend(
            list.into_iter()
                .map(|one| (format!("{stem}: {}", one.says), one)),
        );
    }
    all
}

/// With the ids of commits in full.
fn whole(text: &str) -> String {
    let digits = '0'..='f';
    let digits = digits.filter(char::is_ascii_hexdigit);
    digits.fold(text.to_owned(), |text, digit| {
        text.replace(&format!("<{digit}>"), &digit.to_string().repeat(40))
    })
}

async fn holds(folder: &str) {
    let (_, provider) = PROVIDERS
        .into_iter()
        .find(|(name, _)| *name == folder)
        .unwrap();
    let mut broken = Vec::new();
    for (name, scenario) in scenarios(folder) {
        let expected = scenario.outcome.clone();
        let (outcome, wrong) = replay::play(provider, scenario).await;
        if let Some(wrong) = wrong {
            broken.push(format!("{name}\n  {wrong}"));
        } else if outcome != expected {
            broken.push(format!(
                "{name}\n  expected {expected}\n  and got  {outcome}"
            ));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[tokio::test]
async fn github_is_asked_as_it_documents() {
    holds("github").await;
}

#[tokio::test]
async fn gitlab_is_asked_as_it_documents() {
    holds("gitlab").await;
}

#[tokio::test]
async fn gitea_is_asked_as_it_was_observed() {
    holds("gitea").await;
}

#[tokio::test]
async fn bitbucket_is_asked_as_it_documents() {
    holds("bitbucket-server").await;
}

/// Gitea has a real server for this (`tests/forge`).
#[test]
fn each_operation_of_each_forge_has_a_contract() {
    for (folder, provider) in PROVIDERS {
        let scenarios = scenarios(folder);
        let seen: BTreeSet<_> = scenarios
            .iter()
            .map(|(_, one)| one.call.operation())
            .collect();
        if provider != Provider::Gitea {
            assert_eq!(seen.len(), scenario::OPERATIONS, "{folder}: only {seen:?}");
        }
        for (name, scenario) in &scenarios {
            assert!(scenario.source.starts_with("https://"), "{folder}: {name}");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_not_the_next_one_breaks_a_contract() {
    let breaks = async |folder: &str, change: fn(&mut Scenario)| {
        let (_, provider) = PROVIDERS
            .into_iter()
            .find(|(name, _)| *name == folder)
            .unwrap();
        let all = scenarios(folder);
        let (_, mut scenario) = all
            .into_iter()
            .find(|(_, one)| one.call.operation() == "open")
            .unwrap();
        change(&mut scenario);
        replay::play(provider, scenario).await.1
    };
    for folder in ["github", "gitlab", "bitbucket-server"] {
        assert_eq!(breaks(folder, |_| {}).await, None);
        let path = breaks(folder, |one| one.exchanges[0].request += "x").await;
        assert!(path.unwrap().contains("instead of"));
        let body = breaks(folder, |one| one.exchanges[0].body = Some("{}".into())).await;
        assert!(body.unwrap().contains("instead of"));
        let more = breaks(folder, |one| one.exchanges.push(one.exchanges[0].clone())).await;
        assert!(more.unwrap().contains("was not asked for"));
        let fewer = breaks(folder, |one| one.exchanges.clear()).await;
        assert!(fewer.unwrap().contains("nothing more"));
    }
}

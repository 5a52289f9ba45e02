//! What is wrong with a commit status, also where the API server would have refused it.

use sluice_crds::{CommitStatus, CommitStatusSpec};

use crate::text::names::{LABEL_LENGTH, is_sha, subdomain};
use crate::text::refusal::{Refusal, Refusals};

/// What names begin with that the controller gives.
const OWN: &str = "sluice/";

/// Everything that is wrong with a CommitStatus, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &CommitStatus) -> Result<(), Refusals> {
    let CommitStatusSpec {
        repo_ref: _,
        sha,
        name,
        phase: _,
        description: _,
        url,
        expires_at: _,
    } = &object.spec;
    let mut mistakes = Vec::new();
    let called = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", called, LABEL_LENGTH, &mut mistakes);
    if !is_sha(sha) {
        mistakes.push(Refusal::new(
            "spec.sha",
            format!("`{sha}` is not the id of a commit"),
            "write all its 40 hexadecimal digits",
        ));
    }
    if is_own(name) {
        mistakes.push(Refusal::new(
            "spec.name",
            format!("names that begin with `{OWN}` are the controller's"),
            "write another one",
        ));
    } else if name.trim().is_empty() || name.contains(char::is_control) {
        mistakes.push(Refusal::new(
            "spec.name",
            "a forge shows nothing by that name",
            "write such as load-test",
        ));
    }
    let is_address = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    if url.as_ref().is_some_and(|url| !is_address(url)) {
        mistakes.push(Refusal::new(
            "spec.url",
            "it is no address",
            "write one that begins with https:// or http://",
        ));
    }
    Refusals::unless_empty(mistakes, ())
}

/// Whether a name is one of those that the controller gives.
pub(super) fn is_own(name: &str) -> bool {
    let own = OWN.chars();
    let begins = lowered(name).take(OWN.len());
    own.eq(begins)
}

/// Whether two names are the same for a forge: GitHub does not tell capital letters from small ones.
pub fn is_same_name(one: &str, other: &str) -> bool {
    lowered(one).eq(lowered(other))
}

fn lowered(name: &str) -> impl Iterator<Item = char> {
    name.trim().chars().flat_map(char::to_lowercase)
}

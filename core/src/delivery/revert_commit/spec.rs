//! What is wrong with a revert, also where the API server would have refused it.

use sluice_crds::{RevertCommit, RevertCommitSpec};

use crate::text::names::{LABEL_LENGTH, is_branch, is_sha, subdomain};
use crate::text::refusal::{Refusal, Refusals};

/// Everything that is wrong with a RevertCommit, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &RevertCommit) -> Result<(), Refusals> {
    let RevertCommitSpec {
        repo_ref: _,
        active_branch,
        from,
        dry_sha,
        hydrated_sha,
        fixed_by,
        merge: _,
        reason,
        by,
    } = &object.spec;
    let mut mistakes = Vec::new();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", name, LABEL_LENGTH, &mut mistakes);
    let mut wrong = |field: &str, problem: String, remedy: &str| {
        mistakes.push(Refusal::new(field, problem, remedy));
    };
    if !is_branch(active_branch) {
        let problem = format!("`{active_branch}` is not the name of a branch");
        let remedy = "write that of an environment, such as env/prod";
        wrong("spec.activeBranch", problem, remedy);
    }
    for (field, sha) in [
        ("spec.from", Some(from)),
        ("spec.drySHA", Some(dry_sha)),
        ("spec.hydratedSHA", hydrated_sha.as_ref()),
        ("spec.fixedBy", fixed_by.as_ref()),
    ] {
        if let Some(sha) = sha.filter(|sha| !is_sha(sha)) {
            let problem = format!("`{sha}` is not the id of a commit");
            wrong(field, problem, "write all its 40 hexadecimal digits");
        }
    }
    if hydrated_sha.as_ref() == Some(from) {
        let problem = "it is the commit that is taken back".to_owned();
        let remedy = "write the one to go back to, or leave it out";
        wrong("spec.hydratedSHA", problem, remedy);
    }
    // Everything that was taken back descends from where it goes back to.
    if fixed_by.as_ref() == Some(dry_sha) {
        let problem = "it is the commit to go back to, which fixes nothing".to_owned();
        let remedy = "write the dry commit that fixes what was wrong";
        wrong("spec.fixedBy", problem, remedy);
    }
    for (field, text) in [("spec.reason", reason), ("spec.by", by)] {
        if text.trim().is_empty() {
            wrong(
                field,
                "it says nothing".to_owned(),
                "write who takes it back, and why",
            );
        }
    }
    Refusals::unless_empty(mistakes, ())
}

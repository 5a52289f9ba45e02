//! What people read on a pull request, and about what waits.

use sluice_crds::{PromotionStrategy, RevertCommitSpec};

use super::checks::short;
use super::tips::{Dry, Tip};
use crate::delivery::pull_request::words::{code, harmless};
use crate::text::words::clean;

/// The most characters of what others say.
pub(super) const LONGEST: usize = 500;
/// The most bytes of a title, in which every forge takes it as a whole.
const LONGEST_TITLE: usize = 250;

/// What a pull request is about.
pub(super) struct About<'a> {
    pub(super) object: &'a PromotionStrategy,
    pub(super) branch: &'a str,
    pub(super) tip: &'a Tip,
    pub(super) replaces: Option<&'a Tip>,
}

/// One line of plain text.
pub(super) fn title(about: &About<'_>) -> String {
    let dry = about.tip.dry.known().unwrap_or(&about.tip.sha);
    let mut title = format!("Promote {} to {}", short(dry), harmless(about.branch));
    // It is ASCII.
    title.truncate(LONGEST_TITLE);
    title
}

/// Some lines of Markdown, in which nothing that others wrote means anything.
pub(super) fn description(about: &About<'_>) -> String {
    let metadata = &about.object.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let branch = code(about.branch, LONGEST);
    let mut text = match about.tip.dry.known() {
        Some(dry) => format!(
            "Brings what was made of the commit {} to {branch}.\n",
            code(dry, 64)
        ),
        None => format!("Brings what is proposed to {branch}.\n"),
    };
    if let Some(said) = &about.tip.said {
        let lines = [("Commit", &said.subject), ("Author", &said.author)];
        for (what, value) in lines {
            let line = value
                .as_ref()
                .map(|value| format!("\n- {what}: {}", code(value, LONGEST)));
            text.push_str(&line.unwrap_or_default());
        }
    }
    if let Some(Dry::Known(before)) = about.replaces.map(|tip| &tip.dry) {
        text.push_str(&format!("\n- Replaces: {}", code(before, 64)));
    }
    text.push_str(&format!(
        "\n\nSluice has opened this pull request, and merges it when every rule of the PromotionStrategy \
         {} lets it. The commit status {} says what it waits for, and so does\n\n    kubectl gate why -n \
         {namespace} promotionstrategy/{name} {}\n",
        code(&format!("{namespace}/{name}"), LONGEST),
        code(&about.object.spec.status_name, LONGEST),
        clean(about.branch, LONGEST),
    ));
    text
}

/// The title and the text of the pull request of a revert.
pub(super) fn of_revert(branch: &str, spec: &RevertCommitSpec) -> (String, String) {
    let mut title = format!(
        "Bring {} back to {}",
        harmless(branch),
        short(&spec.dry_sha)
    );
    title.truncate(LONGEST_TITLE);
    let description = format!(
        "Brings {} back to what was made of the commit {}.\n\n- Asked for by: {}\n- Reason: {}\n\nSluice has \
         opened this pull request. What it takes back is held until the RevertCommit is deleted, or names the \
         commit that fixes it.\n",
        code(branch, LONGEST),
        code(&spec.dry_sha, 64),
        code(&spec.by, LONGEST),
        code(&spec.reason, LONGEST),
    );
    (title, description)
}

//! The address that is asked, as far as its template says nothing of one commit.

use super::{INSTEAD, Theirs};

/// Whether each branch has an address of its own.
pub(super) fn names_branch(template: &str) -> bool {
    fields(template).any(|field| field == BRANCH)
}

const BRANCH: &str = ".Branch";

/// # Errors
/// It needs something that is not known here.
pub(super) fn of(
    template: &str,
    theirs: &Theirs,
    strategy: Option<&Theirs>,
    branch: &str,
) -> Result<String, String> {
    let name = theirs.names("promotionStrategyRef");
    let repository = strategy.map_or("", |it| it.names("gitRepositoryRef"));
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once("{{") {
        let (field, after) = from.split_once("}}").unwrap_or((from, ""));
        url += before;
        url += match trimmed(field) {
            BRANCH => branch,
            ".PromotionStrategy.Name" => name,
            ".PromotionStrategy.Namespace" => &theirs.namespace,
            ".PromotionStrategy.Spec.RepositoryReference.Name" => repository,
            other => {
                return Err(format!(
                    "its address is made from `{other}`, and a gatekeeper over http asks one address. {INSTEAD}"
                ));
            }
        };
        rest = after;
    }
    Ok(url + rest)
}

fn fields(template: &str) -> impl Iterator<Item = &str> {
    let parts = template.split("{{").skip(1);
    parts.map(|it| trimmed(it.split("}}").next().unwrap_or_default()))
}

/// Without the blanks and signs that say which blanks around it are left out.
fn trimmed(field: &str) -> &str {
    field.trim_matches('-').trim()
}

//! What is wrong with an access, also where the API server would have refused it.

use sluice_crds::GitRepositoryAccess;
use sluice_crds::git_repository_access::{Allowed, GitRepositoryAccessSpec};
use sluice_crds::pipeline::ForgeType;

use super::{LEAST, MOST};
use crate::text::names::{LABEL_LENGTH, is_label, subdomain};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;

#[cfg(test)]
mod tests;

/// Everything that is wrong with a GitRepositoryAccess, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &GitRepositoryAccess) -> Result<(), Refusals> {
    let GitRepositoryAccessSpec {
        provider,
        url,
        secret_ref,
        github_app,
        interval,
        webhook,
        allow,
        author,
    } = &object.spec;
    let mut mistakes = Vec::new();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", name, LABEL_LENGTH, &mut mistakes);
    self::url(url, &mut mistakes);
    if github_app.is_some() && *provider != ForgeType::GitHub {
        mistakes.push(Refusal::new(
            "spec.githubApp",
            "only GitHub has Apps",
            "remove it, or write provider: github",
        ));
    }
    match duration::parse(interval) {
        Err(problem) => {
            mistakes.push(Refusal::new("spec.interval", problem, duration::REMEDY));
        }
        Ok(interval) if !(LEAST..=MOST).contains(&interval) => mistakes.push(Refusal::new(
            "spec.interval",
            "it is no duration between 10s and 1h",
            "write one, such as 1m",
        )),
        Ok(_) => {}
    }
    if webhook.as_ref().map(|it| &it.secret_ref) == Some(secret_ref) {
        mistakes.push(Refusal::new(
            "spec.webhook.secretRef",
            "who sets up the webhook sees this token, so that it must not be what opens the repository",
            "name another Secret",
        ));
    }
    for (place, allowed) in allow.iter().enumerate() {
        self::allowed(place, allowed, &mut mistakes);
    }
    if let Some(author) = author
        && !is_author(&author.name, &author.email)
    {
        mistakes.push(Refusal::new(
            "spec.author",
            "it cannot be the author of a commit",
            "write a name without < and >, and an address such as sluice@example.com",
        ));
    }
    Refusals::unless_empty(mistakes, ())
}

fn url(url: &str, mistakes: &mut Vec<Refusal>) {
    if !url.starts_with("https://") {
        mistakes.push(Refusal::new(
            "spec.url",
            "forges are asked over https alone",
            "write https://...",
        ));
    } else if url.contains(['@', '?', '#']) {
        mistakes.push(Refusal::new(
            "spec.url",
            "there is a user or a query in it",
            "write the address alone; the Secret has what opens the repository",
        ));
    }
}

fn allowed(place: usize, allowed: &Allowed, mistakes: &mut Vec<Refusal>) {
    let Allowed {
        namespaces,
        branches,
    } = allowed;
    let field = format!("spec.allow[{place}]");
    let mut wrong = |field: String, problem: String, remedy: &str| {
        mistakes.push(Refusal::new(field, problem, remedy));
    };
    let is_namespace = |it: &String| it.len() <= LABEL_LENGTH && is_label(it);
    if namespaces.is_empty() {
        let field = format!("{field}.namespaces");
        wrong(field, "there is none".to_owned(), "write at least one");
    }
    if let Some(place) = namespaces.iter().position(|it| !is_namespace(it)) {
        let problem = format!("`{}` is not the name of a namespace", namespaces[place]);
        let remedy = "write its name; no pattern is read here";
        wrong(format!("{field}.namespaces[{place}]"), problem, remedy);
    }
    if branches.is_empty() {
        let field = format!("{field}.branches");
        wrong(field, "there is none".to_owned(), "write at least one");
    }
    let is_pattern = |it: &String| !it.is_empty() && !it.contains(char::is_whitespace);
    if let Some(place) = branches.iter().position(|it| !is_pattern(it)) {
        let problem = format!("`{}` is no branch", branches[place]);
        let remedy = "write a branch, or a pattern such as env/*";
        wrong(format!("{field}.branches[{place}]"), problem, remedy);
    }
}

fn is_author(name: &str, email: &str) -> bool {
    let is_name =
        !name.trim().is_empty() && !name.contains(|c: char| "<>".contains(c) || c.is_control());
    let is_part = |part: &str| {
        !part.is_empty() && !part.contains(|c: char| "<>@".contains(c) || c.is_whitespace())
    };
    let parts = email.split_once('@');
    is_name && parts.is_some_and(|(user, host)| is_part(user) && is_part(host))
}

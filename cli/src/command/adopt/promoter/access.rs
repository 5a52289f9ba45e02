//! A GitRepository with its ScmProvider, as a GitRepositoryAccess.

use serde_json::{Value, json};

use super::theirs::{Found, Theirs};
use crate::converted::{Converted, Notes, ours};

/// A forge that both know.
struct Forge {
    /// What both objects call it, and what ours calls it.
    name: &'static str,
    /// Where it is, if nothing is said.
    host: Option<&'static str>,
    /// Which field says whose the repository is.
    owner: &'static str,
}

const FORGES: [Forge; 4] = [
    Forge {
        name: "github",
        host: Some("github.com"),
        owner: "owner",
    },
    Forge {
        name: "gitlab",
        host: Some("gitlab.com"),
        owner: "namespace",
    },
    Forge {
        name: "gitea",
        host: None,
        owner: "owner",
    },
    Forge {
        name: "forgejo",
        host: None,
        owner: "owner",
    },
];

/// Those that ours does not know.
const OTHERS: [(&str, &str); 3] = [
    ("bitbucketCloud", "Bitbucket Cloud"),
    ("azureDevOps", "Azure DevOps"),
    ("fake", "the fake forge of its tests"),
];

/// # Errors
/// What is wrong, a line for each mistake.
pub(super) fn access(theirs: &Theirs, found: &Found) -> Result<Converted, Vec<String>> {
    let mut notes = theirs.notes();
    let spec = access_spec(theirs, found, &mut notes).unwrap_or_default();
    let key = (theirs.namespace.as_str(), theirs.name.as_str());
    let metadata = &theirs.value["metadata"];
    notes.finish(ours("GitRepositoryAccess", key, metadata, &spec))
}

/// None: what is wrong is told.
fn access_spec(theirs: &Theirs, found: &Found, notes: &mut Notes) -> Option<Value> {
    let spec = theirs.spec();
    let provider = provider(theirs, found, notes)?;
    let forge = FORGES.iter().find(|it| !spec[it.name].is_null());
    let Some(forge) = forge else {
        let other = OTHERS.iter().find(|(field, _)| !spec[*field].is_null());
        let called = other.map_or("what it names", |(_, called)| called);
        let remedy = "Sluice knows github, gitlab, gitea, forgejo and bitbucket-server, which is Bitbucket Data \
                      Center: leave its strategies to GitOps Promoter, or move the repository";
        notes.refuse(
            "spec",
            &format!("{called} is no forge that is known"),
            remedy,
        );
        return None;
    };
    notes.rest("spec", spec, &[forge.name, "scmProviderRef"]);
    let at = &provider.spec()[forge.name];
    if at.is_null() {
        let problem = format!("{provider} is of another forge");
        let remedy = format!("name one that has the field {}", forge.name);
        notes.refuse("spec.scmProviderRef", &problem, &remedy);
        return None;
    }
    let host = at["domain"].as_str().filter(|host| !host.is_empty());
    let Some(host) = host.or(forge.host) else {
        let problem = format!("{provider} does not say where the forge is");
        let remedy = format!("write spec.{}.domain there", forge.name);
        notes.refuse("spec.scmProviderRef", &problem, &remedy);
        return None;
    };
    let repository = &spec[forge.name];
    let text = |field: &str| repository[field].as_str().unwrap_or_default();
    let (owner, name) = (text(forge.owner), text("name"));
    let secret = secret(theirs, provider, host, notes)?;
    let mut own = json!({
        "provider": forge.name, "url": format!("https://{host}/{owner}/{name}.git"),
        "secretRef": {"name": secret},
    });
    match forge.name {
        "github" => app(at, secret, &mut own, notes),
        "gitea" | "forgejo" => notes.note(format!(
            "if the Secret {secret} has username and password, the password has to be a token"
        )),
        _ => {}
    }
    Some(own)
}

/// Whether it says where a forge is, and by which Secret.
pub(super) fn is_provider(theirs: &Theirs) -> bool {
    ["ScmProvider", "ClusterScmProvider"].contains(&theirs.kind.as_str())
}

/// Whether a GitRepository names this provider.
pub(super) fn is_at(repository: &Theirs, provider: &Theirs) -> bool {
    let (kind, namespace, name) = named(repository);
    (&*provider.kind, &*provider.namespace, &*provider.name) == (kind, namespace, name)
}

/// The kind, the namespace and the name of the provider of a GitRepository.
fn named(repository: &Theirs) -> (&str, &str, &str) {
    let reference = &repository.spec()["scmProviderRef"];
    let kind = reference["kind"].as_str().unwrap_or("ScmProvider");
    let namespace = match kind {
        "ClusterScmProvider" => "",
        _ => repository.namespace.as_str(),
    };
    (kind, namespace, repository.names("scmProviderRef"))
}

fn provider<'f>(theirs: &Theirs, found: &'f Found, notes: &mut Notes) -> Option<&'f Theirs> {
    let (kind, namespace, name) = named(theirs);
    let provider = found.find(kind, namespace, name);
    if provider.is_none() {
        let problem = format!("there is no {kind} {name} in these files");
        notes.refuse(
            "spec.scmProviderRef",
            &problem,
            "name the file that has it, too",
        );
    }
    provider
}

/// The name of the Secret, with what has to be done about it.
fn secret<'p>(
    theirs: &Theirs,
    provider: &'p Theirs,
    host: &str,
    notes: &mut Notes,
) -> Option<&'p str> {
    let secret = provider.names("secretRef");
    if secret.is_empty() {
        let problem = format!("{provider} names no Secret");
        notes.refuse(
            "spec.scmProviderRef",
            &problem,
            "write spec.secretRef.name there",
        );
        return None;
    }
    let namespace = &theirs.namespace;
    if provider.namespace.is_empty() {
        notes.note(format!(
            "copy the Secret {secret} of the {provider} from the namespace of GitOps Promoter to {namespace}: a \
             Secret is read only beside the access that names it"
        ));
    }
    notes.note(format!(
        "the Secret {namespace}/{secret} needs the annotation sluice.dev/allowed-hosts: {host}, and the value \
         forges.secrets of the chart has to name it"
    ));
    Some(secret)
}

/// The GitHub App, as far as it is known.
fn app(at: &Value, secret: &str, own: &mut Value, notes: &mut Notes) {
    notes.note("the App needs the permission Commit statuses: write; it needs Checks no more");
    let app = &at["appID"];
    match at["installationID"].as_i64().filter(|id| *id > 0) {
        Some(installation) => {
            own["githubApp"] = json!({"appID": app, "installationID": installation});
        }
        None => notes.note(format!(
            "write the key githubAppID with the value {app} into the Secret {secret}: its installation is found \
             by the repository"
        )),
    }
}

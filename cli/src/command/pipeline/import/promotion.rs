//! How Weave promotes, as we write it.

use serde_json::{Value, json};

use super::work::Work;

/// The forges that both know.
const FORGES: [&str; 3] = ["github", "gitlab", "bitbucket-server"];
/// What stands for the files that have to be named.
const UNNAMED: &str = "name-the-files-with-markers.yaml";

pub(super) fn promotion(path: &str, value: &Value, work: &mut Work<'_>) -> Value {
    work.notes.rest(
        path,
        value,
        &["manual", "strategy", "notification", "pull-request"],
    );
    for older in ["notification", "pull-request"] {
        if !value[older].is_null() && value["strategy"].is_null() {
            let field = format!("{path}.{older}");
            let shown = match older {
                "notification" => "{notification: {}}",
                _ => "{pull-request: {...}}",
            };
            let remedy = format!("write promotion: {{strategy: {shown}}}");
            work.notes.refuse(&field, "this is the older form", &remedy);
        }
    }
    let mut own =
        json!({"strategy": strategy(&format!("{path}.strategy"), &value["strategy"], work)});
    if value["manual"] == true {
        own["manual"] = true.into();
    }
    own
}

fn strategy(path: &str, value: &Value, work: &mut Work<'_>) -> Value {
    work.notes
        .rest(path, value, &["pull-request", "notification", "secretRef"]);
    let mut own = json!({});
    if !value["pull-request"].is_null() {
        let path = format!("{path}.pull-request");
        own["pull-request"] = pull_request(&path, &value["pull-request"], work);
    }
    if !value["notification"].is_null() {
        own["notification"] = json!({"involvedObject": "Pipeline"});
        work.notes.note(
            "notifications are about the Pipeline: Alerts of Flux know no such kind unless their \
             definition is patched; if yours is not, write involvedObject: Application, where the app is \
             in the namespace and cluster of this Pipeline",
        );
    }
    if let Some(secret) = value["secretRef"]["name"].as_str() {
        own["secretRef"] = json!({"name": secret});
        work.notes.note(format!(
            "approvals by webhook are signed otherwise than Weave's: those who call it have to sign the \
             time, the method, the path and the body with the key `hmac-key` of the Secret {}/{secret}, and \
             the value check.approvals of the chart has to name it",
            work.key.0
        ));
    }
    own
}

fn pull_request(path: &str, value: &Value, work: &mut Work<'_>) -> Value {
    work.notes
        .rest(path, value, &["type", "url", "baseBranch", "secretRef"]);
    let forge = value["type"].as_str().unwrap_or_default();
    if !FORGES.contains(&forge) {
        let problem = format!("`{forge}` is no forge that is known");
        let remedy = "write github, gitlab, gitea or bitbucket-server";
        work.notes.refuse(&format!("{path}.type"), &problem, remedy);
    }
    let url = value["url"].as_str().unwrap_or_default();
    if !url.starts_with("https://") {
        let problem = format!("`{url}` is no address over https");
        let remedy = "forges are asked over https alone; write https://...";
        work.notes.refuse(&format!("{path}.url"), &problem, remedy);
    }
    if let Some(secret) = value["secretRef"]["name"].as_str() {
        work.tokens.insert(secret.to_owned());
    }
    let mut paths = work.written.to_vec();
    if paths.is_empty() {
        paths.push(UNNAMED.to_owned());
        let (namespace, name) = work.key.clone();
        work.notes.note(format!(
            "write into {path}.paths the files whose values are marked with {{\"$promotion\": \
             \"{namespace}:{name}:ENVIRONMENT\"}}: only those are read, and {UNNAMED} is none of them"
        ));
    }
    let mut own = json!({
        "type": forge, "url": url, "paths": paths, "secretRef": {"name": value["secretRef"]["name"]},
    });
    if let Some(branch) = value["baseBranch"].as_str().filter(|it| !it.is_empty()) {
        own["baseBranch"] = branch.into();
    }
    own
}

//! What an image of ours must be: pinned, small, without a shell, and not root.

use crate::dockerfile::{Dockerfile, Stage};

/// Labels that anyone who finds the image needs.
const LABELS: [&str; 5] = ["title", "description", "licenses", "version", "revision"];

/// Every rule that `file` breaks, as a sentence. None: all is well.
pub fn broken(file: &Dockerfile) -> Vec<String> {
    let mut broken = Vec::new();
    for stage in &file.stages {
        if !is_pinned(&stage.image) {
            broken.push(format!("{}: moves; name a version", stage.image));
        }
        for add in stage.all("ADD") {
            broken.push(format!("ADD {}: write COPY", add.rest));
        }
    }
    for path in file.copied_from_outside() {
        if path.is_empty() || path.starts_with('.') || path.contains(['*', '?', '[']) {
            broken.push(format!(
                "COPY {path}: copies everything; name what is needed"
            ));
        }
    }
    broken.extend(builds(file));
    broken.extend(final_stage(file.last_stage()));
    broken
}

/// A digest is a pin, and so is a tag with a version in it. Distroless has the version in the
/// name: its tags are variants.
fn is_pinned(image: &str) -> bool {
    if image.contains("@sha256:") {
        return true;
    }
    let name_starts = image.rfind('/').map_or(0, |slash| slash + 1);
    let Some((name, tag)) = image[name_starts..].split_once(':') else {
        return false;
    };
    let has_version = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    tag != "latest"
        && (has_version(tag) || image.starts_with("gcr.io/distroless/") && has_version(name))
}

fn builds(file: &Dockerfile) -> Vec<String> {
    let runs: Vec<_> = file
        .stages
        .iter()
        .flat_map(|stage| stage.all("RUN"))
        .collect();
    let mut broken: Vec<_> = runs
        .iter()
        .filter(|run| run.rest.contains("cargo build") && !run.rest.contains("--locked"))
        .map(|run| format!("RUN {}: cargo build needs --locked", run.rest))
        .collect();
    if !runs.iter().any(|run| run.rest.contains("cargo build")) {
        broken.push("no cargo build: what is the image of?".to_owned());
    }
    if !runs.iter().any(|run| run.rest.contains("! grep INTERP")) {
        broken.push("nothing checks that the program is static".to_owned());
    }
    broken
}

fn final_stage(stage: &Stage) -> Vec<String> {
    let mut broken = Vec::new();
    let shell =
        !stage.image.starts_with("gcr.io/distroless/static") || stage.image.contains("debug");
    if shell || stage.all("RUN").next().is_some() {
        broken.push(format!(
            "{}: has a shell; use distroless/static",
            stage.image
        ));
    }
    // By number: the kubelet cannot tell whether a name is root, and refuses to start it.
    let user = stage
        .all("USER")
        .last()
        .map_or("root", |user| user.rest.as_str());
    let number = user.split(':').next().and_then(|id| id.parse::<u32>().ok());
    if number.is_none_or(|id| id == 0) {
        broken.push(format!("runs as {user}: write USER and a number above 0"));
    }
    match stage.all("ENTRYPOINT").last() {
        None => broken.push("no ENTRYPOINT".to_owned()),
        Some(entry) if !entry.rest.starts_with('[') => {
            broken.push(format!(
                "ENTRYPOINT {}: needs a shell; write it as a list",
                entry.rest
            ));
        }
        Some(_) => {}
    }
    let labels: String = stage
        .all("LABEL")
        .map(|label| label.rest.as_str())
        .collect();
    for label in LABELS.map(|label| format!("org.opencontainers.image.{label}")) {
        if !labels.contains(&format!("{label}=")) {
            broken.push(format!("no label {label}"));
        }
    }
    broken
}

//! The chart: rendered by Helm as users render it, or its policies alone without Helm.
//!
//! What comes in: `charts/gate-controller`, a release's name and values. What goes out: the
//! objects that an installation would apply.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::apply::{self, Document};
use crate::progress::Progress;
use crate::tools;

/// The program, and the folder in `control-plane/` that pins it.
const HELM: &str = "helm";

/// The version of Kubernetes that a chart may ask about: that of the local control plane. Helm
/// would else assume the one that it was built with, which an old Helm has from old times.
const KUBE_VERSION: &str = "1.36.1";

/// Helm 3 or 4.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
}

/// An installation of the chart.
#[derive(Clone, Debug)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// The namespace it is installed in.
    pub namespace: String,
    /// The values that differ from the chart's own.
    pub values: Value,
}

impl Default for Release {
    /// As the plain files in `policies/` expect it, with the chart's own values.
    fn default() -> Self {
        Self {
            name: "gate-controller".to_owned(),
            namespace: "sluice-system".to_owned(),
            values: Value::Object(serde_json::Map::new()),
        }
    }
}

impl Helm {
    /// Finds Helm on the `PATH`, else in the cache, else builds it there: two minutes, the first
    /// time.
    ///
    /// # Errors
    ///
    /// Where it has to be built: see [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        if let Some(program) = tools::on_path(HELM) {
            return Ok(Self { program });
        }
        let program = tools::ensure(HELM, progress)?.join(HELM);
        Ok(Self { program })
    }

    /// Renders the chart as `helm install` would.
    ///
    /// # Errors
    ///
    /// With what Helm said: if the values are refused, or a template fails.
    pub fn template(&self, release: &Release) -> Result<Vec<Document>> {
        // JSON is YAML.
        let mut values = tempfile::NamedTempFile::new()?;
        values.write_all(release.values.to_string().as_bytes())?;
        let output = Command::new(&self.program)
            .arg("template")
            .arg(&release.name)
            .arg(chart())
            .args(["--kube-version", KUBE_VERSION])
            .args(["--namespace", &release.namespace])
            .arg("--values")
            .arg(values.path())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm template failed: {said}");
        let yaml = String::from_utf8(output.stdout).context("helm template wrote no text")?;
        apply::parse(&yaml, "charts/gate-controller")
    }
}

/// The folder of the chart.
#[must_use]
pub fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/gate-controller")
}

/// The chart's admission policies without Helm, for a controller that acts under `usernames`.
///
/// # Errors
///
/// If the files cannot be read.
pub fn policies(usernames: &[&str]) -> Result<Vec<Document>> {
    let mut documents = apply::read(&chart().join("policies"))?;
    // A JSON list of strings is also a CEL list of strings.
    let list = serde_json::to_string(usernames)?;
    for document in &mut documents {
        let variables = document.object.data.pointer_mut("/spec/variables");
        let variables = variables
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for variable in variables.filter(|variable| variable["name"] == "controllers") {
            variable["expression"] = Value::from(list.as_str());
        }
        let conditions = document.object.data.pointer_mut("/spec/matchConditions");
        let conditions = conditions
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for condition in conditions.filter(|condition| condition["name"] == "not-the-controllers") {
            let expression = format!("!(request.userInfo.username in {list})");
            condition["expression"] = Value::from(expression);
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_know_the_users_that_they_are_given() {
        let documents = policies(&["demo", "o'hara \"q\""]).unwrap();
        let expressions: Vec<_> = documents
            .iter()
            .filter_map(|document| document.object.data.pointer("/spec/variables/0"))
            .filter(|variable| variable["name"] == "controllers")
            .map(|variable| variable["expression"].as_str().unwrap())
            .collect();
        assert_eq!(expressions, [r#"["demo","o'hara \"q\""]"#; 3]);
        let conditions: Vec<_> = documents
            .iter()
            .filter_map(|document| document.object.data.pointer("/spec/matchConditions/0"))
            .filter(|condition| condition["name"] == "not-the-controllers")
            .map(|condition| condition["expression"].as_str().unwrap())
            .collect();
        let expected = r#"!(request.userInfo.username in ["demo","o'hara \"q\""])"#;
        assert_eq!(conditions, [expected; 2]);
    }
}

//! Findings in forms for programs.
//!
//! What comes in: findings. What goes out: JSON of our own; SARIF 2.1.0, which code scanning reads; or
//! commands of a GitHub workflow, which become annotations of the lines.

use std::path::{Component, Path};

use anyhow::Result;
use clap::ValueEnum;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::files::{Finding, STDIN};

/// A form for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Json,
    Sarif,
    Github,
}

impl Form {
    /// The findings, with a line break at the end.
    ///
    /// # Errors
    /// They cannot be written so.
    pub(crate) fn text(self, findings: &[&Finding]) -> Result<String> {
        Ok(match self {
            Form::Json => {
                let all: Vec<Value> = findings.iter().map(|finding| json(finding)).collect();
                serde_json::to_string_pretty(&all)? + "\n"
            }
            Form::Sarif => serde_json::to_string_pretty(&sarif(findings))? + "\n",
            Form::Github => findings.iter().map(|finding| github(finding)).collect(),
        })
    }
}

/// `error`: admission or the controller would refuse it. `warning`: it may well be meant.
fn level(finding: &Finding) -> &'static str {
    if finding.refused { "error" } else { "warning" }
}

fn json(finding: &Finding) -> Value {
    let (place, what) = (&finding.place, &finding.what);
    json!({
        "file": place.origin, "line": place.line, "document": place.document,
        "level": level(finding), "object": finding.object,
        "field": what.field, "problem": what.problem, "remedy": what.remedy,
    })
}

fn sarif(findings: &[&Finding]) -> Value {
    let results: Vec<Value> = findings.iter().map(|finding| result(finding)).collect();
    let rule = |id: &str, text: &str, help: &str| {
        json!({
            "id": id, "shortDescription": {"text": text}, "fullDescription": {"text": text},
            "help": {"text": help},
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-gate", "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    rule(
                        "error",
                        "Admission or the controller would refuse it.",
                        "Each message says what to write instead.",
                    ),
                    rule(
                        "warning",
                        "It may well be meant, and is worth a look.",
                        "Each message says what to write if it is not meant.",
                    ),
                ],
            }},
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let place = &finding.place;
    let mut result = json!({
        "ruleId": level(finding), "level": level(finding),
        "message": {"text": finding.message()},
    });
    // Standard input is nowhere.
    if let Some(uri) = uri(&place.origin) {
        result["locations"] = json!([{"physicalLocation": {
            "artifactLocation": {"uri": uri}, "region": {"startLine": place.line},
        }}]);
    }
    result
}

/// What stands as it is in a segment of a URI's path.
const IN_SEGMENTS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path as a URI: relative to the folder of the repository if it is relative, else with `file:`.
fn uri(origin: &str) -> Option<String> {
    if origin == STDIN {
        return None;
    }
    let segments = Path::new(origin)
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
    let segments = segments.map(|it| utf8_percent_encode(&it, IN_SEGMENTS).to_string());
    let path = segments.collect::<Vec<_>>().join("/");
    Some(match Path::new(origin).is_absolute() {
        true => format!("file:///{path}"),
        false => path,
    })
}

fn github(finding: &Finding) -> String {
    let place = &finding.place;
    let (file, line) = (property(&place.origin), place.line);
    let message = escaped(&finding.message());
    format!("::{} file={file},line={line}::{message}\n", level(finding))
}

/// What a line of such commands may hold.
fn escaped(text: &str) -> String {
    let text = text.replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

//! `cargo xtask generate`: the files that are made from the code.
//!
//! What comes in: the types of the API, the plugin, and the chart. What goes out: each generated file, written or, with
//! `--check`, compared with what lies in the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use kube::ResourceExt;
use serde_json::Value;
use sluice_tests::apply;
use sluice_tests::programs::Program;

use crate::cargo::{output, program, root};

mod install;
mod pictures;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a file differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// A file as it must be.
struct Generated {
    /// Below the folder of the workspace.
    path: PathBuf,
    content: String,
}

/// Folders in which every file is generated: others are left over from a kind that is gone.
const FOLDERS: [&str; 2] = ["crds/yaml", "charts/gate-controller/files/crds"];

/// Everything that is generated.
fn all() -> Result<Vec<Generated>> {
    let mut files = of_code()?;
    files.extend(of_chart()?);
    Ok(files)
}

/// What is made of the code and of files that people write. A new kind of file is one more list here.
fn of_code() -> Result<Vec<Generated>> {
    let mut files = custom_resource_definitions()?;
    files.extend(said_by_kubectl_gate()?);
    files.push(openapi()?);
    files.push(admission_policies()?);
    files.push(audit()?);
    files.extend(pictures::files()?);
    Ok(files)
}

/// What is made of the chart, which holds some of the others.
fn of_chart() -> Result<Vec<Generated>> {
    Ok(vec![install::file()?])
}

/// What the controller serves to those who ask.
fn openapi() -> Result<Generated> {
    let document = gate_controller::serve::openapi::document();
    let content = serde_json::to_string_pretty(&document)? + "\n";
    let path = "docs/reference/openapi.json".into();
    Ok(Generated { path, content })
}

/// What the chart's admission policies check and where, for the controller and the plugin to compare
/// with what is installed.
fn admission_policies() -> Result<Generated> {
    let documents = apply::read(&root().join("charts/gate-controller/policies"))?;
    let mut specs: BTreeMap<String, BTreeMap<&str, &Value>> = BTreeMap::new();
    for document in &documents {
        let object = &document.object;
        let part = match object.types.as_ref().map(|types| types.kind.as_str()) {
            Some("ValidatingAdmissionPolicy") => "policy",
            Some("ValidatingAdmissionPolicyBinding") => "binding",
            _ => continue,
        };
        let parts = specs.entry(object.name_any()).or_default();
        parts.insert(part, &object.data["spec"]);
    }
    let content = serde_json::to_string_pretty(&specs)? + "\n";
    let path = "core/src/operation/policies/shipped.json".into();
    Ok(Generated { path, content })
}

/// The form of the audit log's lines.
fn audit() -> Result<Generated> {
    let content = serde_json::to_string_pretty(&sluice_crds::audit::schema())? + "\n";
    let path = "docs/reference/audit.schema.json".into();
    Ok(Generated { path, content })
}

/// What the plugin says of itself, and the picture that it draws of an example. The week of the
/// picture is past, so that no mark for the present moves through it.
fn said_by_kubectl_gate() -> Result<Vec<Generated>> {
    let program = program(Program::KubectlGate)?;
    let picture = "calendar -f examples/no-deploy-fridays.yaml --from 2026-06-15T00:00:00+01:00 \
                   --days 7 -o svg";
    [
        ("docs/reference/kubectl-gate.md", "markdown-help"),
        ("docs/pictures/calendar.svg", picture),
    ]
    .map(|(path, arguments)| {
        let mut command = Command::new(&program);
        command
            .current_dir(root())
            .args(arguments.split_whitespace());
        let content = output(&mut command)?;
        Ok(Generated {
            path: path.into(),
            content,
        })
    })
    .into_iter()
    .collect()
}

/// The definitions, for `kubectl apply` and for the chart.
fn custom_resource_definitions() -> Result<Vec<Generated>> {
    let mut files = Vec::new();
    for definition in sluice_crds::all() {
        let name = definition.name_any();
        let plural = &definition.spec.names.plural;
        let yaml = serde_saphyr::to_string(&definition)
            .with_context(|| format!("cannot write {name} as YAML"))?;
        let content = format!("# Made by `cargo xtask generate`: change the code instead.\n{yaml}");
        for path in [
            format!("crds/yaml/{}_{plural}.yaml", sluice_crds::GROUP),
            format!("charts/gate-controller/files/crds/{plural}.yaml"),
        ] {
            files.push(Generated {
                path: path.into(),
                content: content.clone(),
            });
        }
    }
    Ok(files)
}

/// Writes all files, or checks them.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let note = if arguments.check {
        check()?
    } else {
        write_all(root())?
    };
    println!("{note}");
    Ok(())
}

/// Checks that all files are as they would be written.
pub(crate) fn check() -> Result<String> {
    let files = all()?;
    let different = compare(root(), &files)?;
    ensure!(
        different.is_empty(),
        "generated files are out of date: run cargo xtask generate\n  {}",
        different.join("\n  "),
    );
    Ok(format!("{} files up to date", files.len()))
}

fn write_all(root: &Path) -> Result<String> {
    let mut files = of_code()?;
    let mut written = write(root, &files)?;
    let rendered = of_chart()?;
    written += write(root, &rendered)?;
    files.extend(rendered);
    let removed = remove_left_over(root, &files)?;
    Ok(format!(
        "{} files, {written} of them written, {removed} left over and removed",
        files.len(),
    ))
}

/// Writes those that differ, and says how many did.
fn write(root: &Path, files: &[Generated]) -> Result<usize> {
    let mut written = 0;
    for file in files {
        let path = root.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|present| present == file.content) {
            continue;
        }
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder)?;
        fs::write(&path, &file.content)
            .with_context(|| format!("cannot write {}", path.display()))?;
        written += 1;
    }
    Ok(written)
}

fn remove_left_over(root: &Path, files: &[Generated]) -> Result<usize> {
    let left_over = left_over(root, files)?;
    for path in &left_over {
        fs::remove_file(root.join(path))?;
    }
    Ok(left_over.len())
}

/// One line for each file that is not as it should be.
fn compare(root: &Path, files: &[Generated]) -> Result<Vec<String>> {
    let mut different = Vec::new();
    for file in files {
        let name = file.path.display();
        match fs::read_to_string(root.join(&file.path)) {
            Err(error) => different.push(format!("{name}: {error}")),
            Ok(present) if present == file.content => {}
            Ok(present) => {
                different.push(format!("{name}: {}", difference(&present, &file.content)));
            }
        }
    }
    let left_over = left_over(root, files)?;
    different.extend(
        left_over
            .iter()
            .map(|path| format!("{}: left over", path.display())),
    );
    Ok(different)
}

/// Where two texts part.
fn difference(present: &str, right: &str) -> String {
    let mut pairs = present.lines().zip(right.lines()).enumerate();
    match pairs.find(|(_, (present, right))| present != right) {
        Some((index, (present, right))) => {
            format!("line {} is {present:?}, should be {right:?}", index + 1)
        }
        None => format!(
            "{} lines, should be {}",
            present.lines().count(),
            right.lines().count()
        ),
    }
}

/// Files in [`FOLDERS`] that nothing generates any more.
fn left_over(root: &Path, files: &[Generated]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in FOLDERS.map(Path::new) {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = folder.join(entry?.file_name());
            if files.iter().all(|file| file.path != path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    fn one_file() -> Vec<Generated> {
        vec![Generated {
            path: "crds/yaml/one.yaml".into(),
            content: "a: 1\nb: 2\n".to_owned(),
        }]
    }

    #[test]
    fn the_yaml_means_what_the_code_means() {
        let files = custom_resource_definitions().unwrap();
        for definition in sluice_crds::all() {
            let end = format!("{}.yaml", definition.spec.names.plural);
            let ours = files
                .iter()
                .filter(|file| file.path.to_string_lossy().ends_with(&end));
            let read = ours.map(|file| serde_saphyr::from_str(&file.content).unwrap());
            let read: Vec<CustomResourceDefinition> = read.collect();
            assert_eq!(read, [definition.clone(), definition]);
        }
    }

    #[test]
    fn what_differs_is_named_with_its_first_line() {
        let root = tempfile::tempdir().unwrap();
        let missing = compare(root.path(), &one_file()).unwrap();
        assert!(
            missing[0].starts_with("crds/yaml/one.yaml: No such file"),
            "{missing:?}"
        );

        write(root.path(), &one_file()).unwrap();
        assert!(compare(root.path(), &one_file()).unwrap().is_empty());

        let path = root.path().join("crds/yaml/one.yaml");
        fs::write(&path, "a: 1\nb: 3\n").unwrap();
        let different = compare(root.path(), &one_file()).unwrap();
        let expected = r#"crds/yaml/one.yaml: line 2 is "b: 3", should be "b: 2""#;
        assert_eq!(different, [expected]);
        fs::write(&path, "a: 1\n").unwrap();
        let different = compare(root.path(), &one_file()).unwrap();
        assert_eq!(different, ["crds/yaml/one.yaml: 1 lines, should be 2"]);
    }

    #[test]
    fn a_file_of_a_kind_that_is_gone_is_removed() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &one_file()).unwrap();
        fs::write(root.path().join("crds/yaml/old.yaml"), "").unwrap();
        let different = compare(root.path(), &one_file()).unwrap();
        assert_eq!(different, ["crds/yaml/old.yaml: left over"]);
        assert_eq!(remove_left_over(root.path(), &one_file()).unwrap(), 1);
        assert!(compare(root.path(), &one_file()).unwrap().is_empty());
    }
}

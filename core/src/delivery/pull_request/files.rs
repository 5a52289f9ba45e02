//! What a PullRequest makes of the files of a repository.
//!
//! What comes in: its spec, and its files as they are. What goes out: those that change, or that all of
//! them have the change already, or why nothing is changed, with the name of the file.

use sluice_crds::PullRequestSpec;
use sluice_crds::pull_request::Change;

use super::Promotion;
use super::marker::{Edited, Mistake, edited};
use crate::revision::{REMEDY, Revision};

/// The files that change, by their place in the list of files, with their new text.
pub type Changed = Vec<(usize, String)>;

/// The paths of the files that a PullRequest may change.
pub fn paths(spec: &PullRequestSpec) -> &[String] {
    match &spec.change {
        Some(Change::Markers(markers)) => &markers.paths,
        Some(Change::Tree(_)) | None => &[],
    }
}

/// What becomes of the files, which are in the order of [`paths`]. Nothing at all: they have the change
/// already. A file without a mark is left alone if another one has it.
///
/// # Errors
/// No file is marked, or one cannot be changed: which, why, and what to write.
pub fn changed(spec: &PullRequestSpec, files: &[Vec<u8>]) -> Result<Changed, String> {
    let Some(Change::Markers(markers)) = &spec.change else {
        return Err("change: it has no markers, so that no file is changed".to_owned());
    };
    let promotion = promotion(&markers.name)?;
    let revision = Revision::parse(&markers.revision)
        .map_err(|why| format!("the revision cannot be written into a file: {why}; {REMEDY}"))?;
    let (mut changed, mut unmarked) = (Vec::new(), None);
    let mut is_marked = false;
    for (place, (path, file)) in markers.paths.iter().zip(files).enumerate() {
        match edited(file, &promotion, &revision) {
            Ok(Edited::Changed(text)) => changed.push((place, text)),
            Ok(Edited::AlreadyThere) => is_marked = true,
            Err(why @ Mistake::NoMarker(_)) => {
                unmarked.get_or_insert_with(|| format!("{path}: {why}"));
            }
            Err(why @ (Mistake::At { .. } | Mistake::TooLong(_) | Mistake::TooMuch(_))) => {
                return Err(format!("{path}: {why}"));
            }
        }
    }
    match unmarked {
        Some(why) if changed.is_empty() && !is_marked => Err(why),
        Some(_) | None => Ok(changed),
    }
}

fn promotion(name: &str) -> Result<Promotion<'_>, String> {
    let mut parts = name.split(':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(pipeline), Some(environment), None) => Ok(Promotion {
            namespace,
            pipeline,
            environment,
        }),
        _ => Err("change.markers.name: it is not what a mark names; write \
                  <namespace>:<pipeline>:<environment>"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::pull_request::tests::object;

    const MARK: &str = "# {\"$promotion\": \"flux-system:podinfo:prod\"}";

    fn changed_of(files: &[&str]) -> Result<Changed, String> {
        let mut spec = object().spec;
        let Some(Change::Markers(markers)) = &mut spec.change else {
            panic!("{:?}", spec.change);
        };
        markers.paths = (0..files.len()).map(|n| format!("{n}.yaml")).collect();
        let files: Vec<_> = files.iter().map(|file| file.as_bytes().to_vec()).collect();
        changed(&spec, &files)
    }

    #[test]
    fn a_marked_value_changes_and_nothing_else() {
        let before = format!("a: 1\nversion: \"6.1.0\" {MARK}\n");
        let after = format!("a: 1\nversion: \"6.1.6\" {MARK}\n");
        assert_eq!(
            changed_of(&["b: 2\n", &before]),
            Ok(vec![(1, after.clone())])
        );
        assert_eq!(changed_of(&["b: 2\n", &after]), Ok(Vec::new()));
    }

    #[test]
    fn without_a_mark_it_is_said_what_to_write() {
        let why = changed_of(&["a: 1\n", "b: 2\n"]).unwrap_err();
        assert!(why.starts_with("0.yaml: no value is marked"), "{why}");
        assert!(why.contains("\"flux-system:podinfo:prod\""), "{why}");
    }

    #[test]
    fn a_broken_file_is_named_with_its_line_although_another_is_right() {
        let right = format!("version: \"6.1.0\" {MARK}\n");
        let why = changed_of(&[&right, "a: 1\nb: [\n"]).unwrap_err();
        assert!(why.starts_with("1.yaml: line "), "{why}");
    }
}

//! `kubectl gate adopt promoter`: what goes where, and how it ends.

use std::path::PathBuf;

use crate::program::run;

const CLUSTER: &str = include_str!("../../src/command/adopt/promoter/examples/cluster.yaml");
const REFUSED: &str = include_str!("../../src/command/adopt/promoter/examples/refused.yaml");

fn adopt(input: &str) -> crate::program::Ran {
    run(&["adopt", "promoter", "-f", "-"], input)
}

#[test]
fn what_is_printed_is_what_lint_takes() {
    let ran = adopt(CLUSTER);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.starts_with("OBJECT") && ran.err.contains("ChangeTransferPolicy tools/"),
        "{ran:?}"
    );
    let linted = run(&["lint", "--strict", "-f", "-"], &ran.out);
    assert_eq!(linted.code, Some(0), "{linted:?}");
}

#[test]
fn an_object_in_whose_place_nothing_is_printed_is_told() {
    let ran = adopt(REFUSED);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for what in [
        "Bitbucket Cloud is no forge that is known",
        "spec.activePath",
        "12 objects in whose place nothing is printed",
    ] {
        assert!(ran.err.contains(what), "{ran:?}");
    }
    assert!(!ran.out.contains("folders"), "{ran:?}");
}

#[test]
fn a_folder_is_read_and_other_objects_are_skipped() {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/command/adopt/promoter/examples");
    let path = folder.to_str().unwrap();
    let ran = run(&["adopt", "promoter", "-f", path], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("name: payments") && ran.out.contains("name: tools"));
    let other = adopt("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n");
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("promoter.argoproj.io"), "{other:?}");
}

/// The other way to adopt needs what it needed before.
#[test]
fn an_app_is_named_with_its_gates() {
    for arguments in [&["adopt"][..], &["adopt", "kustomization/shop"]] {
        let ran = run(arguments, "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("--gate"), "{ran:?}");
    }
}

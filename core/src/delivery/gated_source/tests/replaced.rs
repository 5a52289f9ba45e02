//! A child that is replaced by somebody's object, or whose status says what was not admitted.

use super::*;

/// An object that replaces a child serves something else than what was admitted, and cannot be
/// distinguished from it by its name.
#[test]
fn what_takes_the_place_of_a_child_is_told_and_keeps_back_what_is_newer() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.child.as_mut().unwrap().metadata.annotations = None;
    play.push('b');
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False TargetTaken");
    assert_eq!(play.says("Recoverable").unwrap(), "False CannotBeFetched");
    assert_eq!(play.says("Blocked").unwrap(), "True TargetTaken");
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

type Forge = fn(&mut sluice_crds::flux::Artifact);

/// Somebody has written into the child's status where its file is.
#[test]
fn a_child_that_shows_what_was_not_admitted_is_asked_what_it_serves() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let asked = |play: &Play| {
        let annotations = play.child.as_ref()?.metadata.annotations.as_ref()?;
        annotations
            .get(crate::verdict::status::REQUESTED_AT)
            .cloned()
    };
    assert_eq!(asked(&play), None);
    let forged: [Forge; 3] = [
        |it| it.url = "http://evil.example.com/app.tar.gz".to_owned(),
        |it| it.digest = Some("sha256:another".to_owned()),
        |it| it.digest = None,
    ];
    for forge in forged {
        let honest = play.child.clone().unwrap().status;
        let before = asked(&play);
        forge(
            play.child
                .as_mut()
                .unwrap()
                .status
                .artifact
                .as_mut()
                .unwrap(),
        );
        play.settle();
        assert_eq!(play.says("Ready").unwrap(), "False ArtifactReplaced");
        assert_eq!(play.says("Recoverable").unwrap(), "True Pinned");
        let request = asked(&play).unwrap();
        assert!(request.starts_with("other-"), "{request}");
        assert_ne!(Some(&request), before.as_ref());
        // source-controller looks at its files, and writes what it has.
        let child = play.child.as_mut().unwrap();
        child.status = honest;
        child.status.last_handled_reconcile_at = Some(request.clone());
        play.settle();
        assert_eq!(play.says("Ready").unwrap(), "True Serving");
        assert_eq!(asked(&play), Some(request));
    }
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

/// After an upgrade source-controller may pack the same commit into another file.
#[test]
fn a_file_that_source_controller_answers_for_is_believed() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let digest = |play: &Play| {
        play.ours().admitted.as_ref().unwrap().parts[0]
            .digest
            .clone()
    };
    let other = Some("sha256:packed differently".to_owned());
    let child = play.child.as_mut().unwrap();
    child.status.artifact.as_mut().unwrap().digest = other.clone();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False ArtifactReplaced");
    assert_ne!(digest(&play), other);
    let child = play.child.as_mut().unwrap();
    let asked =
        child.metadata.annotations.as_ref().unwrap()[crate::verdict::status::REQUESTED_AT].clone();
    child.status.last_handled_reconcile_at = Some(asked);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert_eq!(digest(&play), other);
}

//! Who may edit a GatedSource does not choose the name that lists and votes go by.

use rstest::rstest;

use super::*;

/// A repository whose tags go out, with a list for a gate. The tag that it shows is on no list.
fn tags(list: &str, spec: &Value) -> Play {
    let mut play = Play::new(spec);
    let mut source = upstream_spec();
    source["ref"] = json!({ "semver": ">=1.0.0" });
    play.upstream = Some(git("upstream", &source, &tag("9.0.0", 'f')));
    play.keep(&format!("{{revisions: {list}}}"));
    play
}

fn tag(name: &str, digit: char) -> String {
    format!("{name}@sha1:{}", commit(digit))
}

#[rstest]
#[case::denied_by_name("{deny: ['1.5.0']}", "sha1:{b}", false)]
#[case::denied_by_range("{deny: ['>=2.0.0']}", "v1.4.9@sha1:{b}", false)]
#[case::denied_by_glob("{deny: ['release-*']}", "{b}", false)]
#[case::denied_by_another_commit("{deny: [cccccccccccc]}", "v1.4.9@sha1:{b}", true)]
#[case::denied_by_its_commit("{deny: [bbbbbbbbbbbb]}", "v1.4.9@sha1:{b}", false)]
#[case::allowed_by_range("{allow: ['>=1.4.0, <2']}", "v1.4.9@sha1:{b}", false)]
#[case::allowed_by_name("{allow: ['v1.4.9']}", "v1.4.9@sha1:{b}", false)]
#[case::allowed_by_its_commit("{allow: ['{b}']}", "v1.4.9@sha1:{b}", true)]
#[case::allowed_in_full("{allow: ['v1.4.9@sha1:{b}']}", "v1.4.9@sha1:{b}", true)]
fn what_is_asked_for_has_no_name_of_its_own(
    #[case] list: &str,
    #[case] asked: &str,
    #[case] goes_out: bool,
) {
    let filled = |text: &str| text.replace("{b}", &commit('b'));
    let mut play = tags(&filled(list), &json!({ "revision": filled(asked) }));
    play.settle();
    let called = format!("sha1:{}", commit('b'));
    match goes_out {
        true => {
            assert_eq!(play.admitted(), Some(called.as_str()));
            assert_eq!(play.child("/ref/commit").unwrap(), commit('b'));
        }
        false => {
            assert_eq!((play.admitted(), play.child.as_ref()), (None, None));
            assert_eq!(play.pending(), Some(called.as_str()));
            assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
        }
    }
    assert!(!play.look().changed);
}

#[test]
fn it_says_what_to_write_in_place_of_a_name() {
    let asked = json!({ "revision": tag("v1.4.9", 'b') });
    let mut play = tags("{allow: ['>=1.4.0, <2']}", &asked);
    play.settle();
    let words = "is not on a list of what may go out: no source shows its name, so its commit or digest \
                 has to be listed";
    let said = play.message("Blocked");
    assert!(said.contains(words), "{said}");
}

/// What the source has shown is judged by the name that it had there, even if the user gives it another
/// name.
#[test]
fn a_candidate_that_is_asked_for_keeps_the_name_of_its_source() {
    let mut play = tags("{deny: ['>=2.0.0']}", &json!({}));
    play.settle();
    assert_eq!(play.pending(), Some(tag("9.0.0", 'f').as_str()));
    play.object.spec.revision = Some(tag("v1.4.9", 'f'));
    play.settle();
    assert_eq!(play.admitted(), None);
    let mut play = tags("{allow: ['>=2.0.0']}", &json!({ "revision": commit('f') }));
    play.settle();
    assert_eq!(play.admitted(), Some(tag("9.0.0", 'f').as_str()));
}

/// Flux clones the branch that the pin names alone: a commit that it finds is one of that branch.
#[test]
fn the_branch_that_is_cloned_is_the_name_of_its_commits() {
    let mut play = Play::new(&json!({ "revision": revision('c') }));
    play.keep("{revisions: {allow: [main], deny: ['>=2.0.0']}}");
    play.settle();
    assert_eq!(play.admitted(), Some(revision('c').as_str()));
    assert_eq!(play.child("/ref/branch").unwrap(), "main");
    // Another branch is cloned by the commit alone, and so is one that is not named.
    for asked in [tag("release", 'd'), commit('d')] {
        play.object.spec.revision = Some(asked);
        play.settle();
        assert_eq!(play.admitted(), Some(revision('c').as_str()));
    }
}

/// What is out is not asked about again, and what went out under its name comes back by its commit alone.
#[test]
fn what_went_out_before_comes_back_where_its_commit_is_listed() {
    let mut play = tags("{allow: ['>=1.0.0']}", &json!({}));
    play.settle();
    fetched(play.upstream.as_mut().unwrap(), &tag("9.1.0", 'e'));
    play.settle();
    assert_eq!(play.admitted(), Some(tag("9.1.0", 'e').as_str()));
    play.object.spec.revision = Some(tag("9.0.0", 'f'));
    play.settle();
    assert_eq!(play.admitted(), Some(tag("9.1.0", 'e').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    play.keep(&format!("{{revisions: {{allow: ['{}']}}}}", commit('f')));
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('f'));
    play.keep("{revisions: {deny: ['*']}}");
    play.settle();
    assert_eq!(
        play.admitted(),
        Some(format!("sha1:{}", commit('f')).as_str())
    );
}

/// The digest identifies an artifact of a registry except for its tag, which anybody can write there.
#[test]
fn a_tag_that_somebody_writes_is_no_name() {
    let spec = json!({ "url": "oci://registry.example.com/app", "ref": { "semver": ">=1.0.0" } });
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    for (list, goes_out) in [
        ("{allow: ['>=1.4.0']}".to_owned(), false),
        ("{deny: ['>=2.0.0']}".to_owned(), false),
        (format!("{{allow: ['{}']}}", digest("b")), true),
    ] {
        let asked = json!({ "revision": format!("1.4.9@{}", digest("b")) });
        let shown = format!("9.0.0@{}", digest("f"));
        let mut play = super::kinds::of_kind(SourceKind::OCIRepository, &spec, &shown, &asked);
        play.keep(&format!("{{revisions: {list}}}"));
        play.settle();
        let out = play.admitted().map(str::to_owned);
        assert_eq!(out, goes_out.then(|| digest("b")), "{list}");
    }
}

/// A chart is fetched by its version: no other chart can be called so.
#[test]
fn the_version_of_a_chart_is_its_name() {
    let source = json!({ "kind": "HelmRepository", "name": "charts" });
    let spec = json!({ "chart": "app", "version": ">=1.0.0", "sourceRef": source });
    let asked = json!({ "revision": "1.4.9" });
    let mut play = super::kinds::of_kind(SourceKind::HelmChart, &spec, "9.0.0", &asked);
    play.keep("{revisions: {allow: ['>=1.4.0, <2']}}");
    play.settle();
    assert_eq!(play.admitted(), Some("1.4.9"));
}

/// Where a policy goes by names, a baseline that is written out chooses none either.
#[rstest]
#[case::of_unknown_name("{deny: ['>=2.0.0']}", tag("v1.4.9", 'b'), false)]
#[case::shown_by_another_name("{deny: ['>=2.0.0']}", tag("v1.4.9", 'f'), false)]
#[case::shown("{allow: ['>=2.0.0']}", commit('f'), true)]
#[case::listed("{allow: [bbbbbbbbbbbb]}", tag("v1.4.9", 'b'), true)]
fn a_baseline_has_no_name_of_its_own(
    #[case] list: &str,
    #[case] written: String,
    #[case] goes_out: bool,
) {
    let baseline = json!({ "baseline": { "revision": written } });
    let mut play = tags(list, &baseline);
    let policy = "{kind: GatePolicy, metadata: {name: lists}, spec: {kinds: [GatedSource], \
                  namespaceSelector: {}, gates: {refs: [{name: production, namespace: apps}]}}}";
    let mut value: Value = serde_saphyr::from_str(policy).unwrap();
    value["apiVersion"] = json!("sluice.dev/v1alpha1");
    let Object::GatePolicy(policy) = lint::read(&value).object.unwrap() else {
        unreachable!("{value}")
    };
    let policies = &mut play.world.policies;
    policies.insert("lists".to_owned(), Ok(Arc::new(*policy)));
    play.settle();
    let origin = (play.ours().admitted.as_ref()).map(|admitted| admitted.origin);
    assert_eq!(origin, goes_out.then_some(Origin::Baseline));
}

/// Who asks the gates in the place of the controller asks what it asks.
#[test]
fn what_the_gates_are_asked_about_is_known_from_the_object() {
    let about = |play: &Play, text: &str| {
        let revision = asked_about(&play.object, text).unwrap();
        (revision.to_string(), revision.has_unknown_name())
    };
    let mut play = tags("{allow: ['>=10.0.0']}", &json!({}));
    let (shown, asked) = (tag("9.0.0", 'f'), tag("v1.4.9", 'b'));
    let nameless = (format!("sha1:{}", commit('b')), true);
    assert_eq!(about(&play, &asked), nameless);
    play.settle();
    play.object.spec.revision = Some(asked.clone());
    play.settle();
    assert_eq!(about(&play, &asked), nameless);
    assert_eq!(about(&play, &shown), (shown.clone(), false));
    let mut play = Play::new(&json!({ "revision": revision('c') }));
    play.settle();
    assert_eq!(about(&play, &revision('c')), (revision('c'), false));
    assert_eq!(
        asked_about(&play.object, "1.4.9").unwrap().to_string(),
        "1.4.9"
    );
}

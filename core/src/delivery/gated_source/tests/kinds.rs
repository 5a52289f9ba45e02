//! Each kind of source, and each strategy.

use rstest::rstest;
use serde_json::Map;
use sluice_crds::gated_source::Strategy;

use super::*;
use crate::flux::content;
use crate::revision::Revision;

pub(super) fn of_kind(kind: SourceKind, spec: &Value, revision: &str, more: &Value) -> Play {
    let mut whole = json!({ "sourceRef": { "kind": kind.as_str(), "name": "upstream" } });
    whole
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let mut play = Play::new(&whole);
    play.kind = kind;
    play.upstream = Some(git("upstream", spec, revision));
    play
}

#[test]
fn an_oci_artifact_is_pinned_by_digest() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let spec = json!({ "url": "oci://r", "ref": { "semver": ">=1" }, "layerSelector": { "mediaType": "m" } });
    let mut play = of_kind(
        SourceKind::OCIRepository,
        &spec,
        &format!("1.2.0@{digest}"),
        &json!({}),
    );
    play.open();
    play.settle();
    assert_eq!(play.child("/ref/digest").unwrap(), digest);
    assert_eq!(play.child("/ref/semver"), None);
    assert_eq!(play.child("/layerSelector/mediaType").unwrap(), "m");
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
}

#[test]
fn a_chart_is_pinned_by_version() {
    let source = json!({ "kind": "HelmRepository", "name": "charts" });
    let spec =
        json!({ "chart": "app", "version": ">=1.0.0", "sourceRef": source, "valuesFiles": ["a"] });
    let mut play = of_kind(SourceKind::HelmChart, &spec, "1.4.2+7", &json!({}));
    play.open();
    play.settle();
    assert_eq!(play.child("/version").unwrap(), "1.4.2");
    assert_eq!(play.child("/sourceRef/name").unwrap(), "charts");
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
}

#[test]
fn a_bucket_is_stored_and_served() {
    let revision = format!("sha256:{}", "2".repeat(64));
    let spec = json!({ "bucketName": "b", "endpoint": "e" });
    let strategy = json!({ "strategy": "artifact" });
    let mut play = of_kind(SourceKind::Bucket, &spec, &revision, &strategy);
    play.open();
    play.look();
    let report = play.look();
    // It is fetched before anything is admitted: the source forgets it.
    assert!(
        report
            .acts
            .iter()
            .any(|act| matches!(act, Act::Fetch { .. }))
    );
    play.write_status(&report);
    play.carry_out(report.acts);
    assert_eq!(play.admitted(), None);
    play.store();
    play.settle();
    assert_eq!(play.admitted(), Some(revision.as_str()));
    let artifact = play.child.clone().unwrap().status.artifact.unwrap();
    assert_eq!(
        (artifact.url.as_str(), artifact.size),
        ("http://ours/p", Some(7))
    );
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    // Another process leads, and has not read the file yet. It says so, and fetches nothing.
    let held = play.held.clone();
    for holding in play.held.values_mut() {
        *holding = Holding::Verifying;
    }
    let report = play.look();
    assert!(report.acts.iter().all(is_of_the_store), "{:?}", report.acts);
    play.write_status(&report);
    assert_eq!(play.says("Ready").unwrap(), "False Progressing");
    assert!(play.message("Ready").contains("is verified before"));
    play.held = held;
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    // The store is lost, and the source shows it still.
    play.held.clear();
    let report = play.look();
    assert!(
        report
            .acts
            .iter()
            .any(|act| matches!(act, Act::Fetch { .. }))
    );
    play.write_status(&report);
    assert_eq!(play.says("Recoverable").unwrap(), "False CannotBeFetched");
}

#[test]
fn sources_are_suspended_and_only_those_are_resumed() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    play.settle();
    assert_eq!(play.upstream.as_ref().unwrap().spec["suspend"], json!(true));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    assert_eq!(play.says("Ready").unwrap(), "True Holding");
    play.open();
    play.settle();
    assert_eq!(
        play.upstream.as_ref().unwrap().spec["suspend"],
        json!(false)
    );
    assert_eq!(play.says("Ready").unwrap(), "True Released");
    // Somebody else's suspension stays.
    play.upstream
        .as_mut()
        .unwrap()
        .spec
        .insert("suspend".to_owned(), json!(true));
    play.writes = (0, 0);
    play.settle();
    play.close();
    play.settle();
    play.open();
    play.settle();
    assert_eq!(
        (
            play.upstream.as_ref().unwrap().spec["suspend"].clone(),
            play.writes.1
        ),
        (json!(true), 0)
    );
}

/// Who is to suspend the source, if that is to change.
fn holders(play: &mut Play) -> Option<Vec<String>> {
    let acts = play.look().acts.into_iter();
    let mut holders = acts.filter_map(|act| match act {
        Act::Suspend { holders, .. } => Some(holders.into_iter().collect()),
        _ => None,
    });
    holders.next()
}

/// Each has separate gates; the last one that lets it go resumes it.
#[test]
fn a_source_is_held_by_several() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    play.upstream = Some(going::suspended("upstream", "another"));
    assert_eq!(holders(&mut play).unwrap(), ["another", "app"]);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Holding");
    play.open();
    assert_eq!(holders(&mut play).unwrap(), ["another"]);
    play.settle();
    assert_eq!(play.upstream.as_ref().unwrap().spec["suspend"], json!(true));
    assert_eq!(
        play.message("Ready"),
        "of 1 sources none is suspended; 1 are suspended by others"
    );
    play.close();
    play.settle();
    // Another one lets it go, and then this one.
    play.upstream = Some(going::suspended("upstream", "app"));
    assert_eq!(holders(&mut play), None);
    play.open();
    assert_eq!(holders(&mut play).unwrap(), [""; 0]);
}

/// Two would write against each other without end.
#[test]
fn the_child_of_another_is_not_suspended() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    let child = play.upstream.as_mut().unwrap();
    let mark = sluice_crds::gated_source::marks::CHILD_OF.to_owned();
    let annotations = child.metadata.annotations.get_or_insert_default();
    annotations.insert(mark, "another".to_owned());
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False CannotSuspend");
    let said = play.message("Ready");
    assert!(
        said.contains("is the child of the GatedSource another"),
        "{said}"
    );
    assert_eq!(play.writes.1, 0);
}

#[test]
fn a_list_of_revisions_cannot_be_held_by_suspending() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    play.keep("{revisions: {allow: [v1]}}");
    play.settle();
    assert_eq!(play.says("Stalled").unwrap(), "True DependsOnRevision");
    assert_eq!(play.upstream.as_ref().unwrap().spec["suspend"], json!(true));
}

#[test]
fn a_repository_of_charts_in_a_registry_cannot_be_suspended() {
    let strategy = json!({ "strategy": "suspend" });
    let spec = json!({ "type": "oci", "url": "oci://r" });
    let mut play = of_kind(SourceKind::HelmRepository, &spec, "x", &strategy);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False CannotSuspend");
}

/// Several sources go out together, or not at all.
#[test]
fn several_sources_move_under_one_decision() {
    let object: GatedSource = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
        "metadata": { "name": "app", "namespace": "apps", "generation": 1, "uid": "u" },
        "spec": {
            "sourceRefs": [
                { "kind": "GitRepository", "name": "one" },
                { "kind": "GitRepository", "name": "two", "target": { "name": "second" } },
            ],
            "gates": { "refs": [{ "name": "production" }] },
        },
    }))
    .unwrap();
    let mut play = Play::new(&json!({}));
    play.keep(&format!("{{revisions: {{allow: ['{}']}}}}", commit('a')));
    let look = |play: &Play, object: &GatedSource, two: &FluxObject| {
        let one = git("one", &upstream_spec(), &revision('a'));
        let names = wanted(object).into_iter();
        let sources = names.zip([&one, two]).map(|(wanted, upstream)| Source {
            wanted,
            upstream: here(upstream),
            child: Found::Missing,
        });
        let gates = gates(&play.world, object, play.now);
        let given = Given {
            object: Arc::new(object.clone()),
            sources: sources.collect(),
            strays: Vec::new(),
            dropped: Vec::new(),
            consumers: Vec::new(),
            carried: Vec::new(),
            gates,
            store: Box::new(play.held.clone()),
            now: Now::given(play.now),
        };
        let considered = consider(given);
        let told = considered.decision().cloned();
        report(considered, told.as_ref())
    };
    let held = look(
        &play,
        &object,
        &git("two", &upstream_spec(), &revision('b')),
    );
    assert!(held.status.admitted.is_none() && held.acts.is_empty());
    let told = held.status.last_decision.unwrap();
    assert_eq!(told.subject.revision, Some(revision('b')));
    let out = look(
        &play,
        &object,
        &git("two", &upstream_spec(), &revision('a')),
    );
    let names: Vec<_> = (out.acts.iter())
        .map(|act| match act {
            Act::Write(child) => child.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["app-one", "second"]);
    // Listed alone, or in another order, what is out is not asked about again.
    play.close();
    let two = git("two", &upstream_spec(), &revision('a'));
    let mut fewer = object.clone();
    fewer.status = Some(out.status);
    fewer.spec.source_refs.truncate(1);
    let still = look(&play, &fewer, &two);
    assert_eq!(
        (still.status.candidates.len(), still.status.pending),
        (0, None)
    );
    // One that cannot be believed holds all of them.
    let unsure =
        flux(json!({ "metadata": { "name": "two", "generation": 1 }, "spec": upstream_spec() }));
    let held = look(&play, &object, &unsure);
    assert!(held.status.admitted.is_none() && held.status.candidates.is_empty());
}

#[test]
fn a_chart_that_is_built_from_files_cannot_be_pinned() {
    let source = json!({ "kind": "GitRepository", "name": "repository" });
    let spec = json!({ "chart": "./charts/app", "sourceRef": source });
    let mut play = of_kind(SourceKind::HelmChart, &spec, "1.0.0", &json!({}));
    play.open();
    play.settle();
    assert_eq!(play.child, None);
    assert_eq!(play.admitted(), None);
    assert_eq!(play.says("Ready").unwrap(), "False NotPinnable");
    assert_eq!(play.says("Stalled").unwrap(), "True NotPinnable");
    assert_eq!(
        play.message("Ready"),
        "the HelmChart upstream is built from the GitRepository repository, whatever its version \
         says: gate that GitRepository instead, and let the chart name its child"
    );
    // Nor may somebody ask for a version of it, or say that it runs.
    for more in [
        json!({ "revision": "1.0.0" }),
        json!({ "baseline": { "revision": "1.0.0" } }),
    ] {
        let mut play = of_kind(SourceKind::HelmChart, &spec, "1.0.0", &more);
        play.open();
        play.settle();
        assert_eq!((play.admitted(), play.child.as_ref()), (None, None));
    }
}

fn including() -> Value {
    json!([{ "repository": { "name": "shared" }, "toPath": "shared" }])
}

/// source-controller puts into the child's artifact what the included repository shows at that moment.
#[test]
fn what_includes_other_repositories_cannot_be_pinned() {
    for more in [
        json!({}),
        json!({ "revision": revision('a') }),
        json!({ "baseline": { "revision": revision('a') } }),
    ] {
        let mut play = Play::new(&more);
        let source = play.upstream.as_mut().unwrap();
        source.spec.insert("include".to_owned(), including());
        play.open();
        play.settle();
        assert_eq!((play.admitted(), play.child.as_ref()), (None, None));
        assert_eq!(play.says("Stalled").unwrap(), "True NotPinnable");
    }
    let mut play = Play::new(&json!({ "strategy": "artifact" }));
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert("include".to_owned(), including());
    play.open();
    play.settle();
    play.store();
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

/// It was like that before it was noticed, or is written later: what is out is served, and the reason why
/// nothing newer goes out is reported.
#[test]
fn what_is_out_is_served_although_it_can_be_pinned_no_longer() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let child = play.child.clone();
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert("include".to_owned(), including());
    play.push('b');
    play.settle();
    assert_eq!(play.child, child);
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Ready").unwrap(), "False NotPinnable");
    assert_eq!(play.says("Stalled").unwrap(), "True NotPinnable");
    assert_eq!(
        play.message("Ready"),
        "the GitRepository upstream includes what other GitRepositories show (shared), at whatever \
         commit they are: write strategy: artifact, or gate each of them and apply them one by one"
    );
    // One that went out with it stays as it is, too.
    let admitted = play.object.status.as_mut().unwrap().admitted.as_mut();
    let spec = &mut admitted.unwrap().parts[0].spec;
    spec.insert("include".to_owned(), including());
    play.child
        .as_mut()
        .unwrap()
        .spec
        .insert("include".to_owned(), including());
    let child = play.child.clone();
    play.push('c');
    play.settle();
    assert_eq!(
        play.child.as_ref().map(|it| &it.spec),
        child.as_ref().map(|it| &it.spec)
    );
    assert_eq!(play.says("Stalled").unwrap(), "True NotPinnable");
    // An empty list includes nothing.
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert("include".to_owned(), json!([]));
    play.settle();
    assert_eq!(play.admitted(), Some(revision('c').as_str()));
}

/// Flux clones the branch that is named and no other, and finds no commit of another one.
#[rstest]
#[case::of_the_branch(json!({"branch": "main"}), "main@sha1:", Some("main"))]
#[case::of_another_branch(json!({"branch": "release"}), "main@sha1:", None)]
#[case::of_nobody_knows_which(json!({"branch": "main"}), "sha1:", None)]
#[case::of_a_tag(json!({"branch": "main", "semver": ">=1"}), "v1.0.0@sha1:", None)]
#[case::of_a_tag_called_like_the_branch(json!({"branch": "main", "tag": "main"}), "main@sha1:", None)]
#[case::of_a_reference(json!({"branch": "main", "name": "refs/pull/1/head"}), "main@sha1:", None)]
fn a_pin_names_the_branch_that_the_commit_was_found_on(
    #[case] reference: Value,
    #[case] revision: &str,
    #[case] branch: Option<&str>,
) {
    let revision = Revision::parse(&format!("{revision}{}", commit('a'))).unwrap();
    let spec = Map::from_iter([("ref".to_owned(), reference)]);
    let kind = SourceKind::GitRepository;
    let pinned = content::pinned(Strategy::Pin, kind, &spec, &revision).unwrap();
    assert_eq!(pinned["ref"]["commit"], commit('a'));
    assert_eq!(pinned["ref"].get("branch").and_then(Value::as_str), branch);
}

#[test]
fn copies_of_others_are_not_touched_and_what_is_served_is_kept() {
    let revision = format!("sha256:{}", "2".repeat(64));
    let spec = json!({ "bucketName": "b", "endpoint": "e" });
    let strategy = json!({ "strategy": "artifact" });
    let mut play = of_kind(SourceKind::Bucket, &spec, &revision, &strategy);
    let mut child = git("app", &json!({}), "earlier");
    play.child = Some(child.clone());
    let report = play.look();
    assert_eq!(report.acts, []);
    play.write_status(&report);
    assert_eq!(play.says("Ready").unwrap(), "False TargetTaken");
    // Its own, of which no status says anything any more: the copy that it points at stays.
    let mark = sluice_crds::gated_source::marks::CHILD_OF.to_owned();
    let annotations = child.metadata.annotations.get_or_insert_default();
    annotations.insert(mark, "app".to_owned());
    play.child = Some(child);
    play.upstream = None;
    play.object.status = None;
    let retained = play.look().acts.into_iter().find_map(|act| match act {
        Act::Retain { digests, .. } => Some(digests),
        _ => None,
    });
    assert_eq!(retained.unwrap(), ["sha256:of earlier"]);
}

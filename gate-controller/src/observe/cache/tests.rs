use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher;
use sluice_watching::{Guard, Step};

use super::*;

type Map = Guard<ConfigMap>;

fn map(version: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("apps".to_owned()),
            name: Some("app".to_owned()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn brought(version: u64) -> Map {
    Guard(Ok(map(version)))
}

/// What the cache holds, and what it told, of what the watch brings and is put in.
#[derive(Default)]
struct Scene {
    cache: Cache<ConfigMap>,
    listed: Vec<(ObjectKey, Seen<ConfigMap>)>,
}

impl Scene {
    /// The versions before and now of what is reported.
    fn watch(&mut self, step: Step<Map>) -> Vec<(Option<u64>, Option<u64>)> {
        let told = std::cell::RefCell::default();
        let of = |seen: Option<&Seen<ConfigMap>>| seen.and_then(version);
        let changed = |change: Change<'_, ConfigMap>| {
            let told: &std::cell::RefCell<Vec<_>> = &told;
            told.borrow_mut().push((of(change.before), of(change.now)));
        };
        self.cache
            .take_in(step, &Following::required(), &mut self.listed, &changed);
        told.into_inner()
    }

    fn list(&mut self, versions: &[u64]) -> Vec<(Option<u64>, Option<u64>)> {
        self.watch(Step::Begun);
        for version in versions {
            self.watch(Step::Page(vec![brought(*version)]));
        }
        self.watch(Step::Listed(versions.iter().copied().max()))
    }

    /// Whether it was taken in.
    fn put(&self, version: u64) -> bool {
        self.cache.put(Arc::new(map(version))).is_some()
    }

    fn holds(&self) -> Option<u64> {
        let (namespace, name) = ("apps", "app");
        version(&self.cache.get(KeyRef { namespace, name })?)
    }
}

#[test]
fn what_was_written_is_there_at_once_and_older_news_of_it_is_passed_over() {
    let mut scene = Scene::default();
    assert_eq!(scene.list(&[3]), [(None, Some(3))]);
    assert!(scene.put(7) && !scene.put(6));
    assert_eq!(scene.holds(), Some(7));
    assert_eq!(scene.watch(Step::Apply(brought(5))), []);
    assert_eq!(scene.watch(Step::Delete(brought(6))), []);
    assert_eq!(scene.holds(), Some(7));
    // Our own write comes back, then somebody else's.
    let own = scene.watch(Step::Apply(brought(7)));
    assert_eq!(own, [(Some(7), Some(7))]);
    let others = scene.watch(Step::Apply(brought(9)));
    assert_eq!((others, scene.holds()), (vec![(Some(7), Some(9))], Some(9)));
}

#[test]
fn what_is_gone_by_the_time_of_the_answer_does_not_come_back() {
    let mut scene = Scene::default();
    scene.list(&[3]);
    assert_eq!(scene.watch(Step::Delete(brought(8))), [(Some(3), None)]);
    assert!(!scene.put(7));
    assert_eq!(scene.holds(), None);
    // One that was created after that is another one.
    assert!(scene.put(9));
    assert_eq!(scene.watch(Step::Delete(brought(10))), [(Some(9), None)]);
}

#[test]
fn what_is_gone_is_not_there_again_by_what_was_written_onto_it() {
    let mut scene = Scene::default();
    scene.list(&[3]);
    let renew = |scene: &Scene, version| scene.cache.renew(Arc::new(map(version)));
    assert_eq!(renew(&scene, 7).as_ref().and_then(version), Some(3));
    assert!(renew(&scene, 6).is_none());
    assert_eq!(scene.holds(), Some(7));
    // What cannot be read may be later than what was written.
    scene.cache.hold(
        &ObjectKey::of(&map(1)),
        Some(Seen::Unreadable("unknown field".into())),
    );
    assert!(renew(&scene, 9).is_none());
    // A list says that it is gone, not in which version: the answer to a write may be later.
    scene.list(&[]);
    assert!(renew(&scene, 9).is_none());
    assert_eq!(scene.holds(), None);
}

/// The list is later than the write: what it lacks was deleted after that.
#[test]
fn what_is_gone_from_a_later_list_does_not_come_back_by_an_earlier_write() {
    let mut scene = Scene::default();
    scene.list(&[3]);
    scene.watch(Step::Begun);
    scene.watch(Step::Listed(Some(10)));
    assert!(!scene.put(7));
    assert_eq!(scene.holds(), None);
    assert!(scene.put(11));
}

#[test]
fn what_comes_back_is_no_news() {
    let key = ObjectKey::of(&map(1));
    let seen = |version| Seen::Object(Arc::new(map(version)));
    let is_known = |before: Option<&Seen<_>>, now: Option<&Seen<_>>| {
        let key = &key;
        Change { key, before, now }.is_known()
    };
    let (own, later) = (seen(3), seen(4));
    assert!(is_known(Some(&own), Some(&own)));
    assert!(!is_known(Some(&own), Some(&later)));
    assert!(!is_known(None, Some(&own)) && !is_known(Some(&own), None));
    let unreadable = Seen::Unreadable("unknown field".into());
    assert!(!is_known(Some(&unreadable), Some(&unreadable)));
}

#[test]
fn a_list_is_believed_whatever_was_known() {
    let mut scene = Scene::default();
    scene.list(&[30]);
    assert!(scene.put(40));
    // After a restored backup versions have gone back.
    assert_eq!(scene.list(&[2]), [(Some(40), Some(2))]);
    assert!(scene.put(4));
    assert_eq!(scene.list(&[]), [(Some(4), None)]);
}

/// A list takes a while, and this controller goes on writing.
#[test]
fn what_is_written_while_a_list_is_under_way_is_not_lost_by_it() {
    let mut scene = Scene::default();
    scene.list(&[3]);
    assert!(scene.put(5));
    scene.watch(Step::Begun);
    assert!(scene.put(7));
    // Made between the two writes.
    scene.watch(Step::Page(vec![brought(5)]));
    assert_eq!(scene.watch(Step::Listed(None)), [(Some(7), Some(7))]);
    assert_eq!(scene.holds(), Some(7));
    // The watch goes on from there, and brings the same and what came after.
    assert_eq!(scene.watch(Step::Apply(brought(6))), []);
    assert_eq!(scene.watch(Step::Apply(brought(8))), [(Some(7), Some(8))]);
    // What was written before a list began is in it, or is not so any more.
    assert_eq!(scene.list(&[2]), [(Some(8), Some(2))]);
    // Nobody can say whether what a list lacks came or went after it. If it came, the watch brings it.
    scene.watch(Step::Begun);
    assert!(scene.put(9));
    assert_eq!(scene.watch(Step::Listed(None)), [(Some(9), None)]);
    assert_eq!(scene.holds(), None);
}

#[test]
fn a_kind_that_may_be_missing_can_go_and_come_and_others_stay_as_listed() {
    let refused = |code| {
        let status = kube::core::Status::failure("no", "").with_code(code);
        watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
    };
    let mut scene = Scene::default();
    let fail = |scene: &Scene, presence, code| {
        let error = refused(code);
        scene
            .cache
            .failed(presence, follow::Failed::of(&error), &error);
        scene.cache.progress()
    };
    let (required, optional) = (Presence::Required, Presence::Optional);
    assert_eq!(fail(&scene, optional, 503), Progress::Unanswered);
    assert_eq!(fail(&scene, optional, 404), Progress::NotInstalled);
    assert_eq!(fail(&scene, optional, 403), Progress::Refused);
    scene.list(&[]);
    assert_eq!(fail(&scene, required, 403), Progress::Synced);
    assert_eq!(fail(&scene, optional, 404), Progress::NotInstalled);
    scene.list(&[]);
    assert!(scene.cache.is_synced());
}

/// Who owns the annotations of a force matters, and who manages the spec is reported; the rest of the
/// managed fields is not worth its memory.
#[test]
fn of_those_who_manage_fields_are_kept_who_manage_the_spec_and_ourselves() {
    use serde_json::json;
    use sluice_core::gate::force::owner;
    use sluice_crds::{Gate, GateSpec};

    let own = json!({"f:metadata": {"f:annotations": {"f:sluice.dev/force": {}}}});
    let entries = json!([
        {"manager": "flux", "operation": "Apply", "fieldsV1": {"f:spec": {"f:require": {}}}},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": own},
        {"manager": owner::MANAGER, "operation": "Apply", "fieldsV1": own},
        {"manager": owner::MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": own},
    ]);
    let mut gate = Gate::new("production", GateSpec::default());
    gate.metadata.managed_fields = serde_json::from_value(entries).unwrap();
    let trim = Following::<Gate>::required().trim;
    trim(&(), &mut gate);
    let kept = json!(gate.metadata.managed_fields);
    let expected = json!([
        {"manager": "flux"},
        {"manager": owner::MANAGER, "operation": "Apply", "fieldsV1": own},
    ]);
    assert_eq!(kept, expected);
    // That nobody manages anything is known, and is not the same as not knowing.
    gate.metadata.managed_fields = None;
    trim(&(), &mut gate);
    assert_eq!(gate.metadata.managed_fields, Some(Vec::new()));
}

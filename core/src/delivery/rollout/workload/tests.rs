//! Objects as real controllers have written them.

use rstest::rstest;

use super::*;

/// An object of this kind, with four replicas, but for what is written here.
fn object(spec: &Value, status: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "a", "uid": "u-1", "resourceVersion": "42", "generation": 3},
        "spec": {"replicas": 4},
        "status": {"observedGeneration": 3},
    });
    for (part, other) in [("spec", spec), ("status", status)] {
        for (field, value) in other.as_object().into_iter().flatten() {
            object[part][field] = value.clone();
        }
    }
    object
}

fn of(kind: Kind, object: &Value) -> Workload<'_> {
    Workload { kind, object }
}

#[test]
fn counts_that_are_absent_are_zero() {
    let object = object(&json!({}), &json!({}));
    for kind in Kind::ALL {
        let workload = of(kind, &object);
        let expected = Seen {
            wanted: 4,
            is_observed: true,
            replicas: 0,
            available: 0,
        };
        assert_eq!(workload.seen(), expected);
        assert_eq!(workload.updated(), 0);
    }
    let bare = json!({"metadata": {"generation": 1}, "spec": {}});
    let seen = of(Kind::Deployment, &bare).seen();
    assert_eq!((seen.wanted, seen.is_observed), (1, false));
}

#[test]
fn counts_of_an_older_generation_are_not_observed() {
    let object = object(
        &json!({}),
        &json!({"observedGeneration": 2, "availableReplicas": 4}),
    );
    assert!(!of(Kind::Deployment, &object).seen().is_observed);
}

#[test]
fn only_some_kinds_count_available_pods_of_the_new_version() {
    let status =
        json!({"availableReplicas": 3, "updatedAvailableReplicas": 2, "updatedReplicas": 2});
    let object = object(&json!({}), &status);
    let counts = Kind::ALL.map(|kind| of(kind, &object).updated_available());
    assert_eq!(counts, [Some(3), None, Some(2)]);
}

#[rstest]
#[case::stateful_set(Kind::StatefulSet, json!({"rollingUpdate": {"partition": 3}}), Some(3), false)]
#[case::none(Kind::StatefulSet, json!({}), Some(0), false)]
#[case::as_many_as_replicas(Kind::StatefulSet, json!({"rollingUpdate": {"partition": 4}}), Some(4), false)]
#[case::armed(Kind::StatefulSet, json!({"rollingUpdate": {"partition": ARMED}}), Some(ARMED), true)]
#[case::clone_set(Kind::CloneSet, json!({"partition": 2}), Some(2), false)]
#[case::rounded_up(Kind::CloneSet, json!({"partition": "30%"}), Some(2), false)]
#[case::one_is_always_updated(Kind::CloneSet, json!({"partition": "99%"}), Some(3), false)]
#[case::all(Kind::CloneSet, json!({"partition": "100%"}), Some(ARMED), true)]
#[case::more_than_all(Kind::CloneSet, json!({"partition": "120%"}), Some(ARMED), true)]
#[case::a_number(Kind::CloneSet, json!({"partition": ARMED}), Some(ARMED), true)]
#[case::paused(Kind::CloneSet, json!({"paused": true}), Some(0), true)]
#[case::nonsense(Kind::CloneSet, json!({"partition": "some"}), None, false)]
#[case::deployment(Kind::Deployment, json!({}), None, false)]
fn a_partition_is_read(
    #[case] kind: Kind,
    #[case] strategy: Value,
    #[case] expected: Option<u32>,
    #[case] is_armed: bool,
) {
    let object = object(&json!({ "updateStrategy": strategy }), &json!({}));
    let workload = of(kind, &object);
    assert_eq!(workload.partition(), expected);
    assert_eq!(workload.is_armed(), is_armed);
}

#[test]
fn a_stateful_set_may_wait_for_somebody_to_delete_pods() {
    let object = object(&json!({"updateStrategy": {"type": "OnDelete"}}), &json!({}));
    assert!(of(Kind::StatefulSet, &object).is_on_delete());
    assert!(!of(Kind::Deployment, &object).is_on_delete());
}

#[test]
fn a_size_is_written_onto_what_was_seen() {
    let object = object(&json!({}), &json!({}));
    let seen = json!({"uid": "u-1", "resourceVersion": "42"});
    let expected = json!({"metadata": seen, "spec": {"replicas": 7}});
    assert_eq!(of(Kind::Deployment, &object).scale(7), expected);
    let part = |kind, partition| of(kind, &object).part(partition);
    let of_spec =
        |strategy: &Value| Some(json!({"metadata": seen, "spec": {"updateStrategy": strategy}}));
    let expected = of_spec(&json!({"rollingUpdate": {"partition": 2}}));
    assert_eq!(part(Kind::StatefulSet, 2), expected);
    let expected = of_spec(&json!({"rollingUpdate": {"partition": ARMED}}));
    assert_eq!(part(Kind::StatefulSet, ARMED), expected);
    let expected = of_spec(&json!({"partition": 2, "paused": false}));
    assert_eq!(part(Kind::CloneSet, 2), expected);
    let expected = of_spec(&json!({"partition": "100%", "paused": false}));
    assert_eq!(part(Kind::CloneSet, ARMED), expected);
    assert_eq!(part(Kind::Deployment, 2), None);
}

/// What a rollout writes is what it says that it writes.
#[test]
fn nothing_is_written_beside_the_fields() {
    let object = object(&json!({}), &json!({}));
    for kind in Kind::ALL {
        let workload = of(kind, &object);
        let patch = workload.part(1).unwrap_or_else(|| workload.scale(1));
        let mut leaves = Vec::new();
        fields(&patch["spec"], "/spec", &mut leaves);
        for leaf in leaves {
            assert!(kind.fields().contains(&leaf.as_str()), "{kind:?} {leaf}");
        }
    }
}

fn fields(value: &Value, path: &str, leaves: &mut Vec<String>) {
    match value {
        Value::Object(all) => {
            for (field, value) in all {
                fields(value, &format!("{path}/{field}"), leaves);
            }
        }
        _ => leaves.push(path.to_owned()),
    }
}

#[rstest]
#[case::first("a-0", None, true)]
#[case::last("a-3", None, true)]
#[case::beyond("a-4", None, false)]
#[case::of_another("b-0", None, false)]
#[case::longer_name("a-b-0", None, false)]
#[case::no_number("a-x", None, false)]
#[case::no_place("a", None, false)]
#[case::zeros("a-01", None, false)]
#[case::below_the_start("a-4", Some(5), false)]
#[case::from_the_start("a-8", Some(5), true)]
#[case::beyond_with_a_start("a-9", Some(5), false)]
fn a_pod_of_a_stateful_set_has_the_name_of_its_place(
    #[case] pod: &str,
    #[case] start: Option<u32>,
    #[case] expected: bool,
) {
    let spec = start.map_or(json!({}), |start| json!({"ordinals": {"start": start}}));
    let object = object(&spec, &json!({}));
    assert_eq!(of(Kind::StatefulSet, &object).has_place(pod), expected);
}

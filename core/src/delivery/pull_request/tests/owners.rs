//! What its owner says of it, and which ones it has made.

use super::*;

/// The object was lost, and made again.
#[test]
fn the_commit_that_its_owner_remembers_is_opened() {
    let mut scene = Scene::new();
    if let Some(owner) = &mut scene.owner {
        owner.commit = Some(COMMIT.to_owned());
    }
    assert_eq!(scene.task(), Some(opening()));
    assert_eq!(scene.status().commit_sha.as_deref(), Some(COMMIT));
}

/// Nothing stops those who may write PullRequests from making one: it stands for nothing.
#[rstest]
#[case::another_name(|it: &mut PullRequest| it.metadata.name = Some("podinfo-1".into()))]
#[case::another_namespace(|it: &mut PullRequest| it.metadata.namespace = Some("apps".into()))]
#[case::another_kind(|it: &mut PullRequest| it.spec.about.kind = "Promotion".into())]
#[case::another_run(|it: &mut PullRequest| it.spec.about.run = Some(8))]
#[case::no_run(|it: &mut PullRequest| it.spec.about.run = None)]
#[case::another_branch(|it: &mut PullRequest| it.spec.source_branch = "main".into())]
#[case::another_base(|it: &mut PullRequest| it.spec.target_branch = "prod".into())]
#[case::another_secret(|it: &mut PullRequest| it.spec.repository.secret_ref = Some(sluice_crds::pipeline::SecretName { name: "stolen".into() }))]
#[case::another_address(|it: &mut PullRequest| it.spec.repository.url = Some("https://git.example.com/b".into()))]
#[case::other_marks(|it: &mut PullRequest| change(it, |marks| marks.name = "flux-system:podinfo:dev".into()))]
#[case::another_revision(|it: &mut PullRequest| change(it, |marks| marks.revision = "6.6.6".into()))]
#[case::other_files(|it: &mut PullRequest| change(it, |marks| marks.paths.push("secret.yaml".into())))]
fn one_that_its_owner_would_not_have_made_leads_to_nothing(#[case] forge: fn(&mut PullRequest)) {
    let mut scene = Scene::new();
    forge(&mut scene.object);
    assert_eq!(Says::of(&scene.object, &pipeline()), None);
    scene.owner = says(MergeGate::Success);
    assert_eq!(scene.task(), None);
    scene.object.spec.close = Some("it is in the way".to_owned());
    assert_eq!(scene.task(), None);
    scene.object.status.get_or_insert_default().state = Some(PullRequestState::Closed);
    assert_eq!(scene.task(), None);
}

fn change(object: &mut PullRequest, change: fn(&mut sluice_crds::pull_request::Markers)) {
    match &mut object.spec.change {
        Some(sluice_crds::pull_request::Change::Markers(marks)) => change(marks),
        other => panic!("{other:?}"),
    }
}

fn pipeline() -> Pipeline {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": "flux-system", "name": "podinfo"},
        "spec": {"appRef": {"kind": "HelmRelease", "name": "podinfo"}, "environments": [{
            "name": "prod", "targets": [{"namespace": "prod"}],
            "promotion": {"strategy": {"pull-request": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"}, "paths": ["prod.yaml"],
            }}},
        }]},
        "status": {"environments": {"prod": {
            "state": "GatesClosed", "message": "closed until Monday",
            "promotion": {
                "run": 7, "revision": "6.1.6", "key": "75e8a701fb73", "phase": "Created",
                "at": "2026-11-20T12:00:00Z", "gate": "pending",
                "pullRequest": {"name": "podinfo-75e8a701fb73"},
            },
        }}},
    }))
    .unwrap()
}

#[test]
fn its_owner_speaks_of_this_promotion_or_not_at_all() {
    let said = Says::of(&object(), &pipeline()).unwrap();
    assert_eq!(
        (said.gate, said.why.as_str()),
        (MergeGate::Pending, "closed until Monday")
    );
    let change = |change: fn(&mut Pipeline)| {
        let mut owner = pipeline();
        change(&mut owner);
        Says::of(&object(), &owner)
    };
    let record = |owner: &mut Pipeline, change: fn(&mut sluice_crds::pipeline::PromotionRecord)| {
        let status = owner.status.as_mut().unwrap();
        let environment = status.environments.get_mut("prod").unwrap();
        change(environment.promotion.as_mut().unwrap());
    };
    assert_eq!(change(|it| it.metadata.name = Some("other".into())), None);
    assert_eq!(
        change(|it| it.metadata.namespace = Some("other".into())),
        None
    );
    assert_eq!(change(|it| it.status = None), None);
    let mut other = pipeline();
    record(&mut other, |it| it.key = "another".to_owned());
    assert_eq!(Says::of(&object(), &other), None);
    let mut other = pipeline();
    record(&mut other, |it| {
        it.pull_request.as_mut().unwrap().name = "podinfo-1".into();
    });
    assert_eq!(Says::of(&object(), &other), None);
    let mut other = pipeline();
    record(&mut other, |it| it.pull_request = None);
    assert_eq!(Says::of(&object(), &other), None);
    // It has not decided yet, or does not want it any more.
    let undecided: [fn(&mut sluice_crds::pipeline::PromotionRecord); 3] = [
        |it| it.phase = sluice_crds::pipeline::Phase::Unapproved,
        |it| it.phase = sluice_crds::pipeline::Phase::Unattempted,
        |it| it.reason = Some("Recalled".to_owned()),
    ];
    for change in undecided {
        let mut other = pipeline();
        record(&mut other, change);
        assert_eq!(Says::of(&object(), &other), None);
        assert_ne!(owner::words(&other), owner::words(&pipeline()));
    }
    // It promotes in another way by now.
    assert_eq!(change(|it| it.spec.environments.clear()), None);

    // One that is being deleted wants nothing any more, and its PullRequests are looked at.
    let mut deleted = pipeline();
    deleted.metadata.deletion_timestamp = Some(time(noon()));
    assert_eq!(Says::of(&object(), &deleted), None);
    assert_ne!(owner::words(&deleted), owner::words(&pipeline()));

    // If it says something else, its PullRequests are looked at.
    let mut ordered = pipeline();
    record(&mut ordered, |it| {
        (it.gate, it.order) = (Some(MergeGate::Success), Some(order()));
    });
    assert_ne!(owner::words(&ordered), owner::words(&pipeline()));
    let said = Says::of(&object(), &ordered).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Success, Some(order())));
}

/// Its status may be older than that, for as long as its apps are not read.
#[test]
fn an_owner_that_is_suspended_admits_and_orders_nothing() {
    let mut owner = pipeline();
    let status = owner.status.as_mut().unwrap();
    let environment = status.environments.get_mut("prod").unwrap();
    let record = environment.promotion.as_mut().unwrap();
    (record.gate, record.order) = (Some(MergeGate::Success), Some(order()));
    let before = owner.clone();
    let said = Says::of(&object(), &before).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Success, Some(order())));
    owner.spec.suspend = true;
    let said = Says::of(&object(), &owner).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Pending, None));
    assert_eq!(said.why, "the Pipeline is suspended");
    // Its PullRequests are looked at.
    assert_ne!(owner::words(&owner), owner::words(&before));
}

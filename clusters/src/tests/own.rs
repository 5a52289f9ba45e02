//! Our own cluster, which shows everything that is not about connections.

use super::*;

#[tokio::test]
async fn an_object_is_seen_in_what_is_read_of_it_and_its_changes_are_told() {
    let mut stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    let mut object = release("1.0.0");
    object["status"]["conditions"] = json!([{
        "type": "Ready", "status": "True", "reason": "UpgradeSucceeded", "message": "x".repeat(600),
        "lastTransitionTime": "2026-11-23T09:00:00Z", "observedGeneration": 2,
    }]);
    object["status"]["history"] = json!([{
        "chartVersion": "1.0.0", "status": "deployed", "digest": "sha256:1", "ociDigest": "sha256:2",
    }]);
    stage.put("apps", "web", object.clone());
    assert_eq!(
        stage.fleet.look(&apps, "web"),
        Sight::Unknown(Unknown::NotYet)
    );
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    let Sight::Seen(seen) = stage.fleet.look(&apps, "web") else {
        panic!("it is not seen")
    };
    let expected = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps", "uid": "uid-web", "generation": 2,
                     "deletionTimestamp": null},
        "spec": {},
        "status": {
            "observedGeneration": 2, "lastAttemptedRevision": "1.0.0",
            "conditions": [{"type": "Ready", "status": "True", "reason": "UpgradeSucceeded",
                            "message": "x".repeat(512), "observedGeneration": 2}],
            "history": [{"chartVersion": "1.0.0", "status": "deployed", "ociDigest": "sha256:2"}],
        },
    });
    assert_eq!(seen.read(), expected);
    assert_eq!(stage.fleet.look(&apps, "api"), Sight::Absent);
    assert_eq!(stage.trouble(&Cluster::Own), None);
    stage.changed();

    // Nothing that is read has changed; then it has.
    object["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-23T10:00:00Z");
    stage.put("apps", "web", object);
    stage.put("apps", "web", release("1.1.0"));
    stage.runs(&apps, "web", "1.1.0").await;
    assert_eq!(stage.changed(), ["web"]);
    stage.own.delete_object(RELEASES, Some("apps"), "web");
    stage
        .until(&apps, "web", |sight| *sight == Sight::Absent)
        .await;
    assert_eq!(stage.changed(), ["web"]);
    assert_eq!(
        (stage.own.lists(), stage.watches(&Cluster::Own)),
        (1, Some(1))
    );
}

#[tokio::test]
async fn what_was_missed_is_told_object_by_object_after_the_next_list() {
    let mut stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    for name in ["api", "db", "web"] {
        stage.put("apps", name, release("1.0.0"));
    }
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.changed();
    stage.own.silence("");
    stage.own.hang_up(true);
    stage.put("apps", "web", release("1.1.0"));
    stage.own.delete_object(RELEASES, Some("apps"), "db");
    stage.own.speak("");
    stage.runs(&apps, "web", "1.1.0").await;
    assert_eq!(stage.changed(), ["db", "web"]);
    assert_eq!(stage.fleet.look(&apps, "db"), Sight::Absent);
}

#[tokio::test]
async fn one_watch_is_enough_for_all_namespaces() {
    let stage = Stage::new();
    let all = ["apps", "shop", "web"].map(|namespace| wanted(&Cluster::Own, namespace));
    for one in &all {
        stage.put(&one.namespace, "app", release("1.0.0"));
    }
    stage.want(&[&all[0], &all[1], &all[2]], 0);
    for one in &all {
        stage.runs(one, "app", "1.0.0").await;
    }
    assert_eq!(
        (stage.own.lists(), stage.watches(&Cluster::Own)),
        (1, Some(1))
    );
}

/// There may be anything among the objects of another kind.
#[tokio::test]
async fn kinds_that_are_not_of_flux_are_followed_where_they_are_wanted() {
    let stage = Stage::new();
    let widgets = ("shop.example.com/v1", "widgets");
    stage.own.serve_kind(widgets.0, "Widget", widgets.1, true);
    stage.own.forbid("");
    let all = ["apps", "shop"].map(|namespace| {
        let mut wanted = wanted(&Cluster::Own, namespace);
        wanted.kind = Kind {
            group: "shop.example.com".to_owned(),
            kind: "Widget".to_owned(),
        };
        wanted
    });
    for one in &all {
        let namespace = Some(one.namespace.as_str());
        let object = release("1.0.0");
        stage.own.put_object(widgets, namespace, "web", object);
    }
    stage.want(&[&all[0], &all[1]], 0);
    for one in &all {
        stage.runs(one, "web", "1.0.0").await;
    }
    assert_eq!(stage.watches(&Cluster::Own), Some(2));
}

#[tokio::test]
async fn where_all_namespaces_are_refused_each_is_watched_by_itself() {
    let stage = Stage::new();
    let (apps, shop) = (wanted(&Cluster::Own, "apps"), wanted(&Cluster::Own, "shop"));
    stage.put("apps", "web", release("1.0.0"));
    stage.own.forbid("");
    stage.own.forbid("shop");
    stage.want(&[&apps, &shop], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    let words = "may not list HelmRelease.helm.toolkit.fluxcd.io in namespace shop; grant get, list \
                 and watch";
    stage.is_unknown(&shop, "web", words).await;
    assert_eq!(stage.watches(&Cluster::Own), Some(3));

    // The right comes: the watch of all namespaces is enough again, and the others end.
    stage.own.permit("");
    stage
        .until(&shop, "web", |sight| *sight == Sight::Absent)
        .await;
    stage.want(&[&apps, &shop], 100);
    stage.want(&[&apps, &shop], 160);
    assert_eq!(stage.watches(&Cluster::Own), Some(1));
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_which_nothing_is_heard_is_unknown_until_it_is_listed_again() {
    let stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    stage.put("apps", "web", release("1.0.0"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    // That nothing changes is not silence.
    after(Duration::from_secs(1000)).await;
    stage.runs(&apps, "web", "1.0.0").await;

    let mut changes = stage.fleet.changes();
    stage.own.silence("");
    after(Duration::from_secs(460)).await;
    let sight = stage.fleet.look(&apps, "web");
    assert!(
        matches!(&sight, Sight::Unknown(Unknown::Silent(_))),
        "{sight:?}"
    );
    let objects = Change::Objects {
        cluster: Cluster::Own,
        kind: releases(),
        namespace: None,
    };
    assert_eq!(changes.try_recv(), Ok(objects));
    assert!(
        stage
            .trouble(&Cluster::Own)
            .unwrap()
            .starts_with("nothing was heard")
    );
    stage.put("apps", "web", release("1.1.0"));
    stage.own.speak("");
    stage.runs(&apps, "web", "1.1.0").await;
    assert_eq!(stage.trouble(&Cluster::Own), None);
}

/// Otherwise each outage of our own API server would be reported twice.
#[tokio::test(start_paused = true)]
async fn while_our_own_api_server_is_away_what_it_told_is_not_doubted() {
    let stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    stage.put("apps", "web", release("1.0.0"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.own.silence("");
    for _ in 0..500 {
        after(Duration::from_secs(1)).await;
        stage.fleet.away();
    }
    stage.runs(&apps, "web", "1.0.0").await;
    after(Duration::from_secs(20)).await;
    stage.is_unknown(&apps, "web", "nothing was heard").await;
}

#[tokio::test(start_paused = true)]
async fn after_a_jump_everything_is_listed_again() {
    let stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    stage.put("apps", "web", release("1.0.0"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.fleet.list_again();
    eventually(|| match stage.own.lists() {
        2 => Ok(()),
        lists => Err(lists.to_string()),
    })
    .await;
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test]
async fn a_watch_ends_a_minute_after_its_last_use() {
    let stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    let mut whole = apps.clone();
    whole.part = Part::Whole;
    stage.put("apps", "web", release("1.0.0"));
    assert_eq!(stage.want(&[&apps, &whole], 0), None);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.runs(&whole, "web", "1.0.0").await;
    assert_eq!(stage.watches(&Cluster::Own), Some(2));
    // Another one still wants the kind.
    assert_eq!(stage.want(&[&apps], 100), Some(at(160)));
    assert_eq!(stage.want(&[&apps], 159), Some(at(160)));
    assert_eq!(stage.watches(&Cluster::Own), Some(2));
    assert_eq!(stage.want(&[&apps], 160), None);
    assert_eq!(stage.watches(&Cluster::Own), Some(1));
    // Nobody wants anything; somebody comes back in time.
    assert_eq!(stage.want(&[], 200), Some(at(260)));
    assert_eq!(stage.want(&[&apps], 259), None);
    assert_eq!(stage.want(&[], 300), Some(at(360)));
    assert_eq!(stage.want(&[], 360), None);
    assert_eq!(stage.watches(&Cluster::Own), None);
    assert_eq!(
        stage.fleet.look(&apps, "web"),
        Sight::Unknown(Unknown::NotYet)
    );
    eventually(|| match stage.own.watches() {
        0 => Ok(()),
        open => Err(format!("{open} are open")),
    })
    .await;
}

#[tokio::test]
async fn where_expressions_look_an_object_is_kept_whole() {
    let stage = Stage::new();
    let mut whole = wanted(&Cluster::Own, "apps");
    whole.part = Part::Whole;
    stage.put("apps", "web", release("1.0.0"));
    stage.put("shop", "web", release("2.0.0"));
    stage.want(&[&whole], 0);
    stage.runs(&whole, "web", "1.0.0").await;
    let Sight::Seen(seen) = stage.fleet.look(&whole, "web") else {
        panic!("it is not seen")
    };
    let seen = seen.read();
    assert_eq!(seen["spec"]["values"]["secret"], "s3cret");
    assert_eq!(seen["kind"], "HelmRelease");
    assert_eq!(seen["metadata"].get("managedFields"), None);
}

/// Labels may name any namespace, and lead to no watch in each of them.
#[tokio::test]
async fn where_little_is_kept_one_watch_is_for_all_namespaces() {
    let stage = Stage::new();
    let of = |namespace: &str| Wanted {
        part: Part::Kept,
        ..wanted(&Cluster::Own, namespace)
    };
    let (apps, shop) = (of("apps"), of("shop"));
    stage.put("apps", "web", release("1.0.0"));
    stage.put("shop", "web", release("2.0.0"));
    stage.want(&[&apps, &shop], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.runs(&shop, "web", "2.0.0").await;
    assert_eq!(stage.watches(&Cluster::Own), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_or_again_is_found() {
    let stage = Stage::new();
    let mut apps = wanted(&Cluster::Own, "apps");
    apps.kind = Kind {
        group: "kustomize.toolkit.fluxcd.io".to_owned(),
        kind: "Kustomization".to_owned(),
    };
    stage.want(&[&apps], 0);
    let missing = "has no kind Kustomization.kustomize.toolkit.fluxcd.io; install its";
    stage.is_unknown(&apps, "web", missing).await;
    // In which version does not matter.
    let kind = ("kustomize.toolkit.fluxcd.io/v9", "kustomizations");
    for revision in ["1", "2"] {
        stage.own.serve_kind(kind.0, "Kustomization", kind.1, true);
        let object = json!({"status": {"lastAttemptedRevision": revision}});
        stage.own.put_object(kind, Some("apps"), "web", object);
        stage.runs(&apps, "web", revision).await;
        stage.own.drop_kind("Kustomization");
        stage.is_unknown(&apps, "web", missing).await;
    }
}

#[tokio::test]
async fn kinds_that_cannot_be_targets_are_refused() {
    let stage = Stage::new();
    stage.own.serve_kind("v1", "Node", "nodes", false);
    for (kind, words) in [
        ("Secret", "Secrets are never read; name another kind"),
        ("Node", "a Node is in no namespace; name a kind that is"),
    ] {
        let mut apps = wanted(&Cluster::Own, "apps");
        apps.kind = Kind {
            group: String::new(),
            kind: kind.to_owned(),
        };
        stage.want(&[&apps], 0);
        stage.is_unknown(&apps, "web", words).await;
        assert_eq!(stage.watches(&Cluster::Own), Some(0));
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_hides_no_other() {
    let stage = Stage::new();
    let apps = wanted(&Cluster::Own, "apps");
    let time = json!([{"time": "9999-12-31T23:59:59Z"}]);
    stage.put("apps", "bad", json!({"metadata": {"managedFields": time}}));
    stage.put("apps", "web", release("1.0.0"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.is_unknown(&apps, "bad", "it cannot be read: ").await;
    stage.put("apps", "bad", release("1.0.0"));
    stage.runs(&apps, "bad", "1.0.0").await;
}

#[tokio::test]
async fn in_the_scope_of_one_namespace_others_are_not_asked_for() {
    let stage = Stage::with(Scope::Namespace("apps".to_owned()), &[]);
    stage.own.forbid("");
    let (apps, shop) = (wanted(&Cluster::Own, "apps"), wanted(&Cluster::Own, "shop"));
    stage.put("apps", "web", release("1.0.0"));
    stage.put("shop", "web", release("1.0.0"));
    stage.want(&[&apps, &shop], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    let beyond = stage.fleet.look(&shop, "web");
    assert_eq!(beyond, Sight::Unknown(Unknown::OutOfScope));
    assert_eq!(stage.watches(&Cluster::Own), Some(1));
}

#[tokio::test]
async fn a_gitops_cluster_is_followed_while_it_is_wanted() {
    let stage = Stage::new();
    let clusters = ("gitops.weave.works/v1alpha1", "gitopsclusters");
    stage
        .own
        .serve_kind(clusters.0, "GitopsCluster", clusters.1, true);
    let reference = Reference {
        kind: ReferenceKind::GitopsCluster,
        name: "prod".to_owned(),
        namespace: Some("fleet".to_owned()),
        api_version: None,
    };
    let find = || stage.fleet.find("pipes", &reference);
    assert_eq!(find(), Err(Unknown::NotYet));
    let needed = Fleet::needs("pipes", &reference).unwrap();
    stage.want(&[&needed], 0);
    let missing = Unknown::NoCluster("GitopsCluster fleet/prod".to_owned());
    eventually(|| match find() {
        Err(why) if why == missing => Ok(()),
        found => Err(format!("{found:?}")),
    })
    .await;
    for name in ["eu", "us"] {
        let object = json!({"spec": {"secretRef": {"name": name}}});
        stage
            .own
            .put_object(clusters, Some("fleet"), "prod", object);
        eventually(|| match find() {
            Ok(Cluster::Remote(secret)) if secret.to_string() == format!("fleet/{name}") => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    }
}

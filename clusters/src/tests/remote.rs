//! Another cluster, over TLS and by its kubeconfig.

use tokio::net::TcpListener;

use super::server::{HOST, Remote, kubeconfig};
use super::test_server::{Certificate, tls};
use super::*;

fn cluster(namespace: &str, name: &str) -> Cluster {
    Cluster::Remote(Arc::new(SecretKey {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }))
}

impl Stage {
    /// Writes the Secret of a cluster.
    fn put_kubeconfig(&self, cluster: &Cluster, allowed: Option<&str>, text: &str) {
        let Cluster::Remote(key) = cluster else {
            panic!("it has no Secret")
        };
        let keys: [(&str, &[u8]); 1] = [("value", text.as_bytes())];
        self.own.put_secret_keys(&key.namespace, &key.name, &keys);
        let annotations = json!({"sluice.dev/allowed-namespaces": allowed});
        let annotations = allowed.map_or(json!({}), |_| annotations);
        let object = json!({"metadata": {"annotations": annotations}, "data": {"value": "eA=="}});
        let (namespace, name) = (Some(key.namespace.as_str()), &key.name);
        self.own
            .put_object(("v1", "secrets"), namespace, name, object);
    }

    fn delete_kubeconfig(&self, cluster: &Cluster) {
        let Cluster::Remote(key) = cluster else {
            panic!("it has no Secret")
        };
        let namespace = Some(key.namespace.as_str());
        self.own
            .delete_object(("v1", "secrets"), namespace, &key.name);
    }
}

#[tokio::test]
async fn a_cluster_comes_with_its_secret_and_leaves_nothing_when_it_goes() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    stage.want(&[&apps], 0);
    let missing =
        "there is no Secret pipes/prod; create it with the kubeconfig under the key `value`";
    stage.is_unknown(&apps, "web", missing).await;
    assert_eq!(stage.trouble(&prod).unwrap(), missing);

    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage
        .until(&apps, "web", |sight| *sight == Sight::Absent)
        .await;
    remote.put("apps", "web", "1.0.0");
    stage.runs(&apps, "web", "1.0.0").await;
    assert_eq!(stage.trouble(&prod), None);
    // One of the other kind of the same name is nothing to it.
    stage.put("apps", "web", release("9.9.9"));
    stage.runs(&apps, "web", "1.0.0").await;

    stage.delete_kubeconfig(&prod);
    stage.is_unknown(&apps, "web", missing).await;
    assert_eq!(stage.watches(&prod), Some(0));
    remote.has_no_watches().await;
}

#[tokio::test]
async fn a_cluster_ends_a_minute_after_its_last_use() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    assert_eq!(stage.want(&[], 10), Some(at(70)));
    assert_eq!(stage.watches(&prod), Some(1));
    assert_eq!(stage.want(&[], 70), None);
    assert_eq!(stage.watches(&prod), None);
    remote.has_no_watches().await;
    // The Secret is not watched any more either.
    eventually(|| match stage.own.watches() {
        0 => Ok(()),
        open => Err(format!("{open} are open")),
    })
    .await;
    stage.want(&[&apps], 80);
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test]
async fn rotated_credentials_are_read_and_what_was_seen_stays_seen() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    let mut changes = stage.fleet.changes();
    // The old token counts no more; watches that are open are cut.
    *remote.token.lock().unwrap() = "second".to_owned();
    remote.api.hang_up(false);
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("second"));
    remote.put("apps", "web", "1.1.0");
    stage.runs(&apps, "web", "1.1.0").await;
    while let Ok(change) = changes.try_recv() {
        assert!(matches!(change, Change::Object { .. }), "{change:?}");
    }
    assert_eq!(remote.api.lists(), 1);
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_and_new_ones_are_tried_at_once() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("wrong"));
    stage.want(&[&apps], 0);
    stage
        .is_unknown(&apps, "web", "it answers with status 401")
        .await;
    assert!(stage.trouble(&prod).unwrap().contains("status 401"));
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.runs(&apps, "web", "1.0.0").await;
}

/// The watch of the Secret may be behind.
#[tokio::test]
async fn when_a_request_is_refused_the_secret_is_read_again_though_no_change_was_told() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    stage
        .until(&apps, "web", |sight| *sight == Sight::Absent)
        .await;
    *remote.token.lock().unwrap() = "second".to_owned();
    let text = remote.kubeconfig("second");
    let keys: [(&str, &[u8]); 1] = [("value", text.as_bytes())];
    stage.own.put_secret_keys("pipes", "prod", &keys);
    remote.api.hang_up(false);
    remote.put("apps", "web", "1.0.0");
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test]
async fn of_a_cluster_that_moved_nothing_is_kept() {
    let (stage, before, after) = (Stage::new(), Remote::start().await, Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    before.put("apps", "web", "1.0.0");
    before.put("apps", "old", "1.0.0");
    after.put("apps", "web", "2.0.0");
    stage.put_kubeconfig(&prod, None, &before.kubeconfig("first"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    stage.put_kubeconfig(&prod, None, &after.kubeconfig("first"));
    stage.runs(&apps, "web", "2.0.0").await;
    assert_eq!(stage.fleet.look(&apps, "old"), Sight::Absent);
    before.has_no_watches().await;
}

#[tokio::test]
async fn a_secret_is_for_the_namespaces_that_it_names() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("fleet", "prod");
    let theirs = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.want(&[&theirs], 0);
    let refused = "the Secret fleet/prod is not for namespace pipes; add pipes to its annotation \
                   sluice.dev/allowed-namespaces, as in `team-a,team-b`";
    // That there is none is said to nobody else.
    stage.is_unknown(&theirs, "web", refused).await;
    stage.put_kubeconfig(&prod, Some("shop"), &remote.kubeconfig("first"));
    after(Duration::from_millis(50)).await;
    stage.is_unknown(&theirs, "web", refused).await;
    assert_eq!(remote.api.lists(), 0);

    let own = Wanted {
        from: "fleet".to_owned(),
        ..theirs.clone()
    };
    stage.want(&[&theirs, &own], 10);
    stage.runs(&own, "web", "1.0.0").await;
    stage.is_unknown(&theirs, "web", refused).await;
    stage.put_kubeconfig(&prod, Some("shop, pipes"), &remote.kubeconfig("first"));
    stage.runs(&theirs, "web", "1.0.0").await;
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.is_unknown(&theirs, "web", refused).await;
    stage.runs(&own, "web", "1.0.0").await;
}

#[tokio::test]
async fn a_right_that_is_missing_is_told_with_what_to_grant() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.own.forbid("pipes");
    stage.want(&[&apps], 0);
    let words = "may not list the Secret pipes/prod; bind the controller to a Role in namespace pipes \
                 with get, list and watch on secrets and resourceNames [prod]";
    stage.is_unknown(&apps, "web", words).await;
    stage.own.permit("pipes");
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test]
async fn a_kubeconfig_that_is_refused_leads_nowhere_and_another_one_does() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    let good = remote.kubeconfig("first");
    stage.put_kubeconfig(&prod, None, &good);
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    let exec = good.replace(r#"{"token":"first"}"#, r#"{"exec":{"command":"aws"}}"#);
    assert_ne!(exec, good);
    stage.put_kubeconfig(&prod, None, &exec);
    let words = "the kubeconfig in Secret pipes/prod: users[].user.exec: no program is run";
    stage.is_unknown(&apps, "web", words).await;
    remote.has_no_watches().await;
    stage.put_kubeconfig(&prod, None, &good);
    stage.runs(&apps, "web", "1.0.0").await;
}

#[tokio::test]
async fn no_connection_is_made_where_the_rules_refuse_it() {
    let (stage, remote) = (Stage::with(Scope::All, &[]), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    let words = "refused: it is a loopback address; the controller's flag --egress-allow opens it";
    stage.is_unknown(&apps, "web", words).await;
    assert_eq!(
        stage.trouble(&prod).unwrap(),
        format!("the API server cannot be read: {words}")
    );
    let literal = remote.kubeconfig("first").replace(HOST, "127.0.0.1");
    stage.put_kubeconfig(&prod, None, &literal);
    stage.is_unknown(&apps, "web", words).await;
}

#[tokio::test]
async fn a_server_of_another_authority_gets_no_credentials() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    let (_, another) = tls(Certificate::For(HOST));
    stage.put_kubeconfig(&prod, None, &kubeconfig(remote.address, &another, "first"));
    stage.want(&[&apps], 0);
    let words = "not signed by an authority in certificate-authority-data of the kubeconfig; write";
    stage.is_unknown(&apps, "web", words).await;
}

#[tokio::test]
async fn a_dead_cluster_costs_the_others_nothing() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    // It takes connections, and never says a word.
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (prod, lost) = (cluster("pipes", "prod"), cluster("pipes", "lost"));
    let (apps, gone) = (wanted(&prod, "apps"), wanted(&lost, "apps"));
    let address = dead.local_addr().unwrap();
    let text = kubeconfig(address, &remote.authority, "first");
    stage.put_kubeconfig(&lost, None, &text);
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    remote.put("apps", "web", "1.0.0");
    stage.want(&[&gone, &apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    remote.put("apps", "web", "1.1.0");
    stage.runs(&apps, "web", "1.1.0").await;
    let sight = stage.fleet.look(&gone, "web");
    assert_eq!(sight, Sight::Unknown(Unknown::NotYet));
    assert_eq!(stage.trouble(&lost).unwrap(), "it was not read yet");
    assert_eq!(stage.trouble(&prod), None);
}

#[tokio::test]
async fn a_server_that_nobody_answers_at_is_told() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let text = kubeconfig(address, &remote.authority, "first");
    stage.put_kubeconfig(&prod, None, &text);
    stage.want(&[&apps], 0);
    let words = "the API server cannot be read: connection refused";
    stage.is_unknown(&apps, "web", words).await;
}

/// It is not even read: a tenant with a kubeconfig could fill the memory.
#[tokio::test]
async fn an_object_that_is_too_long_is_not_read() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("pipes", "prod");
    let apps = wanted(&prod, "apps");
    let mut large = release("1.0.0");
    large["spec"]["values"]["text"] = json!("x".repeat(7 << 19));
    remote.api.put_object(RELEASES, Some("apps"), "web", large);
    stage.put_kubeconfig(&prod, None, &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    let words = "the API server cannot be read: it sends more than 3145728 bytes";
    stage.is_unknown(&apps, "web", words).await;
    // One of the size that etcd takes is read, as a page of its own.
    let mut large = release("1.1.0");
    large["spec"]["values"]["text"] = json!("x".repeat(3 << 19));
    remote.api.put_object(RELEASES, Some("apps"), "web", large);
    remote.put("apps", "api", "2.0.0");
    stage.runs(&apps, "web", "1.1.0").await;
    stage.runs(&apps, "api", "2.0.0").await;
}

#[tokio::test]
async fn a_client_is_for_the_namespaces_that_may_use_the_cluster() {
    let (stage, remote) = (Stage::new(), Remote::start().await);
    let prod = cluster("fleet", "prod");
    let client = |from: &str| stage.fleet.client(from, &prod).map(|(_, host)| host);
    assert_eq!(client("pipes"), Err(Unknown::NotYet));
    let apps = wanted(&prod, "apps");
    remote.put("apps", "web", "1.0.0");
    stage.put_kubeconfig(&prod, Some("pipes"), &remote.kubeconfig("first"));
    stage.want(&[&apps], 0);
    stage.runs(&apps, "web", "1.0.0").await;
    assert_eq!(client("pipes"), Ok(HOST.to_owned()));
    let refused = client("shop");
    assert!(
        matches!(refused, Err(Unknown::NotAllowed { .. })),
        "{refused:?}"
    );
    stage.delete_kubeconfig(&prod);
    stage
        .is_unknown(&apps, "web", "not for namespace pipes")
        .await;
    assert!(client("pipes").is_err());
}

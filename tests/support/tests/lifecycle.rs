//! Starting, stopping, and what the servers can do in between.

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as NamespaceObject};
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client};
use sluice_tests::progress::Stderr;
use sluice_tests::{
    Applier, Binaries, ControlPlane, DEADLINE, Namespace, Options, User, Writes, poll, shared,
};

async fn start(options: Options) -> ControlPlane {
    let binaries = Binaries::ensure(&Stderr::new()).unwrap();
    ControlPlane::start(&binaries, options).await.unwrap()
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

async fn user_and_groups(client: Client) -> (String, Vec<String>) {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let review = SelfSubjectReview::default();
    let answer = api.add(&review).await.unwrap();
    let info = answer.status.unwrap().user_info.unwrap();
    (info.username.unwrap(), info.groups.unwrap())
}

#[tokio::test]
async fn two_run_side_by_side_and_leave_nothing() {
    let one = start(Options::default()).await;
    let two = start(Options::default()).await;
    let (folders, ports) = ([one.folder(), two.folder()], [one.port(), two.port()]);
    assert_ne!(ports[0], ports[1]);
    Namespace::create(one.cluster(), "only-in-one")
        .await
        .unwrap();
    let api: Api<NamespaceObject> = Api::all(two.client().await.unwrap());
    let seen = api.list(&ListParams::default()).await.unwrap();
    let mut names = seen
        .iter()
        .filter_map(|found| found.metadata.name.as_deref());
    assert!(names.all(|name| !name.starts_with("sluice-")));

    drop((one, two));
    assert_eq!(ports.map(listens), [false, false]);
    assert_eq!(folders.map(|folder| folder.exists()), [false, false]);
}

#[tokio::test]
async fn an_outage_of_the_api_server_loses_nothing() {
    let mut plane = start(Options::default()).await;
    let (client, port) = (plane.client().await.unwrap(), plane.port());
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some("kept".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    api.add(&object).await.unwrap();

    plane.stop_api_server();
    assert!(!listens(port));
    assert!(api.get("kept").await.is_err());

    plane.start_api_server().await.unwrap();
    assert_eq!(plane.port(), port);
    api.get("kept").await.unwrap();
}

#[tokio::test]
async fn users_act_with_their_own_name_and_groups() {
    let groups = vec!["on-call".to_owned()];
    let options = Options {
        users: vec![User {
            groups,
            ..User::new("alice")
        }],
        ..Options::default()
    };
    let plane = start(options).await;

    let (name, groups) = user_and_groups(plane.client_for("alice").await.unwrap()).await;
    assert_eq!(name, "alice");
    assert!(groups.contains(&"on-call".to_owned()), "{groups:?}");
    let file = plane.cluster().kubeconfig_for("alice").unwrap();
    let through_file = sluice_tests::Cluster::at(file.to_path_buf());
    let (name, _) = user_and_groups(through_file.client().await.unwrap()).await;
    assert_eq!(name, "alice");

    // Nobody has told the server about carol: she is impersonated.
    let (name, groups) = user_and_groups(plane.client_for("carol").await.unwrap()).await;
    assert_eq!(name, "carol");
    assert_eq!(groups, ["system:authenticated"]);
    let api: Api<NamespaceObject> = Api::all(plane.client_for("alice").await.unwrap());
    let refused = api.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.is_forbidden()));
}

#[tokio::test]
async fn a_test_that_panics_leaves_nothing() {
    let plane = start(Options::default()).await;
    let (folder, port) = (plane.folder(), plane.port());
    let test = tokio::spawn(async move {
        let _held = plane;
        panic!("as a failed assertion does");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert!(!folder.exists());
    assert!(!listens(port));
}

#[tokio::test]
async fn a_port_that_somebody_took_is_not_waited_for() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let binaries = Binaries::ensure(&Stderr::new()).unwrap();
    let options = Options {
        // The last one counts: every attempt gets the taken port.
        api_server_flags: vec![format!("--secure-port={port}")],
        ..Options::default()
    };
    let error = ControlPlane::start(&binaries, options).await.err().unwrap();
    let expected = "other processes took every free port that kube-apiserver was given, 5 times";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_server_that_cannot_start_shows_its_log() {
    let binaries = Binaries::ensure(&Stderr::new()).unwrap();
    let options = Options {
        api_server_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    };
    let error = ControlPlane::start(&binaries, options).await.err().unwrap();
    let text = format!("{error:#}");
    assert!(text.contains("unknown flag: --no-such-flag"), "{text}");
}

#[tokio::test]
async fn a_dropped_namespace_disappears() {
    let cluster = shared().await.unwrap();
    let namespace = Namespace::create(cluster, "short-lived").await.unwrap();
    let name = namespace.name().to_owned();
    drop(namespace);
    let api: Api<NamespaceObject> = Api::all(cluster.client().await.unwrap());
    poll(DEADLINE, "the namespace to be gone", async || {
        match api.get_opt(&name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn yaml_is_applied_with_definitions_first() {
    let plane = start(Options::default()).await;
    let applier = Applier::new(plane.client().await.unwrap()).in_namespace("lab");
    let applied = applier
        .text(
            "
apiVersion: example.com/v1
kind: Lamp
metadata: {name: red}
spec: {lit: true}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
",
        )
        .await
        .unwrap();
    let lamp = applied.last().unwrap();
    assert_eq!(lamp.metadata.namespace.as_deref(), Some("lab"));
    assert_eq!(lamp.data["spec"]["lit"], true);

    let refused = applier
        .text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}")
        .await;
    let text = format!("{:#}", refused.unwrap_err());
    assert!(text.starts_with("text: cannot apply Pod p: "), "{text}");
}

//! The server that all other tests here share.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use sluice_tests::{Namespace, shared};

#[tokio::test]
async fn it_serves_our_kinds() {
    let client = shared().await.unwrap().client().await.unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(client);
    for expected in sluice_crds::all() {
        let name = expected.name_any();
        let accepted = api
            .get(&name)
            .await
            .unwrap()
            .status
            .unwrap()
            .accepted_names
            .unwrap();
        let wanted = expected.spec.names;
        assert_eq!(accepted.kind, wanted.kind);
        assert_eq!(accepted.short_names, wanted.short_names, "{name}");
    }
}

#[tokio::test]
async fn it_gives_every_test_a_namespace() {
    let cluster = shared().await.unwrap();
    let one = Namespace::create(cluster, "smoke").await.unwrap();
    let two = Namespace::create(cluster, "smoke").await.unwrap();
    assert_ne!(one.name(), two.name());
}

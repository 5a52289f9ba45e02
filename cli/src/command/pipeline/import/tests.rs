use rstest::rstest;
use sluice_core::offline::lint;

use super::*;
use crate::converted::Comment;

/// As Weave's design publishes it: without a version of the app, on clusters that are named.
const SEVERAL_TARGETS: &str = "
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: podinfo, namespace: default}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  environments:
    - name: dev
      targets:
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev-us}}
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev-eu}}
    - name: prod
      targets:
        - {namespace: podinfo, clusterRef: {kind: GitopsCluster, name: prod}}
";

/// As its guides publish it: an older version of Flux, pull requests, and an environment of its own mind.
const PULL_REQUESTS: &str = "
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata:
  name: podinfo-02
  namespace: flux-system
  labels: {team: shop}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}
spec:
  appRef: {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: podinfo}
  environments:
    - name: dev
      targets:
        - namespace: podinfo-02-dev
          clusterRef: {kind: GitopsCluster, name: dev, namespace: clusters}
    - name: test
      targets: [{namespace: podinfo-02-qa}, {namespace: podinfo-02-perf}]
      promotion: {strategy: {notification: {}}}
    - name: prod
      targets: [{namespace: podinfo-02-prod}]
      promotion:
        manual: true
        strategy:
          pull-request:
            type: gitlab
            url: https://gitlab.example.com/shop/apps.git
            baseBranch: main
            secretRef: {name: gitlab-credentials}
          secretRef: {name: approvals}
  promotion:
    strategy:
      pull-request:
        type: github
        url: https://github.com/my-org/my-app-repo
        baseBranch: main
        secretRef: {name: promotion-credentials}
status: {observedGeneration: 1}
";

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[rstest]
#[case("several_targets", SEVERAL_TARGETS)]
#[case("pull_requests", PULL_REQUESTS)]
fn what_is_published_is_imported_and_passes_admission(#[case] name: &str, #[case] text: &str) {
    let imported = import(&read(text), "default", &[]).unwrap();
    let checked = lint::read(&imported.object);
    assert!(checked.mistakes.is_empty(), "{:?}", checked.mistakes);
    assert_eq!(imported.object["spec"]["suspend"], true);
    insta::assert_snapshot!(name, imported.text().unwrap());
}

/// The page shows what goes in, and then what comes out.
#[test]
fn the_guide_shows_what_is_printed() {
    let guide = include_str!("../../../../../docs/guides/from-weave-pipelines.md");
    let mut blocks = guide.split("```yaml\n").skip(1);
    let mut block = || read(blocks.next().unwrap().split("```").next().unwrap());
    let (weave, ours) = (block(), block());
    let imported = import(&weave, "default", &[]).unwrap();
    assert_eq!(imported.object, ours);
}

#[test]
fn files_that_are_named_are_written() {
    let written = ["prod/podinfo.yaml".to_owned()];
    let imported = import(&read(PULL_REQUESTS), "default", &written).unwrap();
    let strategy = &imported.object["spec"]["promotion"]["strategy"]["pull-request"];
    assert_eq!(strategy["paths"], serde_json::json!(written));
    let notes = imported.text().unwrap();
    assert!(!notes.contains(".paths"), "{notes}");
}

#[rstest]
#[case::older(
    "strategy: {pull-request: {type: github, url: 'https://a/b', secretRef: {name: a}}}",
    "notification: {}",
    "spec.promotion.notification: this is the older form; write promotion: {strategy: {notification: {}}}"
)]
#[case::forge(
    "type: github",
    "type: azure-devops",
    "spec.promotion.strategy.pull-request.type: `azure-devops` is no forge that is known"
)]
#[case::address(
    "url: 'https://a/b'",
    "url: 'http://a/b'",
    "spec.promotion.strategy.pull-request.url: `http://a/b` is no address over https"
)]
#[case::twice(
    "name: prod,",
    "name: dev,",
    "spec.environments[1].name: `dev` is listed twice"
)]
fn what_cannot_be_imported_is_told_with_what_to_write(
    #[case] from: &str,
    #[case] to: &str,
    #[case] expected: &str,
) {
    let text = "
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: podinfo, namespace: apps}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  environments:
    - {name: dev, targets: [{namespace: dev}]}
    - {name: prod, targets: [{namespace: prod}]}
  promotion: {strategy: {pull-request: {type: github, url: 'https://a/b', secretRef: {name: a}}}}
";
    assert!(import(&read(text), "default", &[]).is_ok());
    let changed = text.replace(from, to);
    assert_ne!(text, changed);
    let mistakes = import(&read(&changed), "default", &[])
        .unwrap_err()
        .join("\n");
    assert!(mistakes.contains(expected), "{mistakes}");
    assert!(
        mistakes.starts_with("Pipeline apps/podinfo: "),
        "{mistakes}"
    );
}

#[test]
fn what_is_not_known_is_said_to_be_left_out() {
    let mut value = read(SEVERAL_TARGETS);
    value["spec"]["colour"] = "blue".into();
    let imported = import(&value, "default", &[]).unwrap();
    let text = "spec.colour is not known, and is left out".to_owned();
    assert!(imported.comments.contains(&Comment {
        text,
        is_lost: true
    }));
    assert_eq!(imported.object["spec"].get("colour"), None);
}

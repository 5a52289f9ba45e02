//! `pipeline new` and `pipeline import`, from files alone.

use crate::program::run;

#[test]
fn a_new_pipeline_passes_lint() {
    let new = run(
        &[
            "pipeline",
            "new",
            "podinfo",
            "--app",
            "HelmRelease/podinfo",
            "-e",
            "dev=podinfo-dev",
            "-e",
            "prod=podinfo@Secret/prod-kubeconfig,perf",
            "-g",
            "prod=production",
            "--promote",
            "admission",
            "--manual",
            "prod",
            "-n",
            "apps",
        ],
        "",
    );
    assert_eq!(new.code, Some(0), "{new:?}");
    insta::assert_snapshot!(new.out);
    assert_eq!(run(&["lint", "-f", "-"], &new.out).code, Some(0));
    for (arguments, expected) in [
        (&["-g", "live=a"][..], "there is no environment `live`"),
        (
            &["--url", "https://a"][..],
            "belong to --promote pull-request",
        ),
        (&["--promote", "pull-request"][..], "needs --forge"),
        (&["-e", "x=a@b"][..], "names no cluster"),
    ] {
        let common = [
            "pipeline",
            "new",
            "a",
            "--app",
            "HelmRelease/a",
            "-e",
            "dev=dev",
        ];
        let refused = run(&[&common[..], arguments].concat(), "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(expected), "{refused:?}");
    }
}

#[test]
fn pipelines_of_weave_are_imported_from_files() {
    let weave = "
apiVersion: v1
kind: List
items:
  - apiVersion: pipelines.weave.works/v1alpha1
    kind: Pipeline
    metadata: {name: podinfo, namespace: default}
    spec:
      appRef: {kind: HelmRelease, name: podinfo}
      environments: [{name: dev, targets: [{namespace: podinfo}]}]
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
";
    let imported = run(&["pipeline", "import", "-f", "-"], weave);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(
        run(&["lint", "-f", "-"], &imported.out).code,
        Some(0),
        "{imported:?}"
    );
    let older = weave.replace("appRef:", "promotion: {notification: {}}\n      appRef:");
    let refused = run(&["pipeline", "import", "-f", "-"], &older);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains("write promotion: {strategy: {notification: {}}}"),
        "{refused:?}"
    );
    assert!(refused.out.is_empty(), "{refused:?}");
    assert_eq!(run(&["pipeline", "import", "-f", "-"], "{}").code, Some(2));
}

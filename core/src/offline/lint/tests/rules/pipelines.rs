//! What breaks each rule of pipelines.

use super::Broken;

pub(super) const PIPELINE: &[Broken] = &[
    (
        "environments[0].gates: nothing is promoted",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}], gates: {refs: [{name: a}]}}]}",
    ),
    (
        "versions: a name is listed twice",
        "{appRef: {kind: HelmRelease, name: a}, versions: [{name: a, expression: object.a}, {name: a, expression: object.b}], environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "environments: a name is listed twice",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}]}, {name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "kind: a Secret is no app",
        "{appRef: {kind: Secret, name: a}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "apiVersion: only Kustomization",
        "{appRef: {kind: Deployment, name: a}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "name: no `..` in it",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}]}, {name: a..b, targets: [{namespace: a}]}]}",
    ),
    (
        "strategy: write exactly one of",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "url: forges are asked over https",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {pull-request: {type: gitea, url: 'http://a/b', secretRef: {name: a}, paths: [a.yaml]}}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "paths: each is a file",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {pull-request: {type: gitea, url: 'https://a/b', secretRef: {name: a}, paths: [/a.yaml]}}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
];

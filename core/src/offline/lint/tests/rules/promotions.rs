//! What breaks each rule of promotion strategies, and of what they use.

use super::Broken;

pub(super) const PROMOTION_STRATEGY: &[Broken] = &[
    (
        "environments: a branch is the proposed branch",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}], environments: [{branch: a}, {branch: a-next}]}",
    ),
    (
        "environments: a branch is listed twice",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}], environments: [{branch: a}, {branch: a}]}",
    ),
    (
        "environments: one that others wait for",
        "{repoRef: {name: a}, environments: [{branch: a}, {branch: b}]}",
    ),
    (
        "dryBranch: it is the branch",
        "{repoRef: {name: a}, environments: [{branch: main}]}",
    ),
    (
        "branch: write the name of a branch",
        "{repoRef: {name: a}, environments: [{branch: a..b}]}",
    ),
    (
        "statusName: others write statuses by other names",
        "{repoRef: {name: a}, statusName: a, environments: [{branch: a}]}",
    ),
    (
        "statusName: with a branch added it could be",
        "{repoRef: {name: a}, statusName: sluice/a/b, environments: [{branch: a}]}",
    ),
    (
        "activeCommitStatuses: a key is listed twice",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}, {key: a}], environments: [{branch: a}]}",
    ),
    (
        "proposedCommitStatuses: a key is listed twice",
        "{repoRef: {name: a}, environments: [{branch: a, proposedCommitStatuses: [{key: a}, {key: a}]}]}",
    ),
    (
        "proposedCommitStatuses: Flux has not applied",
        "{repoRef: {name: a}, proposedCommitStatuses: [{key: a, flux: {kustomizations: [{name: a}]}}], environments: [{branch: a}]}",
    ),
    (
        "forge: write one of flux and forge",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a, forge: b, flux: {kustomizations: [{name: a}]}}], environments: [{branch: a}]}",
    ),
];

pub(super) const GIT_REPOSITORY_ACCESS: &[Broken] = &[
    (
        "url: forges are asked over https alone",
        "{provider: gitea, url: 'http://a/b', secretRef: {name: a}}",
    ),
    (
        "url: no user and no query",
        "{provider: gitea, url: 'https://me@a/b', secretRef: {name: a}}",
    ),
    (
        "interval: must be between 10s",
        "{provider: gitea, url: 'https://a/b', secretRef: {name: a}, interval: 9s}",
    ),
    (
        "webhook.secretRef: who sets up the webhook",
        "{provider: gitea, url: 'https://a/b', secretRef: {name: a}, webhook: {secretRef: {name: a}}}",
    ),
];

pub(super) const COMMIT_STATUS: &[Broken] = &[
    (
        "name: names that begin with",
        "{repoRef: {name: a}, sha: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a, name: sluice/x, phase: success}",
    ),
    (
        "url: write an address that begins with",
        "{repoRef: {name: a}, sha: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a, name: x, phase: success, url: a}",
    ),
];

//! Changes of a Rollout: a run goes on as it began, and of another run everything may be different.

use anyhow::{Context, Result, bail, ensure};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::Rollout;
use sluice_tests::Writes;

use super::super::super::object;
use super::super::Judge;
use super::super::promotion::with;
use super::{largest, rollout};

/// A change of the spec in YAML, the field that the API server names, and words that it says.
type Misfit = (&'static str, &'static str, &'static str);

/// Four batches of two Deployments, of which two may go out.
const PAIR: &str = "{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 25%}, {replicas: 50%}, {}], lastBatchToRollout: 1}}";

#[rustfmt::skip]
const OF_PAIRS: &[Misfit] = &[
    ("{rolloutPlan: {rolloutStrategy: DecreaseFirst}}", "spec.rolloutPlan.rolloutStrategy", "rolloutStrategy: never changes"),
    ("{rolloutPlan: {targetSize: 5}}", "spec.rolloutPlan.targetSize", "targetSize: never changes"),
    ("{rolloutPlan: {rolloutBatches: null, numBatches: 2}}", "spec.rolloutPlan.numBatches", "numBatches: never changes"),
    ("{rolloutPlan: {rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}]}}", "spec.rolloutPlan.rolloutWebhooks", "rolloutWebhooks: never change"),
    ("{rolloutPlan: {lastBatchToRollout: 0}}", "spec.rolloutPlan.lastBatchToRollout", "only grows"),
    ("{rolloutPlan: {lastBatchToRollout: null, batchPartition: 0}}", "spec.rolloutPlan.lastBatchToRollout", "only grows"),
    // It is the same run in other words.
    ("{targetRef: {apiVersion: apps/v1}, rolloutPlan: {lastBatchToRollout: 0}}", "spec.rolloutPlan.lastBatchToRollout", "only grows"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 2%}, {replicas: 25%}, {replicas: 50%}, {replicas: 10%}]}}", "spec.rolloutPlan.rolloutBatches", "those up to lastBatchToRollout"),
    ("{rolloutPlan: {lastBatchToRollout: 2, rolloutBatches: [{replicas: 1}, {replicas: 26%}, {replicas: 50%}, {}]}}", "spec.rolloutPlan.rolloutBatches", "those up to lastBatchToRollout"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 25%}]}}", "spec.rolloutPlan.rolloutBatches", "those up to lastBatchToRollout"),
    ("{rolloutPlan: {rolloutBatches: null}}", "spec.rolloutPlan.rolloutBatches", "those up to lastBatchToRollout"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 25%}]}}", "spec.rolloutPlan.rolloutBatches", "at least one after lastBatchToRollout stays"),
    ("{rolloutPlan: {lastBatchToRollout: 2, rolloutBatches: [{replicas: 1}, {replicas: 25%}]}}", "spec.rolloutPlan.rolloutBatches", "at least one after lastBatchToRollout stays"),
    ("{rolloutPlan: {lastBatchToRollout: null, rolloutBatches: [{replicas: 1}, {replicas: 25%}]}}", "spec.rolloutPlan.rolloutBatches", "at least one after lastBatchToRollout stays"),
];

const FITTING_PAIRS: &[&str] = &[
    "{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 25%}, {replicas: 2}, {replicas: 3}, {}]}}",
    "{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 25%}, {}]}}",
    "{rolloutPlan: {lastBatchToRollout: 2, rolloutBatches: [{replicas: 1}, {replicas: 25%}, {}]}}",
    "{rolloutPlan: {lastBatchToRollout: 2}}",
    "{rolloutPlan: {lastBatchToRollout: null}}",
    "{rolloutPlan: {lastBatchToRollout: null, batchPartition: 3}}",
    "{gates: {refs: [{name: a}]}, progressDeadline: 1h, onFailure: Revert, serviceAccountName: deployer, \
     rolloutPlan: {paused: true, revertOnDelete: true, canaryMetric: [{name: a}]}}",
    // Another run.
    "{revision: '2', rolloutPlan: {rolloutBatches: null, lastBatchToRollout: null, numBatches: 2, batchPartition: 0, \
     targetSize: 7, rolloutStrategy: DecreaseFirst, rolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}]}}",
    "{targetRef: {name: c}, rolloutPlan: {lastBatchToRollout: 0, targetSize: 7}}",
    "{sourceRef: [{kind: Deployment, name: c}], rolloutPlan: {lastBatchToRollout: 0, targetSize: 7}}",
    "{sourceRef: null, rolloutPlan: {lastBatchToRollout: 0, rolloutBatches: [{}]}}",
];

/// Three batches of a StatefulSet, which may all go out.
const IN_PLACE: &str = "{targetRef: {kind: StatefulSet, name: a}, sourceRef: null, rearm: true, \
    rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 2}, {}]}}";

#[rustfmt::skip]
const OF_PLACES: &[Misfit] = &[
    ("{rearm: false}", "spec.rearm", "rearm: never changes"),
    ("{rearm: null}", "spec.rearm", "rearm: never changes"),
    ("{rolloutPlan: {lastBatchToRollout: 9}}", "spec.rolloutPlan.lastBatchToRollout", "only grows"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 3}, {}]}}", "spec.rolloutPlan.rolloutBatches", "without it none does"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 2}]}}", "spec.rolloutPlan.rolloutBatches", "without it none does"),
    ("{rolloutPlan: {rolloutBatches: [{replicas: 1}, {replicas: 2}, {replicas: 3}, {}]}}", "spec.rolloutPlan.rolloutBatches", "without it none does"),
];

const FITTING_PLACES: &[&str] = &[
    "{rolloutPlan: {paused: true}}",
    "{revision: '2', rearm: false, rolloutPlan: {rolloutBatches: [{}], lastBatchToRollout: 0}}",
];

/// One of the workloads of a Kustomization.
const APPLICATION: &str = "{targetRef: {kind: Kustomization, name: a}, sourceRef: null, component: web, rolloutPlan: {targetSize: 5}}";

#[rustfmt::skip]
const OF_APPLICATIONS: &[Misfit] = &[
    ("{rolloutPlan: {targetSize: 6}}", "spec.rolloutPlan.targetSize", "targetSize: never changes"),
    ("{rolloutPlan: {targetSize: null}}", "spec.rolloutPlan.targetSize", "targetSize: never changes"),
];

const FITTING_APPLICATIONS: &[&str] = &[
    "{component: api, rolloutPlan: {targetSize: 6}}",
    "{component: null, rolloutPlan: {targetSize: 6}}",
    "{targetRef: {kind: HelmRelease}, rolloutPlan: {targetSize: 6}}",
];

/// The fields of all misfits, and the words.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = [OF_PAIRS, OF_PLACES, OF_APPLICATIONS];
    let all = all.into_iter().flatten();
    all.map(|(_, field, words)| (*field, *words))
}

#[tokio::test]
async fn changes_that_do_not_fit_a_run_are_refused() -> Result<()> {
    for (spec, misfits, fitting) in [
        (PAIR, OF_PAIRS, FITTING_PAIRS),
        (IN_PLACE, OF_PLACES, FITTING_PLACES),
        (APPLICATION, OF_APPLICATIONS, FITTING_APPLICATIONS),
    ] {
        let run = Run::of(spec).await?;
        for (change, field, words) in misfits {
            let change = serde_saphyr::from_str(change)?;
            run.refuses(&change, field, words).await?;
        }
        for change in fitting {
            run.allows(&serde_saphyr::from_str(change)?).await?;
        }
    }
    Ok(())
}

/// The rules compare each batch with each: of the largest plan, too, that costs no more than the API server allows.
#[tokio::test]
async fn the_largest_plan_can_be_changed() -> Result<()> {
    const FIELD: &str = "spec.rolloutPlan.rolloutBatches";
    const PASSED: &str = "those up to lastBatchToRollout";
    const LATER: &str = "at least one after lastBatchToRollout stays";
    let all = largest(30);
    let other = |place: usize| {
        let mut batches = all.clone();
        batches[place]["replicas"] = 99.into();
        batches
    };
    let batches = |batches: &[Value]| json!({"rolloutPlan": {"rolloutBatches": batches}});
    let mut half = batches(&all);
    half["rolloutPlan"]["lastBatchToRollout"] = 14.into();
    let run = Run::of(&half.to_string()).await?;
    for (change, refused) in [
        (other(14), Some(PASSED)),
        (all[..14].to_vec(), Some(PASSED)),
        (all[..15].to_vec(), Some(LATER)),
        (all[..16].to_vec(), None),
        (other(15), None),
        (other(29), None),
    ] {
        match refused {
            Some(words) => run.refuses(&batches(&change), FIELD, words).await?,
            None => run.allows(&batches(&change)).await?,
        }
    }
    let whole = Run::of(&batches(&all).to_string()).await?;
    whole
        .allows(&json!({"rolloutPlan": {"paused": true}}))
        .await?;
    whole.refuses(&batches(&other(29)), FIELD, PASSED).await
}

/// A Rollout, and changes of it that the API server only judges.
struct Run {
    judge: Judge,
}

impl Run {
    /// Two Deployments in one batch, but for what is written here.
    async fn of(spec: &str) -> Result<Self> {
        let run = Self {
            judge: Judge::new().await?,
        };
        let made = object("Rollout", &with(rollout(), spec)?)?;
        run.api().add(&serde_json::from_value(made)?).await?;
        Ok(run)
    }

    fn api(&self) -> Api<Rollout> {
        Api::namespaced(self.judge.client.clone(), self.judge.namespace.name())
    }

    async fn change(&self, spec: &Value) -> kube::Result<Rollout> {
        let judged = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let change = Patch::Merge(json!({ "spec": spec }));
        self.api().patch("example", &judged, &change).await
    }

    async fn allows(&self, spec: &Value) -> Result<()> {
        let answer = self.change(spec).await;
        answer.with_context(|| spec.to_string()).map(drop)
    }

    async fn refuses(&self, spec: &Value, field: &str, words: &str) -> Result<()> {
        let status = match self.change(spec).await {
            Err(kube::Error::Api(status)) => status,
            answer => bail!("{spec}: the API server says {answer:?}"),
        };
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        let named = causes.any(|cause| cause.field == field && cause.message.contains(words));
        ensure!(
            status.code == 422 && named,
            "{spec}: not at {field}, or without {words:?}: {}",
            status.message
        );
        Ok(())
    }
}

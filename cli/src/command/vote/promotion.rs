//! A vote on one promotion of a pipeline.

use anyhow::{Context, Result, bail};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use sluice_core::delivery::pipeline::{EnvironmentView, View, view};
use sluice_core::revision::Revision;
use sluice_crds::approval::{ApprovalSpec, PipelineReference, Vote as Decision};
use sluice_crds::pipeline::Phase;
use sluice_crds::{Approval, Pipeline};

use super::{Vote, checked, create};
use crate::arguments::{Globals, pipeline_name};
use crate::cluster::{self, Connection, Use};
use crate::outcome::Outcome;
use crate::output::say;

/// What is voted on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Promotion {
    pipeline: String,
    environment: String,
    run: i64,
    /// None: the status does not say it yet.
    key: Option<String>,
    revision: Revision,
}

impl Vote {
    /// Votes on what a pipeline waits with.
    pub(super) async fn on_promotion(
        &self,
        globals: &Globals,
        decision: Decision,
        pipeline: &str,
    ) -> Result<Outcome> {
        let name = pipeline_name(pipeline)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let object: Pipeline = cluster::existing(&connection, &name).await?;
        let environment = self.environment.as_deref();
        let promotion = chosen(&view(&object, &[]), environment, decision)?;
        self.is_meant(&promotion)?;
        self.cast(&connection, &promotion, decision).await
    }

    /// Whether `--revision`, if it is given, is what is waited with.
    fn is_meant(&self, promotion: &Promotion) -> Result<()> {
        match &self.revision {
            Some(meant) if !meant.is(&promotion.revision) => bail!(
                "--revision: {}:{} waits with {}, and not with {meant}; look with \
                 `kubectl gate pipeline {}` before you vote",
                promotion.pipeline,
                promotion.environment,
                promotion.revision,
                promotion.pipeline
            ),
            Some(_) | None => Ok(()),
        }
    }

    async fn cast(
        &self,
        connection: &Connection,
        promotion: &Promotion,
        decision: Decision,
    ) -> Result<Outcome> {
        let Promotion {
            pipeline,
            environment,
            run,
            key: _,
            revision,
        } = promotion;
        let user = connection.who().await?;
        let approval = self.on(promotion, decision, &user.name, connection)?;
        let api: Api<Approval> = connection.here();
        let place = format!("for {pipeline}:{environment}");
        let known = known(&api, &approval).await;
        create(&api, &approval, known, (pipeline, &place)).await?;
        say!("it is about {revision} for {environment}, in run {run} of {pipeline}")?;
        Ok(Outcome::Yes)
    }

    /// The Approval to create.
    fn on(
        &self,
        promotion: &Promotion,
        decision: Decision,
        by: &str,
        connection: &Connection,
    ) -> Result<Approval> {
        let spec = ApprovalSpec {
            gatekeeper_ref: None,
            pipeline_ref: Some(PipelineReference {
                name: promotion.pipeline.clone(),
                environment: promotion.environment.clone(),
                run: promotion.run,
                key: promotion.key.clone(),
            }),
            revision: promotion.revision.to_string(),
            decision,
            by: by.to_owned(),
            groups: Vec::new(),
            reason: self.reason(),
        };
        checked(spec, &connection.key(&promotion.pipeline))
    }
}

/// The name of a vote that says the same. Somebody who may not see votes casts another.
async fn known(api: &Api<Approval>, approval: &Approval) -> Option<String> {
    let spec = &approval.spec;
    let all = api.list(&ListParams::default()).await.ok()?;
    let says_the_same = |known: &&Approval| {
        known.metadata.deletion_timestamp.is_none()
            && known.spec.pipeline_ref == spec.pipeline_ref
            && (&known.spec.by, known.spec.decision) == (&spec.by, spec.decision)
            && known.spec.revision == spec.revision
    };
    all.items
        .iter()
        .find(says_the_same)
        .map(ResourceExt::name_any)
}

/// The promotion that is voted on: to this environment, or to the only one that waits.
///
/// # Errors
/// There is none, or several; the environment is unknown.
fn chosen(view: &View, environment: Option<&str>, decision: Decision) -> Result<Promotion> {
    let name = &view.name;
    if let Some(named) = environment
        && !view.environments.iter().any(|it| it.name == named)
    {
        let known = view.environments.iter().map(|it| it.name.as_str());
        bail!(
            "--environment: {name} has no environment `{named}`; write one of {}",
            known.collect::<Vec<_>>().join(", ")
        );
    }
    let meant = view.environments.iter();
    let meant = meant.filter(|it| environment.is_none_or(|named| it.name == named));
    let waiting = meant.filter_map(|it| Some((it, waits(it, decision)?)));
    let waiting: Vec<_> = waiting.collect();
    let (environment, (run, revision)) = match waiting.as_slice() {
        [one] => one,
        [] => {
            let at = environment
                .map(|it| format!(" for {it}"))
                .unwrap_or_default();
            bail!(
                "{name} waits with nothing that could be voted on{at}; look with \
                 `kubectl gate pipeline {name}`"
            )
        }
        several => {
            let names = several.iter().map(|(it, _)| it.name.as_str());
            bail!(
                "{name} waits with several promotions; choose one with --environment: {}",
                names.collect::<Vec<_>>().join(", ")
            )
        }
    };
    let revision = Revision::parse(revision)
        .with_context(|| format!("{name} waits with `{revision}`, which cannot be voted on"))?;
    let record = environment.promotion.as_ref();
    let record = record.filter(|record| record.run == *run);
    Ok(Promotion {
        pipeline: name.clone(),
        environment: environment.name.clone(),
        run: *run,
        key: record.map(|record| record.key.clone()),
        revision,
    })
}

/// The run and the revision that an environment waits with. Whatever is not done yet can be rejected, also
/// where nobody has to approve it.
fn waits(environment: &EnvironmentView, decision: Decision) -> Option<(i64, String)> {
    if let Some(waits) = &environment.waiting_approval {
        return Some((waits.run, waits.revision.clone()));
    }
    let promotion = environment.promotion.as_ref()?;
    let is_over = matches!(promotion.phase, Phase::Succeeded | Phase::Abandoned);
    let may = decision == Decision::Reject && !is_over;
    may.then(|| (promotion.run, promotion.revision.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(environments: &[(&str, Value)]) -> View {
        let target = json!([{"namespace": "a"}]);
        let spec: Vec<Value> = environments
            .iter()
            .map(|(name, _)| json!({"name": name, "targets": target}))
            .collect();
        let status: serde_json::Map<String, Value> = environments
            .iter()
            .map(|(name, status)| ((*name).to_owned(), status.clone()))
            .collect();
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "podinfo", "namespace": "apps"},
            "spec": {"appRef": {"kind": "HelmRelease", "name": "podinfo"}, "environments": spec},
            "status": {"environments": status},
        });
        view(&serde_json::from_value(object).unwrap(), &[])
    }

    fn unapproved(run: i64) -> Value {
        json!({"state": "Unapproved", "waitingApproval":
            {"revision": "6.1.6", "run": run, "since": "2026-11-23T12:00:00Z"}})
    }

    fn open() -> Value {
        json!({"state": "PullRequestOpen", "promotion": {
            "run": 3, "revision": "6.1.6", "key": "k", "phase": "Created",
            "at": "2026-11-23T12:00:00Z"}})
    }

    #[test]
    fn the_only_promotion_that_waits_need_not_be_named() {
        let shown = shown(&[
            ("staging", json!({"state": "Passed"})),
            ("prod", unapproved(7)),
        ]);
        let found = chosen(&shown, None, Decision::Approve).unwrap();
        assert_eq!((found.environment.as_str(), found.run), ("prod", 7));
    }

    #[test]
    fn what_cannot_be_voted_on_is_told() {
        let two = shown(&[("staging", unapproved(8)), ("prod", unapproved(7))]);
        let none = shown(&[("prod", open())]);
        for (view, environment, expected) in [
            (&two, None, "choose one with --environment: staging, prod"),
            (
                &two,
                Some("live"),
                "has no environment `live`; write one of staging, prod",
            ),
            (
                &none,
                Some("prod"),
                "waits with nothing that could be voted on for prod",
            ),
        ] {
            let error = chosen(view, environment, Decision::Approve).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_under_way_can_be_rejected() {
        let found = chosen(&shown(&[("prod", open())]), None, Decision::Reject).unwrap();
        assert_eq!(found.run, 3);
    }
}

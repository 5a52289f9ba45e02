//! One app, sent on its way again and again: from the switch to what is applied.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::GatedSource;
use sluice_tests::flux::Git;
use sluice_tests::{Applier, poll};

use super::{NAMESPACE, switch, watch};
use crate::bench::ordered::Ordered;
use crate::bench::seen::Moment;

/// How long Flux may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// What everything is called but the source that Flux polls.
const APP: &str = "app";

/// An app in Git behind a gate of its own.
pub(super) struct App {
    git: Git,
}

/// How long after the switch each step was seen.
pub(super) struct Steps(Vec<(Moment, Ordered)>);

impl App {
    /// Deploys it.
    pub(super) async fn deploy(client: &Client) -> Result<Self> {
        let git = Git::serve().await?;
        let yaml = format!(
            "{}---\n\
             apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
             metadata: {{name: app-upstream}}\n\
             spec: {{url: \"{}\", ref: {{branch: main}}, interval: 2s}}\n---\n\
             apiVersion: sluice.dev/v1alpha1\nkind: GatedSource\nmetadata: {{name: {APP}}}\n\
             spec:\n  sourceRef: {{kind: GitRepository, name: app-upstream}}\n  \
             gates: {{refs: [{{name: {APP}}}]}}\n---\n\
             apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
             metadata: {{name: {APP}}}\n\
             spec: {{sourceRef: {{kind: GitRepository, name: {APP}}}, interval: 1h, \
             prune: true, targetNamespace: {NAMESPACE}}}\n",
            switch::gate(APP),
            git.url(),
        );
        let app = Self { git };
        let commit = app.commit("at first")?;
        let seen = watch(client, &commit).await?;
        let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
        applier.text(&yaml).await?;
        seen.all(Moment::Applied, 1).await?;
        Ok(app)
    }

    /// Lets a commit wait at the closed gate, and then opens it, so often.
    pub(super) async fn steps(&self, client: &Client, rounds: usize) -> Result<Steps> {
        let moments = [
            Moment::Open,
            Moment::Admitted,
            Moment::Pinned,
            Moment::Fetched,
            Moment::Applied,
        ];
        let mut lengths = moments.map(|moment| (moment, Vec::with_capacity(rounds)));
        let mut answered = Vec::with_capacity(rounds);
        for round in 0..rounds {
            switch::throw(client, APP, "closed").await?;
            let commit = self.commit(&format!("{round}: {:?}", Instant::now()))?;
            pends(client, &commit).await?;
            let seen = watch(client, &commit).await?;
            let began = Instant::now();
            switch::ask(client, APP, "open").await?;
            answered.push(began.elapsed().as_secs_f64());
            seen.all(Moment::Applied, 1).await?;
            for (moment, lengths) in &mut lengths {
                lengths.push(seen.of(APP, *moment, began)?);
            }
        }
        let steps = lengths.into_iter().chain([(Moment::Answered, answered)]);
        let steps = steps.map(|(moment, lengths)| (moment, Ordered::new(lengths)));
        Ok(Steps(steps.collect()))
    }

    fn commit(&self, says: &str) -> Result<String> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": APP}, "data": {"says": says},
        });
        self.git.commit(&[("app.yaml", &map.to_string())])
    }
}

async fn pends(client: &Client, commit: &str) -> Result<()> {
    let sources: Api<GatedSource> = Api::namespaced(client.clone(), NAMESPACE);
    poll(PATIENCE, "the commit to be pending", async || {
        let status = sources.get(APP).await?.status.unwrap_or_default();
        let pending = status.pending.as_ref();
        let is_pending = pending.is_some_and(|it| it.revision.ends_with(commit));
        ensure!(is_pending, "{}", json!(status));
        Ok(())
    })
    .await
}

impl Steps {
    /// Each median, in a line.
    pub(super) fn medians(&self) -> String {
        let each = self
            .0
            .iter()
            .map(|(moment, lengths)| format!("{moment:?} {:.0} ms", lengths.at(0.5) * 1e3));
        each.collect::<Vec<_>>().join(", ")
    }

    /// How long after the switch this was seen.
    pub(super) fn until(&self, moment: Moment) -> Option<&Ordered> {
        let mut steps = self.0.iter();
        steps.find_map(|(of, lengths)| (*of == moment).then_some(lengths))
    }
}

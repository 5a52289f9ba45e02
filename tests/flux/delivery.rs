//! An app in Git behind a gate: a source that Flux polls, a GatedSource, and a Kustomization that
//! applies its child.

use anyhow::{Context, Result};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::{GatedSource, GatedSourceStatus};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::{Charts, Git, World};
use sluice_tests::status;

use crate::stage::{DEADLINE, Stage, app};

/// The source that Flux polls.
pub const UPSTREAM: &str = "upstream";
/// What everything else is called: the GatedSource, its child, the Kustomization, the ConfigMap.
pub const APP: &str = "app";
/// The gate.
pub const GATE: &str = "production";

/// A switch that is open, and one that is closed.
pub const OPEN: &str = "manual: {state: open}";
pub const CLOSED: &str = "manual: {state: closed, reason: freeze}";

impl Stage<'_> {
    /// The gate of that name is kept by a gatekeeper of that name with this spec, as flow YAML.
    pub async fn keep(&self, gate: &str, spec: &str) -> Result<()> {
        self.apply(&format!(
            "apiVersion: sluice.dev/v1alpha1\nkind: Gatekeeper\nmetadata: {{name: {gate}}}\n\
             spec: {{{spec}}}\n---\n\
             apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {{name: {gate}}}\n\
             spec: {{gatekeepers: [{{name: {gate}}}]}}\n"
        ))
        .await
    }

    /// Applies the GatedSource of that name: of the GitRepository [`UPSTREAM`] behind [`GATE`], unless
    /// `with` says otherwise.
    pub async fn gate_source(&self, name: &str, with: Value) -> Result<()> {
        let mut spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": UPSTREAM},
            "gates": {"refs": [{"name": GATE}]},
        });
        let with = with.as_object().context("no object")?;
        let fields = spec.as_object_mut().context("no object")?;
        fields.extend(with.clone());
        fields.retain(|_, value| !value.is_null());
        self.put("GatedSource", name, spec).await
    }

    /// The GatedSources here.
    pub fn gated(&self) -> Api<GatedSource> {
        Api::namespaced(self.client(), self.namespace())
    }

    /// Waits until a GatedSource says so.
    pub async fn source(
        &self,
        name: &str,
        what: &str,
        check: impl Fn(&GatedSourceStatus) -> bool,
    ) -> Result<GatedSourceStatus> {
        let what = format!("GatedSource {name}: {what}");
        let gated = status::until(&self.gated(), name, DEADLINE, &what, check).await?;
        gated.status.context("no status")
    }

    /// Has a HelmRelease run version 1.0.0 of the chart [`UPSTREAM`], behind an open gate.
    pub async fn releases(&self, charts: &Charts) -> Result<InProcess> {
        self.helm_chart(UPSTREAM, charts, "1.x").await?;
        self.keep(GATE, OPEN).await?;
        let chart = json!({"sourceRef": {"kind": "HelmChart", "name": UPSTREAM}});
        self.gate_source(APP, chart).await?;
        self.helm_release(APP, APP).await?;
        let controller = self.start().await?;
        self.serves(APP, "1.0.0").await?;
        self.released(APP, "1.0.0").await?;
        Ok(controller)
    }

    /// Waits until a revision is pending.
    pub async fn pends(&self, name: &str, revision: &str) -> Result<GatedSourceStatus> {
        let pends = |status: &GatedSourceStatus| {
            let pending = status.pending.as_ref();
            pending.is_some_and(|it| it.revision == revision)
                && says(status, "Blocked").is_some_and(|(blocked, _)| blocked == "True")
        };
        self.source(name, &format!("{revision} to be pending"), pends)
            .await
    }

    /// Waits until a revision is out and served, and nothing else is pending.
    pub async fn serves(&self, name: &str, revision: &str) -> Result<GatedSourceStatus> {
        let serves = |status: &GatedSourceStatus| {
            let admitted = status.admitted.as_ref();
            admitted.is_some_and(|it| it.revision == revision)
                && status.pending.is_none()
                && says(status, "Ready").is_some_and(|(ready, _)| ready == "True")
        };
        self.source(name, &format!("{revision} to be served"), serves)
            .await
    }

    /// Waits until a condition has this status and reason.
    pub async fn holds(&self, name: &str, type_: &str, is: &str, reason: &str) -> Result<String> {
        let what = format!("{type_} to be {is} because of {reason}");
        let holds = |status: &GatedSourceStatus| says(status, type_) == Some((is, reason));
        let status = self.source(name, &what, holds).await?;
        let mut conditions = status.conditions.into_iter();
        let found = conditions.find(|condition| condition.type_ == type_);
        Ok(found.context("it went away")?.message)
    }
}

/// The status and reason of a condition.
pub fn says<'s>(status: &'s GatedSourceStatus, type_: &str) -> Option<(&'s str, &'s str)> {
    let mut conditions = status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == type_)?;
    Some((found.status.as_str(), found.reason.as_str()))
}

/// All of it, in a namespace of its own.
pub struct Delivery<'w> {
    pub stage: Stage<'w>,
    pub git: Git,
    pub controller: InProcess,
}

impl Delivery<'static> {
    /// In the world that all tests here share, with the clock at `now` and the gate kept by `spec`.
    pub async fn begin(word: &str, now: &str, spec: &str) -> Result<Self> {
        Self::on(Stage::new(word, now).await?, spec).await
    }
}

impl<'w> Delivery<'w> {
    /// In a world of one's own.
    pub async fn within(world: &'w World, word: &str, now: &str, spec: &str) -> Result<Self> {
        Self::on(Stage::within(world, word, now).await?, spec).await
    }

    /// Everything but a commit.
    async fn on(stage: Stage<'w>, spec: &str) -> Result<Self> {
        let git = Git::serve().await?;
        stage.keep(GATE, spec).await?;
        stage.git_repository(UPSTREAM, &git).await?;
        stage.gate_source(APP, json!({})).await?;
        stage.kustomization(APP, "GitRepository", APP).await?;
        let controller = stage.start_with_egress().await?;
        Ok(Self {
            stage,
            git,
            controller,
        })
    }

    /// Pushes a commit in which the app says this, and has Flux look at the source. Returns the
    /// commit.
    pub async fn push(&self, word: &str) -> Result<String> {
        let commit = self.git.commit(&[("app.yaml", &app(APP, word))])?;
        self.stage.reconcile("GitRepository", UPSTREAM).await?;
        Ok(commit)
    }

    /// Pushes, and waits until it is pending.
    pub async fn push_behind_the_gate(&self, word: &str) -> Result<String> {
        let commit = self.push(word).await?;
        self.stage.pends(APP, &Git::revision(&commit)).await?;
        Ok(commit)
    }

    /// Waits until a commit is out and the app says so.
    pub async fn deployed(&self, commit: &str, word: &str) -> Result<()> {
        self.stage.serves(APP, &Git::revision(commit)).await?;
        self.stage.applied(APP, &Git::revision(commit)).await?;
        self.stage.deployed(APP, word).await
    }

    /// The app is lost, and comes back with this: drift is mended, at what is out.
    pub async fn heals(&self, word: &str) -> Result<()> {
        self.stage.lose(APP).await?;
        self.stage.reconcile("Kustomization", APP).await?;
        self.stage.deployed(APP, word).await
    }

    pub async fn open(&self) -> Result<()> {
        self.stage.keep(GATE, OPEN).await
    }

    pub async fn close(&self) -> Result<()> {
        self.stage.keep(GATE, CLOSED).await
    }

    /// Waits until the controller has looked at everything that has changed.
    pub async fn controller_rests(&self) -> Result<()> {
        self.stage.settle().await
    }
}

//! Many GatedSources behind one gate.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::GatedSource;
use sluice_tests::flux::{Flux, Git};
use sluice_tests::{Applier, Writes, poll};

use super::{NAMESPACE, switch, watch};
use crate::bench::ordered::Ordered;
use crate::bench::process::{Controller, Usage, sum};
use crate::bench::seen::Moment;

/// What the gate and the label are called.
const CROWD: &str = "crowd";
/// How many requests the bench itself has in flight.
const CONNECTIONS: usize = 8;
/// How many objects are applied as one text.
const AT_ONCE: usize = 50;
/// How long the controller may take until it is idle.
const PATIENCE: Duration = Duration::from_secs(120);

/// N GatedSources of one repository behind one gate.
pub(super) struct Crowd {
    git: Git,
    client: Client,
    n: usize,
}

/// Who works while they are released.
pub(super) struct Workers<'w> {
    pub(super) controller: &'w Controller,
    pub(super) flux: &'w Flux,
}

/// What the workers have done and cost so far.
struct Load {
    writes: u64,
    requests: u64,
    ours: Usage,
    source: Usage,
}

/// The release of all of them, by one gate that opens.
pub(super) struct Release {
    /// From the switch.
    pub(super) pinned: Ordered,
    /// From the switch.
    pub(super) fetched: Ordered,
    /// From the pinned child: how long each stood in source-controller's queue, and was fetched.
    pub(super) queued: Ordered,
    /// What our controller wrote.
    pub(super) writes: u64,
    /// What everybody asked of the API server.
    pub(super) requests: u64,
    /// What our controller used, in seconds of CPU, and MiB at its highest.
    pub(super) ours: (f64, u64),
    /// What source-controller used.
    pub(super) source: (f64, u64),
}

impl Crowd {
    /// Creates them with the gate open, and waits until each has a child that was fetched.
    pub(super) async fn create(client: &Client, n: usize) -> Result<Self> {
        let git = Git::serve().await?;
        let crowd = Self {
            git,
            client: client.clone(),
            n,
        };
        let commit = crowd.commit("at first")?;
        let seen = watch(client, &commit).await?;
        let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
        let upstream = format!(
            "{}---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
             metadata: {{name: {CROWD}-upstream}}\n\
             spec: {{url: \"{}\", ref: {{branch: main}}, interval: 5s}}\n",
            switch::gate(CROWD),
            crowd.git.url(),
        );
        applier.text(&upstream).await?;
        let names: Vec<String> = crowd.names().collect();
        futures::stream::iter(names.chunks(AT_ONCE))
            .map(async |names| applier.text(&sources(names)).await.map(drop))
            .buffer_unordered(CONNECTIONS)
            .try_collect::<()>()
            .await
            .context("cannot create the crowd")?;
        seen.all(Moment::Fetched, n).await?;
        crowd.ready().await?;
        Ok(crowd)
    }

    /// Lets a commit wait at the closed gate for all of them, and opens it.
    pub(super) async fn release(&self, spread: Duration, workers: &Workers<'_>) -> Result<Release> {
        switch::throw(&self.client, CROWD, "closed").await?;
        self.spread(spread).await?;
        let commit = self.commit(&format!("spread over {} s", spread.as_secs()))?;
        watch(&self.client, &commit)
            .await?
            .all(Moment::Pending, self.n)
            .await?;

        let seen = watch(&self.client, &commit).await?;
        let before = self.load(workers).await?;
        let began = Instant::now();
        switch::ask(&self.client, CROWD, "open").await?;
        seen.all(Moment::Fetched, self.n).await?;
        self.ready().await?;
        let after = self.load(workers).await?;
        Ok(Release {
            pinned: seen.since(began, Moment::Pinned),
            fetched: seen.since(began, Moment::Fetched),
            queued: seen.between(Moment::Pinned, Moment::Fetched),
            writes: after.writes - before.writes,
            requests: after.requests - before.requests,
            ours: (after.ours.cpu - before.ours.cpu, after.ours.highest),
            source: (after.source.cpu - before.source.cpu, after.source.highest),
        })
    }

    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.n).map(|place| format!("source-{place:06}"))
    }

    fn commit(&self, says: &str) -> Result<String> {
        self.git.commit(&[("says.txt", says)])
    }

    /// Writes `spec.spread` of all of them.
    async fn spread(&self, spread: Duration) -> Result<()> {
        let sources: Api<GatedSource> = Api::namespaced(self.client.clone(), NAMESPACE);
        let spread = (!spread.is_zero()).then(|| format!("{}s", spread.as_secs()));
        let patch = json!({"spec": {"spread": spread}});
        futures::stream::iter(self.names())
            .map(async |name| sources.merge(&name, &patch).await.map(drop))
            .buffer_unordered(CONNECTIONS)
            .try_collect::<()>()
            .await
            .context("cannot spread them")
    }

    /// Waits until all of them say that what is admitted is served.
    async fn ready(&self) -> Result<()> {
        let sources: Api<GatedSource> = Api::namespaced(self.client.clone(), NAMESPACE);
        let labeled = ListParams::default().labels(&format!("bench={CROWD}"));
        poll(PATIENCE, "all of them to be ready", async || {
            let all = sources.list(&labeled).await?;
            let ready = all.iter().filter(|source| is_ready(source)).count();
            ensure!(ready == self.n, "{ready} of {} are", self.n);
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    async fn load(&self, workers: &Workers<'_>) -> Result<Load> {
        let page = self
            .client
            .request_text(http::Request::get("/metrics").body(Vec::new())?);
        Ok(Load {
            writes: workers.controller.writes().await?,
            requests: sum(&page.await?, "apiserver_request_total"),
            ours: workers.controller.usage()?,
            source: Usage::of(workers.flux.source.pid().await?)?,
        })
    }
}

fn sources(names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        let document = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
            "metadata": {"name": name, "labels": {"bench": CROWD}},
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": format!("{CROWD}-upstream")},
                "gates": {"refs": [{"name": CROWD}]},
            },
        });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "---\n{document}");
    }
    text
}

fn is_ready(source: &GatedSource) -> bool {
    let status = source.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

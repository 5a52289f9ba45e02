//! etcd forgets what is older than its last compaction.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use futures::TryStreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use sluice_crds::{Setting, State};
use sluice_tests::proxy::{Fault, Proxy};
use sluice_tests::{ControlPlane, Options, Writes, alone, poll};

use super::knows;
use crate::stage::{DEADLINE, Stage, gate};

/// An API server that keeps no history of its own, on an etcd that keeps a second of it.
async fn forgetful() -> Result<ControlPlane> {
    let flags = ["--watch-cache=false", "--etcd-compaction-interval=1s"];
    let options = Options {
        api_server_flags: flags.map(str::to_owned).into(),
        ..Options::default()
    };
    alone(options).await
}

#[tokio::test]
async fn nothing_is_missed_although_etcd_has_forgotten_it() -> Result<()> {
    let plane = forgetful().await?;
    let stage = Stage::on(plane.cluster(), "compacted", "2026-11-20T12:00:00Z").await?;
    let proxy = Proxy::start(stage.client()).await?;
    let controller = stage.start_in_real_time(proxy.client()?).await?;
    let gates = stage.gates();
    let create = async |name: &str, default: Setting| {
        let gate = gate(name, default);
        gates.add(&gate).await
    };
    create("first", Setting::Open).await?;
    stage.says("first", State::Open, "Default").await?;
    let listed = gates.list(&ListParams::default()).await?;
    let before = listed.metadata.resource_version.context("no version")?;

    // It asks to go on from where it was, and that takes a while.
    proxy.order(Fault::Hold, Method::GET, "/gates?&watch=true", 1);
    proxy.cut();
    proxy.came().await?;
    gates.remove("first").await?;
    create("second", Setting::Open).await?;
    create("third", Setting::Closed).await?;
    poll(DEADLINE, "what was before to be forgotten", async || {
        let parameters = WatchParams::default();
        let mut watch = Box::pin(gates.watch(&parameters, &before).await?);
        let first = watch.try_next().await?.context("the watch ended")?;
        let forgotten = matches!(&first, WatchEvent::Error(status) if status.code == 410);
        ensure!(forgotten, "{first:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    proxy.let_go();
    stage.says("second", State::Open, "Default").await?;
    stage.says("third", State::Closed, "Default").await?;
    knows(&controller, &["second", "third"]).await
}

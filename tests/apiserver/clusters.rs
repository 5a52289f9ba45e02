//! Other clusters by kubeconfig, on two real API servers: Secrets are on the first, what is seen on the
//! second.

pub mod scene;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use sluice_clusters::{Change, Sight, Unknown};
use sluice_tests::line::Line;
use sluice_tests::poll;

use crate::stage::DEADLINE;
use scene::Scene;

/// What a role with `resourceNames` allows, and what the controller asks for, are the same.
#[tokio::test]
async fn the_metadata_of_a_secret_are_watched_with_a_right_to_its_name_alone() -> Result<()> {
    let scene = Scene::new("named").await?;
    let apps = scene.wanted();
    scene.want(&[&apps], 0);
    scene.is_unknown(&apps, "there is no Secret").await?;
    scene
        .put_kubeconfig(scene.server(), &scene.token().await?)
        .await?;
    scene.put("1.0.0").await?;
    scene.runs(&apps, "1.0.0").await?;

    // One of another name is not to be had.
    let mut other = scene.wanted();
    other.cluster = scene.cluster("other");
    scene.want(&[&apps, &other], 10);
    let words = "may not list the Secret";
    scene.is_unknown(&other, words).await?;
    // Nor are all of them, by the same client.
    let secrets: Api<Secret> = Api::namespaced(scene.controller(), scene.namespace());
    let all = secrets.list_metadata(&ListParams::default()).await;
    let refused = matches!(&all, Err(kube::Error::Api(status)) if status.is_forbidden());
    ensure!(refused, "all are listed: {all:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_is_absent_then_unsynced_then_ready_and_leaves_nothing_when_it_goes() -> Result<()>
{
    let scene = Scene::new("comes").await?;
    let apps = scene.wanted();
    ensure!(scene.look(&apps) == Sight::Unknown(Unknown::NotYet));
    scene.want(&[&apps], 0);
    scene.is_unknown(&apps, "there is no Secret").await?;

    // It is connected to, and cannot be read before its line lets anything through.
    let line = Line::open(scene.server()).await?;
    line.hold();
    scene
        .put_kubeconfig(line.server(), &scene.token().await?)
        .await?;
    scene.is_unknown(&apps, "it was not read yet").await?;
    line.release();
    scene.until(&apps, |sight| *sight == Sight::Absent).await?;
    scene.put("1.0.0").await?;
    scene.runs(&apps, "1.0.0").await?;
    scene.has_watches(1).await?;

    scene.delete_kubeconfig().await?;
    scene.is_unknown(&apps, "there is no Secret").await?;
    scene.has_watches(0).await?;
    let held: usize = scene.fleet().clusters().iter().map(|it| it.watches).sum();
    ensure!(held == 0, "{held} watches are held");
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_refused_and_a_server_that_moves_are_followed() -> Result<()> {
    let scene = Scene::new("moves").await?;
    let apps = scene.wanted();
    scene.put("1.0.0").await?;
    let line = Line::open(scene.server()).await?;
    scene
        .put_kubeconfig(line.server(), &scene.token().await?)
        .await?;
    scene.want(&[&apps], 0);
    scene.runs(&apps, "1.0.0").await?;

    // The account is gone, and with it the token; watches begin again, and are refused.
    scene.renew_account().await?;
    line.cut();
    scene
        .put_kubeconfig(line.server(), &scene.token().await?)
        .await?;
    scene.put("1.1.0").await?;
    scene.runs(&apps, "1.1.0").await?;

    // The same API server at another address: the old one leads nowhere.
    line.hold();
    line.cut();
    let moved = Line::open(scene.server()).await?;
    scene.put("1.2.0").await?;
    scene
        .put_kubeconfig(moved.server(), &scene.token().await?)
        .await?;
    scene.runs(&apps, "1.2.0").await?;
    ensure!(moved.connections() > 0, "nobody has come the new way");
    Ok(())
}

#[tokio::test]
async fn credentials_that_the_cluster_refuses_are_told() -> Result<()> {
    let scene = Scene::new("denied").await?;
    let apps = scene.wanted();
    scene.put_kubeconfig(scene.server(), "nonsense").await?;
    scene.want(&[&apps], 0);
    scene.is_unknown(&apps, "status 401").await?;
    scene.put("1.0.0").await?;
    scene
        .put_kubeconfig(scene.server(), &scene.token().await?)
        .await?;
    scene.runs(&apps, "1.0.0").await
}

#[tokio::test]
async fn where_all_namespaces_are_refused_one_is_enough() -> Result<()> {
    let scene = Scene::in_one_namespace("alone").await?;
    let apps = scene.wanted();
    scene.put("1.0.0").await?;
    scene
        .put_kubeconfig(scene.server(), &scene.token().await?)
        .await?;
    scene.want(&[&apps], 0);
    scene.runs(&apps, "1.0.0").await?;
    let mut beyond = scene.wanted();
    beyond.namespace = "default".to_owned();
    scene.want(&[&apps, &beyond], 10);
    let words = "in namespace default; grant get, list and watch to the user of the kubeconfig";
    scene.is_unknown(&beyond, words).await?;
    scene.put("1.1.0").await?;
    scene.runs(&apps, "1.1.0").await
}

#[tokio::test]
async fn a_cluster_that_says_nothing_is_unknown_until_it_is_heard_of_again() -> Result<()> {
    let silence = Duration::from_secs(5);
    let scene = Scene::silent_after("silent", silence).await?;
    let apps = scene.wanted();
    let line = Line::open(scene.server()).await?;
    scene.put("0").await?;
    scene
        .put_kubeconfig(line.server(), &scene.token().await?)
        .await?;
    scene.want(&[&apps], 0);
    scene.runs(&apps, "0").await?;
    // As long as something is heard, it is known: for longer than silence may last.
    let mut changes = scene.fleet().changes();
    let began = Instant::now();
    let mut last = 0;
    while began.elapsed() < silence + silence / 4 {
        last += 1;
        scene.put(&last.to_string()).await?;
        scene.runs(&apps, &last.to_string()).await?;
    }
    while let Ok(change) = changes.try_recv() {
        ensure!(matches!(change, Change::Object { .. }), "{change:?}");
    }

    line.hold();
    scene.put("silent").await?;
    scene
        .is_unknown(&apps, "nothing was heard of it for too long")
        .await?;
    let change = changes.recv().await?;
    ensure!(
        matches!(&change, Change::Objects { kind, .. } if *kind == apps.kind),
        "{change:?}"
    );
    let standings = scene.fleet().clusters();
    let standing = standings.first().context("there is no cluster")?;
    ensure!(standing.trouble.is_some(), "{standing:?}");

    line.release();
    scene.runs(&apps, "silent").await
}

#[tokio::test]
async fn a_watch_ends_after_its_last_use() -> Result<()> {
    let scene = Scene::new("unused").await?;
    let apps = scene.wanted();
    let mut more = scene.wanted();
    more.namespace = "default".to_owned();
    scene.put("1.0.0").await?;
    scene
        .put_kubeconfig(scene.server(), &scene.token().await?)
        .await?;
    scene.want(&[&apps, &more], 0);
    scene.runs(&apps, "1.0.0").await?;
    scene.has_watches(1).await?;
    // Another one still wants it.
    scene.want(&[&more], 10);
    scene.want(&[&more], 100);
    scene.until(&more, |sight| *sight == Sight::Absent).await?;
    scene.want(&[], 200);
    ensure!(
        scene.fleet().clusters().len() == 1,
        "it has ended too early"
    );
    scene.want(&[], 260);
    ensure!(scene.fleet().clusters().is_empty(), "it is still there");
    scene.has_watches(0).await?;
    poll(DEADLINE, "it to be forgotten", async || {
        ensure!(scene.look(&apps) == Sight::Unknown(Unknown::NotYet));
        Ok::<_, anyhow::Error>(())
    })
    .await
}

//! Status writes that are refused, and those whose answer is lost: a promotion begins after the status says
//! so, and it is done once.

use std::sync::Arc;

use anyhow::{Result, ensure};
use gate_controller::Settings;
use gate_controller::observe::clock::SystemClock;
use http::{Method, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::PipelineStatus;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::flux::Inbox;
use sluice_tests::proxy::{Fault, Proxy, refusal};

use super::shop::Shop;
use super::{put, says};
use crate::clusters::scene::Scene;

/// The status in which a promotion is decided and not done.
const BEGINS: (&str, &str) = ("/pipelines/web/status", r#""Attempting""#);

/// What becomes of that status.
#[derive(Clone, Copy)]
enum Write {
    /// It is refused. The next one is held until it is let go.
    Refused,
    /// It is carried out, and its answer is lost.
    Lost,
}

impl Write {
    fn order(self, line: &Proxy) {
        if let Write::Lost = self {
            line.order_for(Fault::BreakOff, Method::PATCH, BEGINS, 1);
            return;
        }
        let conflict = refusal(StatusCode::CONFLICT, "Conflict");
        line.order_for(conflict, Method::PATCH, BEGINS, 1);
        line.order_for(Fault::Hold, Method::PATCH, BEGINS, 1);
    }

    /// Waits until it has come. Nothing has begun before it was accepted.
    async fn came(self, line: &Proxy, done: impl Fn() -> usize) -> Result<()> {
        line.came().await?;
        if let Write::Refused = self {
            assert_eq!(done(), 0);
            line.let_go();
        }
        Ok(())
    }
}

fn settings(namespace: &str) -> Result<Settings> {
    let mut settings = controller::settings(namespace);
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    Ok(settings)
}

#[rstest]
#[case::refused(Write::Refused)]
#[case::lost(Write::Lost)]
#[tokio::test]
async fn a_notification_is_sent_once_after_its_status(#[case] write: Write) -> Result<()> {
    let scene = Scene::new("refused-writes").await?;
    scene.define_here().await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.1.0").await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let notification = json!({"notification": {"involvedObject": "Application"}});
    put(&scene, json!({"strategy": notification})).await?;
    let (line, inbox) = (Proxy::start(scene.own()).await?, Inbox::serve().await?);
    let sent = || {
        let events = inbox.events().into_iter();
        events.filter(|event| event["reason"] == "Promote").count()
    };
    let mut settings = settings(scene.namespace())?;
    settings.events_addr = inbox.url().parse().map_err(anyhow::Error::msg)?;
    write.order(&line);
    let _controller = InProcess::start(settings, line.client()?, Arc::new(SystemClock)).await?;
    write.came(&line, sent).await?;

    let is_promote = |event: &Value| event["reason"] == "Promote";
    inbox.receives("the promotion", is_promote).await?;
    scene.runs_at(&own, scene.namespace(), 2, "1.1.0").await?;
    let is_completed = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    says(&scene, "the run to be completed", is_completed).await?;
    assert_eq!(sent(), 1);
    Ok(())
}

#[rstest]
#[case::refused(Write::Refused)]
#[case::lost(Write::Lost)]
#[tokio::test]
async fn a_pull_request_is_made_once_after_its_status(#[case] write: Write) -> Result<()> {
    let scene = Scene::new("refused-writes").await?;
    let line = Proxy::start(scene.own()).await?;
    let settings = settings(scene.namespace())?;
    let shop = Shop::open_on(scene, None, json!({})).await?;
    let _controller = InProcess::start(settings, line.client()?, Arc::new(SystemClock)).await?;
    shop.begins().await?;
    let made = || line.count(&Method::POST, "/pullrequests");
    write.order(&line);
    shop.dev_runs("1.1.0").await?;
    write.came(&line, made).await?;

    let is_open = |prod: &EnvironmentStatus| prod.state == EnvironmentState::PullRequestOpen;
    shop.prod_says("the pull request to be open", is_open)
        .await?;
    shop.pulls_are(&["open"]).await?;
    ensure!(made() == 1, "{} were made", made());
    Ok(())
}

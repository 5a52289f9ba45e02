//! Promotions that a program approves by signed requests, where the policies of the chart judge.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use aws_lc_rs::hmac;
use gate_controller::observe::clock::{Clock, SystemClock};
use gate_controller::{Controller, start};
use http::{Request, StatusCode};
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Approval, PipelineStatus};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::rights::{grant_rules, rule};
use sluice_tests::{Applier, poll};
use tokio::process::Command;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::chart::{CONTROLLER, installed};
use crate::clusters::scene::Scene;
use crate::pipelines::{self, PROD, admitted};
use crate::stage::DEADLINE;
use crate::told;

const KEY: &str = "5f2c1d9ab0c3e4f78899aabbccddeeff";
const REVISION: &str = "feature/x@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

/// dev, on the second server, runs the revision, and prod waits for a person.
struct Desk {
    scene: Scene,
    /// Another one than the one that leads.
    controller: Controller,
    client: Client,
    _leader: InProcess,
    _shutdown: DropGuard,
}

/// A request, as it is signed and sent.
struct Call<'a> {
    method: &'a str,
    path: &'a str,
    signed_path: &'a str,
    /// Seconds before now.
    age: i64,
}

impl Desk {
    async fn open() -> Result<Self> {
        let scene = Scene::installed("webhook").await?;
        scene.define_here().await?;
        scene
            .runs_at(&scene.own(), scene.namespace(), 1, "0.9.0")
            .await?;
        scene
            .runs_at(&scene.remote(), scene.apps(), 1, REVISION)
            .await?;
        let token = scene.token().await?;
        scene.put_kubeconfig(scene.server(), &token).await?;
        let mut read = rule("", &["secrets"], &["get", "list", "watch"]);
        read["resourceNames"] = json!(["prod-kubeconfig"]);
        let apps = rule(&scene.group(), &["widgets"], &["get", "list", "watch"]);
        let rules = [read, apps];
        let namespace = scene.namespace();
        grant_rules(scene.own(), namespace, "apps", CONTROLLER, &rules).await?;
        put(&scene).await?;

        let acting = installed().await?.client_for(CONTROLLER).await?;
        let mut settings = controller::settings(namespace);
        settings.egress_allow = vec!["127.0.0.0/8".parse()?];
        let clock = Arc::new(SystemClock);
        let leader = InProcess::start(settings.clone(), acting.clone(), clock.clone()).await?;
        settings.standby = true;
        settings.check_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
        let shutdown = CancellationToken::new();
        let controller = start(settings, acting, clock, shutdown.clone()).await?;
        let address = controller.check.context("nobody is answered")?;
        let desk = Self {
            scene,
            controller,
            client: told::client(address)?,
            _leader: leader,
            _shutdown: shutdown.drop_guard(),
        };
        desk.says("prod to wait for a person", |status| {
            status.environments[PROD].waiting_approval.is_some()
        })
        .await?;
        Ok(desk)
    }

    /// What the chart grants by `check.approvals`.
    async fn grant(&self) -> Result<()> {
        let mut secrets = rule("", &["secrets"], &["get"]);
        secrets["resourceNames"] = json!(["approvals"]);
        let mut approve = rule("sluice.dev", &["environments"], &["approve"]);
        approve["resourceNames"] = json!(["web:prod"]);
        let create = rule("sluice.dev", &["approvals"], &["create"]);
        let (namespace, rules) = (self.scene.namespace(), [secrets, create, approve]);
        grant_rules(self.scene.own(), namespace, "approvals", CONTROLLER, &rules).await
    }

    async fn says(
        &self,
        what: &str,
        check: impl Fn(&PipelineStatus) -> bool,
    ) -> Result<PipelineStatus> {
        let is = |status: &PipelineStatus| status.environments.contains_key(PROD) && check(status);
        pipelines::says(&self.scene, what, is).await
    }

    fn path(&self) -> String {
        let revision = REVISION.replace('/', "%2F");
        format!("/approval/{}/web/prod/{revision}", self.scene.namespace())
    }

    async fn send(&self, call: Call<'_>) -> Result<(StatusCode, Value)> {
        let time = (SystemClock.now().as_second() - call.age).to_string();
        let text = format!("{time}\nPOST\n{}\n", call.signed_path);
        let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
        let code = hmac::sign(&key, text.as_bytes());
        let digits: String = code
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header("X-Signature-Timestamp", time)
            .header("X-Signature", format!("sha256={digits}"))
            .header("X-Real-IP", "198.51.100.7")
            .body(Body::empty())?;
        let (parts, body) = self.client.send(request).await?.into_parts();
        let body = body.collect_bytes().await?;
        Ok((parts.status, serde_json::from_slice(&body)?))
    }

    /// Signed well for this path, now.
    async fn post(&self, path: &str) -> Result<(StatusCode, Value)> {
        let call = Call {
            method: "POST",
            path,
            signed_path: path,
            age: 0,
        };
        self.send(call).await
    }

    /// Runs the example of the guide: its exit code, and what it prints.
    async fn run_example(&self) -> Result<(Option<i32>, Value)> {
        let folder = tempfile::tempdir()?;
        let key = folder.path().join("key");
        std::fs::write(&key, format!("{KEY}\n"))?;
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let address = self.controller.check.context("nobody is answered")?;
        let run = Command::new("sh")
            .arg(tests.join("../examples/approve-by-webhook.sh"))
            .args([self.scene.namespace(), "web", "prod", REVISION])
            .env("SLUICE", format!("http://{address}"))
            .env("KEY_FILE", key)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = run.await?;
        let said = String::from_utf8_lossy(&output.stderr);
        let body = serde_json::from_slice(&output.stdout);
        let body = body.with_context(|| format!("the example needs curl and openssl: {said}"))?;
        Ok((output.status.code(), body))
    }

    async fn approvals(&self) -> Result<Vec<Approval>> {
        let api: Api<Approval> = Api::namespaced(self.scene.own(), self.scene.namespace());
        Ok(api.list(&ListParams::default()).await?.items)
    }
}

/// The Secret with the key, and the pipeline.
async fn put(scene: &Scene) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "approvals"},
        "stringData": {"hmac-key": KEY},
    });
    let applier = Applier::new(scene.own()).in_namespace(scene.namespace());
    applier.text(&secret.to_string()).await?;
    let strategy = json!({"admission": {}, "secretRef": {"name": "approvals"}});
    pipelines::put(scene, json!({"manual": true, "strategy": strategy})).await
}

#[tokio::test]
async fn a_signed_request_approves_the_promotion_that_waits_once() -> Result<()> {
    let desk = Desk::open().await?;
    // Without rights it is closed, and says no more than to a stranger.
    let (code, refused) = desk.run_example().await?;
    assert_ne!(code, Some(0));
    let words = refused["error"].as_str().unwrap_or_default();
    assert!(
        words.starts_with("the signature is not that of"),
        "{refused}"
    );

    desk.grant().await?;
    let approved = poll(DEADLINE, "the example to approve", async || {
        let (code, answer) = desk.run_example().await?;
        ensure!(code == Some(0), "{answer}");
        Ok::<_, anyhow::Error>(answer)
    })
    .await?;
    let status = desk
        .says("the revision to be admitted", |status| {
            admitted(status) == [REVISION]
        })
        .await?;
    let record = status.environments[PROD].promotion.as_ref();
    let record = record.context("no record")?;
    assert_eq!(approved["run"], record.run);
    let approvals = desk.approvals().await?;
    assert_eq!(approvals.len(), 1, "{approvals:?}");
    assert_eq!(approvals[0].spec.by, CONTROLLER);
    let of = approvals[0]
        .spec
        .pipeline_ref
        .as_ref()
        .context("of what?")?;
    assert_eq!(of.key.as_ref(), Some(&record.key));

    let (status, replayed) = desk.post(&desk.path()).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{replayed}");
    assert_eq!(desk.approvals().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_is_not_signed_for_this_promotion_now_approves_nothing() -> Result<()> {
    let desk = Desk::open().await?;
    desk.grant().await?;
    let (path, namespace) = (desk.path(), desk.scene.namespace());
    let other = format!("/approval/{namespace}/web/prod/6.1.6");
    poll(DEADLINE, "the rights to be there", async || {
        let (status, answer) = desk.post(&other).await?;
        ensure!(status == StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        let waits = format!("prod waits for the approval of {REVISION}, and not of 6.1.6");
        assert_eq!(answer["error"], waits);
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let dev = format!("/approval/{namespace}/web/dev/6.1.6");
    let raw = format!("/approval/{namespace}/web/prod/{REVISION}");
    for (method, path, signed_path, age, expected) in [
        ("POST", &path, &other, 0, StatusCode::UNAUTHORIZED),
        ("POST", &dev, &dev, 0, StatusCode::UNAUTHORIZED),
        ("POST", &path, &path, 301, StatusCode::UNAUTHORIZED),
        ("GET", &path, &path, 0, StatusCode::METHOD_NOT_ALLOWED),
        ("POST", &raw, &raw, 0, StatusCode::NOT_FOUND),
    ] {
        let call = Call {
            method,
            path,
            signed_path,
            age,
        };
        // Until so many may come from here again.
        let (status, answer) = poll(DEADLINE, "an answer", async || {
            let call = Call { ..call };
            let (status, answer) = desk.send(call).await?;
            ensure!(status != StatusCode::TOO_MANY_REQUESTS, "{answer}");
            Ok::<_, anyhow::Error>((status, answer))
        })
        .await?;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
    assert!(desk.approvals().await?.is_empty());
    let status = desk.says("a status", |_| true).await?;
    assert_eq!(
        status.environments[PROD].state,
        EnvironmentState::Unapproved
    );
    Ok(())
}

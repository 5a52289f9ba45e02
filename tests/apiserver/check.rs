//! Those who ask over HTTP: service accounts with tokens and rights of the real API server.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gate_controller::{Controller, Settings, start};
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{Request, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::Decision;
use sluice_crds::audit::{self, Record};
use sluice_tests::{Writes, poll, rights};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::stage::{DEADLINE, OFFICE_HOURS, Stage, at};
use crate::told;

/// A Friday at noon: office hours.
const NOON: &str = "2026-11-20T12:00:00Z";
/// That evening.
const EVENING: &str = "2026-11-20T17:00:00Z";

/// A controller that answers, and the stage that it is on.
pub struct Desk {
    pub stage: Stage,
    client: Client,
    pub controller: Controller,
    _shutdown: DropGuard,
}

pub struct Answer {
    pub status: StatusCode,
    again: bool,
    pub body: Value,
}

impl Answer {
    fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }
}

impl Desk {
    /// On a stage of its own, with flags of one's choice.
    pub async fn open(word: &str, change: impl FnOnce(&mut Settings)) -> Result<Self> {
        let stage = Stage::new(word, NOON).await?;
        stage.apply(OFFICE_HOURS).await?;
        let client = stage.client();
        Self::on(stage, client, change).await
    }

    /// On this stage, for a controller that acts as `acting`.
    pub async fn on(
        stage: Stage,
        acting: Client,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self> {
        let mut settings = stage.settings();
        settings.check_addr = "127.0.0.1:0".parse().map_err(anyhow::Error::msg)?;
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let clock: Arc<_> = stage.clock();
        let controller = start(settings, acting, clock, shutdown.clone()).await?;
        let address = controller.check.context("nobody is answered")?;
        Ok(Self {
            stage,
            client: told::client(address)?,
            controller,
            _shutdown: shutdown.drop_guard(),
        })
    }

    /// A new service account. Its user is `system:serviceaccount:NAMESPACE:NAME`.
    async fn account(&self, name: &str) -> Result<String> {
        let namespace = self.stage.namespace();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.stage.client(), namespace);
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        accounts.add(&account).await?;
        Ok(format!("system:serviceaccount:{namespace}:{name}"))
    }

    /// A token of it, for these audiences; for the API server where there are none.
    pub async fn token(&self, name: &str, audiences: &[&str]) -> Result<String> {
        let namespace = self.stage.namespace();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.stage.client(), namespace);
        let audiences: Vec<_> = audiences.iter().copied().map(str::to_owned).collect();
        let wanted = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: (!audiences.is_empty()).then_some(audiences),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let post = PostParams::default();
        let issued = accounts.create_token_request(name, &post, &wanted).await?;
        issued
            .status
            .context("no status")?
            .token
            .context("no token")
    }

    /// An account that may check the gate production.
    pub async fn deployer(&self) -> Result<()> {
        let user = self.account("deployer").await?;
        let mut right = rights::rule("sluice.dev", &["gates"], &["check"]);
        right["resourceNames"] = json!(["production"]);
        self.stage.grant_rules("check", &user, &[right]).await?;
        self.granted(&user).await
    }

    /// Waits until the API server grants what it has been told to: a refusal would be kept.
    async fn granted(&self, user: &str) -> Result<()> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.stage.client());
        let review = serde_json::from_value(json!({"spec": {
            "user": user,
            "resourceAttributes": {
                "group": "sluice.dev",
                "resource": "gates",
                "verb": "check",
                "namespace": self.stage.namespace(),
                "name": "production",
            },
        }}))?;
        poll(DEADLINE, "the right to be there", async || {
            let review = reviews.add(&review).await?;
            let allowed = review.status.is_some_and(|status| status.allowed);
            ensure!(allowed, "not granted yet");
            Ok(())
        })
        .await
    }

    pub async fn post(&self, path: &str, credentials: &str, body: &Value) -> Result<Answer> {
        let request = Request::post(path)
            .header(AUTHORIZATION, credentials)
            .body(Body::from(body.to_string().into_bytes()))?;
        let (parts, body) = self.client.send(request).await?.into_parts();
        let body = body.collect_bytes().await?;
        Ok(Answer {
            status: parts.status,
            again: parts.headers.contains_key(RETRY_AFTER),
            body: serde_json::from_slice(&body)?,
        })
    }

    /// Whether production is open.
    async fn check(&self, token: &str) -> Result<Answer> {
        let asked = json!({
            "gates": {"refs": [{"name": "production"}]},
            "namespace": self.stage.namespace(),
        });
        self.post("/v1/check", &format!("Bearer {token}"), &asked)
            .await
    }

    /// The same as soon as there is a decision: rights take a moment, and so do caches.
    pub async fn decided(&self, token: &str) -> Result<Decision> {
        poll(DEADLINE, "a decision", async || {
            let answer = self.check(token).await?;
            ensure!(answer.status == StatusCode::OK, "{}", answer.body);
            Ok::<_, anyhow::Error>(serde_json::from_value(answer.body)?)
        })
        .await
    }
}

#[tokio::test]
async fn anyone_who_has_the_right_gets_the_decision_of_the_instant() -> Result<()> {
    let desk = Desk::open("asked", |_| {}).await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    let gate = format!("{}/production", desk.stage.namespace());

    let open = desk.decided(&token).await?;
    assert!(open.allowed, "{open:?}");
    assert_eq!(open.decided_by, [gate.as_str()]);
    assert_eq!(open.checked[0].reason, "InsideWindow");
    assert_eq!(open.next.map(|next| next.0), Some(at(EVENING)));

    // No status has been written in between, and none is waited for.
    desk.stage.set(EVENING);
    let closed: Decision = serde_json::from_value(desk.check(&token).await?.body)?;
    assert!(!closed.allowed, "{closed:?}");
    assert_eq!(closed.at.0, at(EVENING));
    assert_eq!(closed.decided_by, [gate]);
    assert_eq!(closed.checked[0].reason, "OutsideWindow");
    Ok(())
}

#[tokio::test]
async fn strangers_and_those_without_the_right_get_no_decision() -> Result<()> {
    let desk = Desk::open("strangers", |_| {}).await?;
    let user = desk.account("passer-by").await?;
    let token = desk.token("passer-by", &[]).await?;
    let refused = poll(DEADLINE, "the caches to sync", async || {
        let answer = desk.check(&token).await?;
        let unready = answer.status == StatusCode::SERVICE_UNAVAILABLE;
        ensure!(!unready && !answer.again, "{}", answer.body);
        Ok::<_, anyhow::Error>(answer)
    })
    .await?;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let expected = format!(
        "\"{user}\" may not check the gate \"production\" in the namespace \"{}\": that needs the \
         verb check on gates.sluice.dev",
        desk.stage.namespace()
    );
    assert_eq!(refused.error(), expected);

    let mut forged = token.clone();
    forged.truncate(token.len() - 8);
    for token in ["nonsense", &forged] {
        let answer = desk.check(token).await?;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
    }
    Ok(())
}

#[tokio::test]
async fn a_token_for_the_audience_is_worth_nothing_elsewhere_nor_another_here() -> Result<()> {
    let audience = |settings: &mut Settings| settings.check_audience = vec!["sluice".to_owned()];
    let desk = Desk::open("audience", audience).await?;
    desk.deployer().await?;
    let ours = desk.token("deployer", &["sluice"]).await?;
    assert!(desk.decided(&ours).await?.allowed);
    let theirs = desk.token("deployer", &[]).await?;
    let refused = desk.check(&theirs).await?;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.body);

    // Without the flag it is the other way round.
    let desk = Desk::open("no-audience", |_| {}).await?;
    desk.deployer().await?;
    let theirs = desk.token("deployer", &[]).await?;
    assert!(desk.decided(&theirs).await?.allowed);
    let ours = desk.token("deployer", &["sluice"]).await?;
    let refused = desk.check(&ours).await?;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{}", refused.body);
    Ok(())
}

/// The Events about decisions on a gate, in the order in which they were sent.
async fn events(desk: &Desk, outcome: &str) -> Result<Vec<Event>> {
    let events: Api<Event> = Api::namespaced(desk.stage.client(), desk.stage.namespace());
    let selected = ListParams::default().labels(&format!("sluice.dev/decision={outcome}"));
    let mut events = events.list(&selected).await?.items;
    events.sort_by_key(|event| event.event_time.clone());
    Ok(events)
}

#[tokio::test]
async fn what_waits_is_found_by_people_and_machines() -> Result<()> {
    let desk = Desk::open("waits", |_| {}).await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    desk.decided(&token).await?;
    desk.stage.set(EVENING);
    let namespace = desk.stage.namespace();
    let asked = json!({
        "consumer": {"kind": "Kustomization", "name": "shop"},
        "gates": {"refs": [{"name": "production"}]},
        "namespace": namespace,
        "action": "sync",
    });
    let credentials = format!("Bearer {token}");
    for _ in 0..3 {
        let answer = desk.post("/v1/check", &credentials, &asked).await?;
        assert_eq!(answer.body["allowed"], false, "{}", answer.body);
    }
    let told = poll(DEADLINE, "the event", async || {
        let mut events = events(&desk, "Blocked").await?;
        ensure!(events.len() == 1, "{events:?}");
        Ok(events.remove(0))
    })
    .await?;
    assert_eq!(told.reason.as_deref(), Some("Blocked"));
    let regarding = told.regarding.unwrap();
    assert_eq!(regarding.kind.as_deref(), Some("Gate"));
    assert_eq!(regarding.name.as_deref(), Some("production"));
    let gate = desk.stage.gates().get("production").await?;
    assert_eq!(regarding.uid, gate.metadata.uid);
    assert_eq!(told.related.unwrap().name.as_deref(), Some("shop"));
    let asker = format!("system:serviceaccount:{namespace}:deployer");
    let expected = [
        ("asked", format!("{namespace}/production")),
        ("asked-by", asker),
        ("decided-by", format!("{namespace}/production")),
        ("next", "2026-11-23T09:00:00Z".to_owned()),
        ("since", EVENING.to_owned()),
        ("subject-action", "sync".to_owned()),
        ("subject-kind", "Kustomization".to_owned()),
        ("subject-name", "shop".to_owned()),
        ("subject-namespace", namespace.to_owned()),
    ];
    let expected = expected.map(|(key, value)| (format!("sluice.dev/{key}"), value));
    assert_eq!(told.metadata.annotations, Some(expected.into()));

    let metrics = desk.controller.metrics.context("no metrics")?;
    let blocked = |value| {
        format!(
            "sluice_blocked{{kind=\"Kustomization\",namespace=\"{namespace}\",name=\"shop\"}} {value}.0"
        )
    };
    let (_, page) = told::get(metrics, "/metrics").await?;
    assert!(page.contains(&blocked(1)), "{page}");
    let held = "sluice_decisions_total{kind=\"Kustomization\",action=\"sync\",outcome=\"held\"} 3";
    assert!(page.contains(held), "{page}");

    desk.stage.set("2026-11-23T09:00:00Z");
    let answer = desk.post("/v1/check", &credentials, &asked).await?;
    assert_eq!(answer.body["allowed"], true, "{}", answer.body);
    let (_, page) = told::get(metrics, "/metrics").await?;
    assert!(page.contains(&blocked(0)), "{page}");
    poll(DEADLINE, "the other event", async || {
        let admitted = events(&desk, "Admitted").await?;
        let related = admitted.iter().filter(|event| event.related.is_some());
        ensure!(related.count() == 1, "{admitted:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn answers_are_recorded_with_who_asked() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("audit.log");
    let kept = path.to_str().context("no text")?.parse();
    let kept = kept.map_err(anyhow::Error::msg)?;
    let desk = Desk::open("recorded", |settings| {
        settings.standby = true;
        settings.audit_log = Some(kept);
        settings.audit_required = true;
    })
    .await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    let open = desk.decided(&token).await?;
    // Written before it was given.
    let text = fs::read_to_string(&path)?;
    let line: Value = serde_json::from_str(text.trim_end())?;
    let record: Record = serde_json::from_value(line.clone())?;
    assert_eq!(serde_json::to_value(&record)?, line);
    let audit::Event::Decision(decided) = record.event else {
        bail!("{text}");
    };
    let user = format!("system:serviceaccount:{}:deployer", desk.stage.namespace());
    assert_eq!(decided.asked_by, Some(user));
    assert_eq!(decided.decision, open);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_recorded_is_closed_where_it_has_to_be() -> Result<()> {
    let full = "/dev/full".parse().map_err(anyhow::Error::msg)?;
    let desk = Desk::open("unrecorded", |settings| {
        settings.standby = true;
        settings.audit_log = Some(full);
        settings.audit_required = true;
    })
    .await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    let closed = desk.decided(&token).await?;
    assert!(!closed.allowed, "{closed:?}");
    assert!(closed.message.contains("cannot be recorded"), "{closed:?}");
    let webhook = json!({
        "name": "podinfo",
        "namespace": desk.stage.namespace(),
        "phase": "Progressing",
        "metadata": {"gate": "production"},
    });
    let credentials = format!("Bearer {token}");
    let waits = desk.post("/gate/check", &credentials, &webhook).await?;
    assert_eq!(waits.status, StatusCode::FORBIDDEN, "{}", waits.body);
    assert_eq!(waits.body["reason"], "AuditUnavailable");
    let health = desk.controller.health.context("no health")?;
    let (code, why) = told::get(health, "/readyz").await?;
    assert_eq!(code, 503, "{why}");
    assert!(why.contains("No space left"), "{why}");
    Ok(())
}

#[tokio::test]
async fn a_consumer_for_whom_nothing_decides_is_told_no() -> Result<()> {
    let desk = Desk::open("consumer", |_| {}).await?;
    desk.deployer().await?;
    let user = desk.account("controller").await?;
    let right = rights::rule("sluice.dev", &["gates"], &["check"]);
    desk.stage.grant_rules("check-all", &user, &[right]).await?;
    desk.granted(&user).await?;
    let asked = json!({
        "consumer": {"kind": "Kustomization", "name": "shop"},
        "namespace": desk.stage.namespace(),
    });
    let token = desk.token("controller", &[]).await?;
    let credentials = format!("Bearer {token}");
    let answer = poll(DEADLINE, "a decision", async || {
        let answer = desk.post("/v1/check", &credentials, &asked).await?;
        ensure!(answer.status == StatusCode::OK, "{}", answer.body);
        Ok::<_, anyhow::Error>(answer)
    })
    .await?;
    assert_eq!(answer.body["allowed"], false);
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("no gate is named"), "{message}");
    // A right to one gate is not enough.
    let token = desk.token("deployer", &[]).await?;
    let refused = desk
        .post("/v1/check", &format!("Bearer {token}"), &asked)
        .await?;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    Ok(())
}

#[tokio::test]
async fn flagger_waits_while_the_gate_is_closed() -> Result<()> {
    let desk = Desk::open("flagger", |_| {}).await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    desk.decided(&token).await?;
    // As Flagger 1.44 sends it, with the token in the webhook's URL.
    let webhook = json!({
        "name": "podinfo",
        "namespace": desk.stage.namespace(),
        "phase": "Progressing",
        "checksum": "85d557f47b",
        "metadata": {"gate": "production"},
    });
    let credentials = format!("Basic {}", STANDARD.encode(format!("token:{token}")));
    let open = desk.post("/gate/check", &credentials, &webhook).await?;
    assert_eq!(open.status, StatusCode::OK, "{}", open.body);
    assert_eq!(open.body["reason"], "InsideWindow");
    desk.stage.set(EVENING);
    let closed = desk.post("/gate/check", &credentials, &webhook).await?;
    assert_eq!(closed.status, StatusCode::FORBIDDEN, "{}", closed.body);
    assert_eq!(closed.body["reason"], "OutsideWindow");
    Ok(())
}

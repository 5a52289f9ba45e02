//! Hooks that are called with a token.

use anyhow::{Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::controller::Process;
use sluice_tests::{DEADLINE, poll};

use super::super::news::events;
use super::super::play::{Play, is, of_pair};
use super::Hooks;

const TOKEN: &str = "t0ken-that-nobody-may-read";

/// A Secret with these keys, which may be sent to this host.
fn secret(name: &str, host: &str, keys: &Value) -> String {
    let annotations = json!({"sluice.dev/allowed-hook-hosts": host});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": keys,
        "metadata": {"name": name, "annotations": annotations},
    });
    secret.to_string()
}

/// Nothing is called without its token: what is missing is told, and tried again. It is sent to no host that its Secret
/// does not name, and to no server that does not prove who it is; and nobody reads it anywhere. A hook that needs no token
/// has a Secret with the authority alone.
#[tokio::test]
async fn a_token_is_sent_to_its_host_alone_and_shown_nowhere() -> Result<()> {
    let play = Play::new("token").await?;
    play.pair(2).await?;
    play.gate("open").await?;
    let (hooks, authority) = Hooks::over_tls(&[200]).await?;
    let (kubeconfig, namespace) = (play.stage.cluster().kubeconfig(), play.stage.namespace());
    let flags = ["--egress-allow=127.0.0.0/8", "--log-level=trace"];
    let controller = Process::start(kubeconfig, namespace, "one", &flags).await?;
    let hook = |type_: &str, secret: &str| json!({"type": type_, "name": type_, "url": hooks.url, "secretRef": {"name": secret}});
    let both = [
        hook("initialize-rollout", "token-of-up"),
        hook("finalize-rollout", "authority"),
    ];
    let open = secret("authority", "127.0.0.1", &json!({"ca.crt": authority}));
    play.stage.apply(&open).await?;
    play.rollout(of_pair(&json!({ "rolloutWebhooks": both })))
        .await?;
    let says = async |why: &str| {
        let says = |status: &RolloutStatus| {
            let hook = status.hooks.first();
            let told = hook.and_then(|it| it.error.as_deref());
            told.is_some_and(|told| told.contains(why))
        };
        play.until(why, says).await
    };
    says(&format!("there is no Secret {namespace}/token-of-up")).await?;
    let token = json!({"token": TOKEN});
    let up = |host: &str, keys: &Value| secret("token-of-up", host, keys);
    play.stage.apply(&up("hooks.example", &token)).await?;
    says("may not be sent to 127.0.0.1").await?;
    play.stage.apply(&up("127.0.0.1", &token)).await?;
    says("its certificate is not trusted").await?;
    assert_eq!(hooks.calls(), []);
    let known = json!({"token": TOKEN, "ca.crt": authority});
    play.stage.apply(&up("127.0.0.1", &known)).await?;
    play.until("it to succeed", is(RollingState::RolloutSucceed))
        .await?;
    assert_eq!(hooks.tokens(), [format!("Bearer {TOKEN}"), String::new()]);

    let told = poll(DEADLINE, "the events", async || {
        let told = json!(events(&play).await?).to_string();
        ensure!(told.contains("RolloutBegins"), "{told}");
        Ok::<_, anyhow::Error>(told)
    })
    .await?;
    let object = json!(play.rollouts().get("web").await?).to_string();
    let log = json!(controller.log()?).to_string();
    ensure!(log.contains("RolloutBegins"), "{log}");
    for text in [told, object, log] {
        ensure!(!text.contains(TOKEN), "{text}");
        ensure!(!text.contains(&BASE64_STANDARD.encode(TOKEN)), "{text}");
    }
    Ok(())
}

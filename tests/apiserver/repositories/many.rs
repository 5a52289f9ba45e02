//! Many strategies on one repository: one list does for all of them, and who stands by asks for none.

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use gate_controller::cluster::key::{KeyRef, ObjectKey};
use gate_controller::observe::cache::Progress;
use gate_controller::observe::clock::Clock;
use http::Method;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use sluice_crds::PromotionStrategy;
use sluice_tests::gitea::{OWNER, gitea};
use sluice_tests::proxy::Proxy;
use sluice_tests::{DEADLINE, Writes, poll};

use crate::stage::Stage;

const NAME: &str = "many";
const MANY: usize = 500;

/// A strategy with a branch of its own.
fn strategy(number: usize) -> Result<PromotionStrategy> {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": format!("shop-{number}")},
        "spec": {
            "repoRef": {"name": NAME}, "environments": [{"branch": format!("env/{number}")}],
        },
    });
    Ok(serde_json::from_value(object)?)
}

fn pass(stage: &Stage, time: SignedDuration) {
    let clock = stage.clock();
    clock.set(clock.now() + time);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_list_does_for_five_hundred_strategies_and_none_for_who_stands_by() -> Result<()> {
    let gitea = gitea().await?;
    gitea.repository(NAME).await?;
    let bot = gitea.bot(NAME).await?;
    let stage = Stage::new(NAME, "2026-11-20T12:00:00Z").await?;
    let line = Proxy::start(stage.client()).await?;
    let line = line.beside_over_tls(gitea.nobody()?).await?;
    let lists = || line.count(&Method::POST, "git-upload-pack");
    let mut secret = bot.secret_for_pipelines("git-token");
    secret["stringData"]["ca.crt"] = line.authority().into();
    let access = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"name": NAME},
        "spec": {
            "provider": "gitea", "url": format!("{}/{OWNER}/{NAME}", line.url()),
            "secretRef": {"name": "git-token"}, "interval": "10s",
        },
    });
    stage.apply(&secret.to_string()).await?;
    stage.apply(&access.to_string()).await?;
    let strategies: Api<PromotionStrategy> = Api::namespaced(stage.client(), stage.namespace());
    let made = stream::iter(0..MANY).map(async |number| {
        strategies.add(&strategy(number)?).await?;
        anyhow::Ok(())
    });
    made.buffer_unordered(16).try_collect::<()>().await?;

    // Somebody else leads.
    let leases: Api<Lease> = Api::namespaced(stage.client(), stage.namespace());
    let held = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "gate-controller"},
        "spec": {
            "holderIdentity": "another", "leaseDurationSeconds": 3600,
            "renewTime": "2026-11-20T12:00:00.000000Z",
        },
    });
    leases.add(&serde_json::from_value(held)?).await?;
    let mut settings = stage.settings();
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    settings.enable_leader_election = true;
    settings.leader_election_retry_period = std::time::Duration::from_millis(200);
    let controller = stage.start_with(settings).await?;
    poll(DEADLINE, "the strategies to be known", async || {
        let progress = controller.world().promotion_strategies.progress();
        ensure!(progress == Progress::Synced, "{progress:?}");
        anyhow::Ok(())
    })
    .await?;
    pass(&stage, SignedDuration::from_hours(1));
    controller.rests().await?;
    assert_eq!(lists(), 0);

    leases.remove("gate-controller").await?;
    poll(DEADLINE, "all strategies to be told", async || {
        pass(&stage, SignedDuration::from_millis(100));
        let all = strategies.list(&ListParams::default()).await?;
        let is_told = |it: &&PromotionStrategy| {
            let status = it.status.as_ref();
            status.is_some_and(|it| it.environments.iter().all(|it| !it.waits.is_empty()))
        };
        let told = all.iter().filter(is_told).count();
        ensure!(told == MANY, "{told} are");
        anyhow::Ok(())
    })
    .await?;
    // Those that came while it was listed needed another one.
    let first = lists();
    ensure!((1..10).contains(&first), "{first} lists");

    let key = KeyRef {
        namespace: stage.namespace(),
        name: NAME,
    };
    let access = ObjectKey::from(key);
    for round in 1..=3 {
        let before = controller.repositories().listed_at(&access);
        pass(&stage, SignedDuration::from_secs(10));
        poll(DEADLINE, "another list", async || {
            let now = controller.repositories().listed_at(&access);
            ensure!(now > before, "{now:?}");
            anyhow::Ok(())
        })
        .await?;
        // One may have been under way.
        let more = lists() - first;
        ensure!(
            (round..=round + 1).contains(&more),
            "{more} lists in {round} rounds"
        );
    }
    controller.stop().await;
    Ok(())
}

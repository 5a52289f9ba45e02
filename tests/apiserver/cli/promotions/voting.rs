//! `approve` and `reject`: what people say of the commit that gates hold back for an environment.

use anyhow::{Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::Approval;
use sluice_crds::approval::Vote;

use super::super::says;
use super::{Acting, NOW, seen, shop};

/// A gate that people open.
const PEOPLE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: people}
spec: {approval: {}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: people}
spec: {gatekeepers: [{name: people}]}
";

/// What gates have said of what is proposed for an environment.
fn held(namespace: &str, revision: &str) -> Value {
    json!({
        "allowed": false, "at": NOW, "require": "all", "checked": [], "message": "nobody has approved it",
        "decidedBy": [format!("{namespace}/people")],
        "subject": {
            "kind": "PromotionStrategy", "namespace": namespace, "name": "shop", "environment": "env/prod",
            "action": "promote", "revision": revision,
        },
    })
}

#[tokio::test]
async fn what_waits_is_voted_on_by_the_name_of_its_strategy() -> Result<()> {
    let stage = shop("cli-promotions-vote").await?;
    stage.apply(PEOPLE).await?;
    let vote = |verb: &'static str, more: &[&'static str]| {
        let mut words = vec![verb, "people", "--revision-of"];
        words.extend(more);
        words
    };
    let says = async |words: Vec<&str>, code: i32, expected: &str| {
        says(&stage, "admin", &words, code, expected).await
    };
    let named = ["promotionstrategy/shop"];
    let expected = "no gates of shop hold back a commit for any environment";
    says(vote("approve", &named), 2, expected).await?;

    let revision = format!("env/prod@sha1:{}", "5".repeat(40));
    let mut status = seen();
    status["environments"][2]["lastDecision"] = held(stage.namespace(), &revision);
    Acting(&stage).strategy(&status).await?;
    let said = says(vote("approve", &named), 0, "created").await?;
    let about = format!("it is about {revision}");
    ensure!(said.out.contains(&about), "{said:?}");
    says(
        vote("approve", &["promo/shop"]),
        0,
        "you have said so already",
    )
    .await?;
    let rejected = vote("reject", &["promo/shop", "--environment", "prod"]);
    says(rejected, 0, "created").await?;
    let approvals: Api<Approval> = Api::namespaced(stage.client(), stage.namespace());
    let cast = approvals.list(&Default::default()).await?.items;
    let decisions: Vec<_> = cast.iter().map(|it| it.spec.decision).collect();
    ensure!(
        cast.iter().all(|it| it.spec.revision == revision)
            && decisions.len() == 2
            && decisions.contains(&Vote::Reject),
        "{cast:?}"
    );
    for (words, expected) in [
        (&["promo/none"][..], "there is no promotion strategy `none`"),
        (
            &["promo/shop", "-e", "env/none"],
            "has no environment `env/none`",
        ),
        (
            &["promo/shop", "-e", "env/test"],
            "hold back a commit for env/test",
        ),
        (
            &["promo/shop/env/prod"],
            "write promotionstrategy/shop --environment env/prod",
        ),
        (&["gs/app", "-e", "env/prod"], "has no environments"),
    ] {
        says(vote("approve", words), 2, expected).await?;
    }
    Ok(())
}

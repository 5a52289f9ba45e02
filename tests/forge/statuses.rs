//! Commit statuses and ancestry.

use http::Method;
use serde_json::{Value, json};
use sluice_forges::{Missing, Status, StatusState, Trouble};

use crate::scene::{FILE, Scene, refused, soon, unknown};

fn status(state: StatusState) -> Status<'static> {
    Status {
        context: "sluice/gate/prod",
        state,
        description: "closed by window 'office hours'",
        url: "https://sluice.example.com/prod",
    }
}

#[tokio::test]
async fn the_newest_of_a_context_counts() {
    let scene = Scene::new("statuses").await;
    let commit = scene.head("main").await.unwrap();
    let states = [
        (StatusState::Pending, "pending"),
        (StatusState::Success, "success"),
        (StatusState::Pending, "pending"),
        (StatusState::Failure, "failure"),
    ];
    for (state, expected) in states {
        scene
            .forge
            .set_status(&commit, &status(state), &|_| Some(soon()))
            .await
            .unwrap();
        let path = format!("/commits/{commit}/status");
        let seen: Value = scene.ask(Method::GET, &path, json!(null)).await.unwrap();
        let statuses = seen["statuses"].as_array().unwrap();
        assert_eq!(statuses.len(), 1, "{seen}");
        assert_eq!(statuses[0]["status"], expected);
        assert_eq!(statuses[0]["context"], "sluice/gate/prod");
        assert_eq!(
            statuses[0]["description"],
            "closed by window 'office hours'"
        );
        assert_eq!(statuses[0]["target_url"], "https://sluice.example.com/prod");
    }
}

#[tokio::test]
async fn a_commit_that_is_not_there_has_no_status() {
    let scene = Scene::new("no-commit").await;
    let act = scene
        .forge
        .set_status(&unknown(), &status(StatusState::Success), &|_| Some(soon()))
        .await;
    assert_eq!(refused(act), Trouble::Absent(Missing::Commit));
}

/// The server gives three on a page, although more are asked for.
#[tokio::test]
async fn the_newest_of_each_context_is_read() {
    use StatusState::{Failure, Pending, Success};
    let scene = Scene::new("read-statuses").await;
    let commit = scene.head("main").await.unwrap();
    assert_eq!(scene.forge.statuses(&commit).await, Ok(Vec::new()));
    let set = async |context: &str, state: &str| {
        let body = json!({
            "context": context, "state": state, "description": format!("is {state}"),
            "target_url": "https://ci.example.com/1",
        });
        let path = format!("/statuses/{commit}");
        scene.ask(Method::POST, &path, body).await.unwrap();
    };
    let all = [
        ("a", "success", Success),
        ("b", "error", Failure),
        ("c", "warning", Failure),
        ("d", "skipped", Success),
        ("e", "pending", Pending),
        ("f", "failure", Failure),
        ("kustomization/shop-test/eu", "success", Success),
    ];
    set("a", "failure").await;
    for (context, state, _) in all {
        set(context, state).await;
    }
    let seen = scene.forge.statuses(&commit).await.unwrap();
    let states: Vec<_> = seen
        .iter()
        .map(|it| (it.context.as_str(), it.state))
        .collect();
    assert_eq!(states, all.map(|(context, _, state)| (context, state)));
    assert_eq!(seen[0].description, "is success");
    assert_eq!(seen[0].url.as_deref(), Some("https://ci.example.com/1"));

    let why = scene.forge.statuses(&unknown()).await.unwrap_err();
    assert_eq!(why.trouble, Trouble::Absent(Missing::Commit));
}

#[tokio::test]
async fn a_base_contains_its_ancestors_and_itself() {
    let scene = Scene::new("ancestry").await;
    let old = scene.head("main").await.unwrap();
    let side = scene
        .change("next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap()
        .commit;
    let new = scene
        .push("main", "apps/dev.yaml", b"version: 9\n")
        .await
        .unwrap();
    let contains = async |base, commit| scene.forge.contains(base, commit).await;
    assert_eq!(contains(&new, &old).await, Ok(true));
    assert_eq!(contains(&new, &new).await, Ok(true));
    assert_eq!(contains(&old, &new).await, Ok(false));
    assert_eq!(contains(&new, &side).await, Ok(false));
    assert_eq!(contains(&side, &old).await, Ok(true));
    for (base, commit) in [(&new, &unknown()), (&unknown(), &new)] {
        let why = contains(base, commit).await.unwrap_err();
        assert_eq!(why.trouble, Trouble::Absent(Missing::Commit));
    }
}

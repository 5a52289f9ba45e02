//! Tokens with too few rights, and repositories that are archived, renamed or not to be seen.

use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::json;
use sluice_egress::EgressError;
use sluice_forges::{
    Act, Forge, ForgeError, NewPull, PullState, Status, StatusState, Trouble, Undone,
};
use sluice_tests::gitea::{OWNER, SCOPES};

use crate::scene::{FILE, Scene, branch, file, forge, soon};

async fn status(forge: &Forge, scene: &Scene) -> Act<()> {
    let commit = scene.head("main").await.unwrap();
    let url = "https://example.com";
    let status = Status {
        context: "c",
        state: StatusState::Success,
        description: "",
        url,
    };
    forge.set_status(&commit, &status, &|_| Some(soon())).await
}

async fn open(forge: &Forge, head: &str) -> Act<u64> {
    let (head, base) = (branch(head), branch("main"));
    let new = NewPull {
        title: "Promote",
        body: "",
        head: &head,
        base: &base,
    };
    Ok(forge.open(&new, soon()).await?.number)
}

fn why<T: std::fmt::Debug>(scene: &Scene, act: Act<T>) -> Trouble {
    match act {
        Err(Undone::Refused(error)) => {
            scene.shows_no_secret(&error);
            error.trouble
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_refused() {
    let scene = Scene::new("unknown-token").await;
    let other = scene.with("0123456789abcdef0123456789abcdef01234567");
    let error = other.head(&branch("main")).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Unauthorized);
    assert_eq!(
        why(&scene, status(&other, &scene).await),
        Trouble::Unauthorized
    );
}

#[tokio::test]
async fn a_missing_scope_is_named() {
    let scene = Scene::new("scope").await;
    scene
        .change("next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap();
    let reads = scene
        .gitea
        .token(&scene.bot, &["read:repository"])
        .await
        .unwrap();
    let reads = scene.with(&reads);
    assert_eq!(
        reads.head(&branch("main")).await,
        Ok(scene.head("main").await)
    );
    let trouble = why(&scene, open(&reads, "next").await);
    let Trouble::NoRight(words) = trouble else {
        panic!("a right is missing: {trouble:?}");
    };
    assert!(words.to_string().contains("write:repository"), "{words}");

    let none = scene.gitea.token(&scene.bot, &["read:user"]).await.unwrap();
    let error = scene.with(&none).head(&branch("main")).await.unwrap_err();
    assert!(matches!(error.trouble, Trouble::NoRight(_)), "{error}");
}

#[tokio::test]
async fn who_may_only_read_changes_nothing() {
    let scene = Scene::new("reader").await;
    scene.gitea.user("reader").await.unwrap();
    scene
        .gitea
        .permit("reader", &scene.name, "read")
        .await
        .unwrap();
    let token = scene.gitea.token("reader", &SCOPES).await.unwrap();
    let reader = Scene {
        forge: scene.with(&token),
        token,
        ..scene
    };
    let base = reader.head("main").await.unwrap();
    assert!(
        reader
            .forge
            .file(&base, &file(FILE))
            .await
            .unwrap()
            .is_some()
    );

    let no_right = |trouble| assert!(matches!(trouble, Trouble::NoRight(_)), "{trouble:?}");
    no_right(why(
        &reader,
        reader.change("next", &[(FILE, b"version: 2\n")]).await,
    ));
    no_right(why(&reader, status(&reader.forge, &reader).await));
    no_right(why(
        &reader,
        reader.forge.delete_branch(&branch("main"), soon()).await,
    ));
    let bot = reader.gitea.token(&reader.bot, &SCOPES).await.unwrap();
    let writer = Scene {
        forge: reader.with(&bot),
        ..reader
    };
    let (commit, pull) = writer.pull("next", b"version: 2\n").await;
    let reader = Scene {
        forge: writer.with(&writer.token),
        ..writer
    };
    no_right(why(&reader, reader.forge.close(&pull, "no", soon()).await));
    let act = reader.merge(pull.number, &commit, None).await;
    no_right(act.unwrap_err());
    assert!(matches!(
        reader.seen(pull.number).await.state,
        PullState::Open { .. }
    ));
    assert_eq!(reader.head("main").await, Some(base));
}

#[tokio::test]
async fn what_may_not_be_seen_is_no_repository() {
    let scene = Scene::new("unseen").await;
    scene.gitea.user("stranger").await.unwrap();
    let token = scene.gitea.token("stranger", &SCOPES).await.unwrap();
    for other in [
        scene.with(&token),
        forge(scene.gitea, "no-such", &scene.token),
    ] {
        let error = other.head(&branch("main")).await.unwrap_err();
        assert_eq!(error.trouble, Trouble::NoRepository);
        let error = other.open_pulls(&branch("main")).await.unwrap_err();
        assert_eq!(error.trouble, Trouble::NoRepository);
        assert_eq!(
            why(&scene, open(&other, "next").await),
            Trouble::NoRepository
        );
        assert_eq!(
            why(&scene, status(&other, &scene).await),
            Trouble::NoRepository
        );
        let act = other.delete_branch(&branch("next"), soon()).await;
        assert_eq!(why(&scene, act), Trouble::NoRepository);
    }
}

#[tokio::test]
async fn an_archived_repository_is_only_read() {
    let scene = Scene::new("archived").await;
    let (commit, pull) = scene.pull("next", b"version: 2\n").await;
    scene
        .change("other", &[(FILE, b"version: 3\n")])
        .await
        .unwrap();
    scene
        .ask(Method::PATCH, "", json!({"archived": true}))
        .await
        .unwrap();
    assert_eq!(scene.head("next").await, Some(commit.clone()));
    assert_eq!(
        scene.forge.open_pulls(&branch("main")).await.unwrap().len(),
        1
    );
    assert_eq!(
        why(&scene, open(&scene.forge, "other").await),
        Trouble::Archived
    );
    let act = scene.change("third", &[(FILE, b"version: 4\n")]).await;
    assert_eq!(why(&scene, act), Trouble::Archived);
    assert_eq!(
        scene.merge(pull.number, &commit, None).await,
        Err(Trouble::Archived)
    );
}

/// The reply is a redirect, also to a POST: it is followed nowhere.
#[tokio::test]
async fn a_renamed_repository_is_told_and_not_followed() {
    let scene = Scene::new("renamed").await;
    scene
        .change("next", &[(FILE, b"version: 2\n")])
        .await
        .unwrap();
    scene
        .ask(Method::PATCH, "", json!({"name": "renamed-now"}))
        .await
        .unwrap();
    let error: ForgeError = scene.forge.head(&branch("main")).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Moved);
    scene.shows_no_secret(&error);
    assert_eq!(
        why(&scene, open(&scene.forge, "next").await),
        Trouble::Moved
    );
    let now = forge(scene.gitea, "renamed-now", &scene.token);
    assert_eq!(now.open_pulls(&branch("main")).await, Ok(Vec::new()));
    assert!(now.head(&branch("next")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_is_not_trusted_gets_no_token() {
    let scene = Scene::new("untrusted").await;
    let url = scene.gitea.url(OWNER, &scene.name);
    let address = sluice_forges::Address::parse(sluice_forges::Provider::Gitea, &url).unwrap();
    let rules = sluice_egress::Rules {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..sluice_egress::Rules::default()
    };
    let heard = Arc::<Mutex<Vec<_>>>::default();
    let hears = Arc::clone(&heard);
    let way = sluice_forges::Way {
        egress: sluice_egress::Egress::new(rules).unwrap(),
        authorities: None,
        namespace: "apps".to_owned(),
        told: Some(Arc::new(move |_, told| {
            hears.lock().unwrap().push(told.ended);
        })),
        pacing: sluice_forges::Pacing::default(),
    };
    let token = sluice_egress::secrets::Token::new(&scene.token).unwrap();
    let other = Forge::new(address, sluice_forges::Access { way, token });
    let act = open(&other, "next").await;
    let Err(Undone::NotDone(error)) = act else {
        panic!("nothing was sent: {act:?}");
    };
    let expected = Trouble::Unanswered(EgressError::CertificateNotTrusted);
    assert_eq!(error.trouble, expected);
    scene.shows_no_secret(&error);
    let heard = heard.lock().unwrap();
    assert_eq!(*heard, [sluice_forges::Ended::Unanswered]);
}

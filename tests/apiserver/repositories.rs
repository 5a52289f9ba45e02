//! What is known of a repository: by a real forge, for as long as somebody needs it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use gate_controller::cluster::key::{KeyRef, ObjectKey, Work};
use gate_controller::cluster::kind::Kind;
use gate_controller::observe::clock::Clock;
use jiff::SignedDuration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Evidence, Heads, NOTES, Question, Sight,
};
use sluice_crds::{GitRepositoryAccess, GitRepositoryAccessStatus};
use sluice_tests::controller::InProcess;
use sluice_tests::gitea::{BRANCH, Gitea, OWNER, gitea};
use sluice_tests::line::Line;
use sluice_tests::{poll, status};

use crate::stage::{DEADLINE, Stage};

mod many;

/// The access and the strategy, which is not there.
const NAME: &str = "repositories";

/// A repository behind a line, and an access to it.
struct Scene {
    stage: Stage,
    gitea: &'static Gitea,
    line: Line,
    token: String,
}

impl Scene {
    async fn open() -> Result<Self> {
        let gitea = gitea().await?;
        gitea.repository(NAME).await?;
        let bot = gitea.bot(NAME).await?;
        let line = Line::open(gitea.url("", "").trim_end_matches('/')).await?;
        let stage = Stage::new(NAME, "2026-11-20T12:00:00Z").await?;
        let secret = bot.secret_for_pipelines("git-token");
        let access = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
            "metadata": {"name": NAME},
            "spec": {
                "provider": "gitea", "url": format!("{}/{OWNER}/{NAME}", line.server()),
                "secretRef": {"name": "git-token"}, "interval": "10s",
            },
        });
        stage.apply(&secret.to_string()).await?;
        stage.apply(&access.to_string()).await?;
        Ok(Self {
            stage,
            gitea,
            line,
            token: bot.token,
        })
    }

    fn access(&self) -> ObjectKey {
        let namespace = self.stage.namespace();
        KeyRef {
            namespace,
            name: NAME,
        }
        .into()
    }

    fn strategy(&self) -> Work {
        Work::own(Kind::PromotionStrategy, self.access())
    }

    fn pass(&self, seconds: i64) {
        let clock = self.stage.clock();
        clock.set(clock.now() + SignedDuration::from_secs(seconds));
    }

    async fn push(&self, path: &str, text: &str) -> Result<String> {
        let bytes = text.as_bytes();
        self.gitea.push(NAME, BRANCH, path, bytes).await
    }

    /// Writes a note on a commit of the branch, as a hydrator does with Git.
    fn note(&self, commit: &str, text: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let authority = folder.path().join("ca.crt");
        std::fs::write(&authority, self.gitea.authority())?;
        let url = self.gitea.url(OWNER, NAME);
        let git = |arguments: &[&str]| git(folder.path(), &self.token, arguments);
        git(&["init", "-q", "."])?;
        git(&["fetch", "-q", &url, BRANCH])?;
        git(&["notes", "--ref", NOTES, "add", "-m", text, commit])?;
        git(&["push", "-q", &url, NOTES])
    }

    /// Gives the Secret another token.
    async fn token(&self, token: &str) -> Result<()> {
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.stage.client(), self.stage.namespace());
        let patch = Patch::Merge(json!({"stringData": {"token": token}}));
        let params = PatchParams::default();
        secrets.patch("git-token", &params, &patch).await?;
        Ok(())
    }

    fn accesses(&self) -> Api<GitRepositoryAccess> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    /// Waits until the access is ready, or not, for this reason.
    async fn says(&self, expected: &str) -> Result<GitRepositoryAccess> {
        let accesses = self.accesses();
        let said = |status: &GitRepositoryAccessStatus| {
            let mut ready = status.conditions.iter().filter(|it| it.type_ == "Ready");
            ready.any(|it| format!("{} {}", it.status, it.reason) == expected)
        };
        status::until(&accesses, NAME, DEADLINE, expected, said).await
    }

    /// Waits until the branches are known, and are as they should be.
    async fn heads(
        &self,
        controller: &InProcess,
        what: &str,
        check: impl Fn(&Heads) -> bool,
    ) -> Result<Arc<Heads>> {
        let (access, strategy) = (self.access(), self.strategy());
        poll(DEADLINE, what, async || {
            match controller.repositories().of(&access, &strategy).heads() {
                Sight::Known(heads) if check(&heads) => Ok(heads),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }
}

fn git(folder: &Path, token: &str, arguments: &[&str]) -> Result<()> {
    let token = format!("http.extraHeader=Authorization: token {token}");
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    let mut git = Command::new("git");
    git.current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_SSL_CAINFO", folder.join("ca.crt"))
        .args(["-c", &token])
        .args(author)
        .args(arguments);
    let output = git.output()?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{why}");
    Ok(())
}

/// What the forge says to all of these.
async fn answers(
    scene: &Scene,
    controller: &InProcess,
    questions: &[Question],
) -> Result<Vec<Sight<Answer>>> {
    let (access, strategy) = (scene.access(), scene.strategy());
    let repositories = controller.repositories();
    repositories.ask(&access, &strategy, questions.iter().cloned());
    poll(DEADLINE, "answers to all questions", async || {
        let seen = repositories.of(&access, &strategy);
        let all: Vec<_> = questions.iter().map(|it| seen.answer(it)).collect();
        let is_answered = |it: &Sight<_>| matches!(it, Sight::Known(_) | Sight::Absent);
        match all.iter().all(is_answered) {
            true => Ok(all),
            false => Err(format!("{all:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_repository_is_read_for_as_long_as_somebody_needs_it() -> Result<()> {
    let scene = Scene::open().await?;
    let first = scene
        .push("hydrator.metadata", "{\"drySha\": \"x\"}")
        .await?;
    scene.note(&first, "{\"drySha\": \"y\"}")?;
    let controller = scene.stage.start_with_egress().await?;
    let repositories = controller.repositories();

    // Nobody needs it: nobody is asked.
    scene.says("True NotNeeded").await?;
    scene.pass(3_600);
    controller.rests().await?;
    ensure!(scene.line.connections() == 0, "it was asked");

    // A strategy does.
    let branches = [BRANCH, "env/gone"].map(str::to_owned);
    repositories.need(&scene.access(), &scene.strategy(), branches.into());
    scene.pass(1);
    let is_there = |heads: &Heads| heads.branches.get(BRANCH) == Some(&first);
    let heads = scene.heads(&controller, "the branch", is_there).await?;
    ensure!(heads.branches.len() == 1, "{heads:?}");
    let Sight::Known(notes) = heads.notes.clone() else {
        bail!("no notes: {heads:?}");
    };
    scene.says("True Listed").await?;

    // Somebody pushes: that is known within the interval.
    let second = scene.push("file", "2").await?;
    scene.pass(10);
    let has_moved = |heads: &Heads| heads.branches.get(BRANCH) == Some(&second);
    scene.heads(&controller, "the push", has_moved).await?;

    let contains = |base: &str, commit: &str| Question::Contains {
        base: base.to_owned(),
        commit: commit.to_owned(),
    };
    let note = |of: &str| Question::Note {
        notes: notes.clone(),
        of: of.to_owned(),
    };
    let questions = [
        Question::Commit(second.clone()),
        Question::Metadata(second.clone()),
        note(&first),
        note(&second),
        contains(&second, &first),
        contains(&first, &second),
        Question::Statuses(second.clone()),
    ];
    let answered = answers(&scene, &controller, &questions).await?;
    let text = |text: &str| Sight::Known(Answer::Text(text.into()));
    let Sight::Known(Answer::Commit(commit)) = &answered[0] else {
        anyhow::bail!("{answered:?}");
    };
    assert_eq!(commit.parents, std::slice::from_ref(&first));
    assert_eq!(commit.message.trim_end(), "Push");
    let expected = [
        text("{\"drySha\": \"x\"}"),
        text("{\"drySha\": \"y\"}\n"),
        Sight::Absent,
        Sight::Known(Answer::Contains(true)),
        Sight::Known(Answer::Contains(false)),
        Sight::Known(Answer::Statuses([].into())),
    ];
    assert_eq!(answered[1..], expected);

    // The token is not right any more, and then it is, and somebody says so.
    scene.token("wrong").await?;
    scene.pass(10);
    let access = scene.says("False Unauthorized").await?;
    let why = json!(access.status).to_string();
    ensure!(
        !why.contains(&scene.token) && !why.contains("wrong"),
        "{why}"
    );
    let seen = repositories.of(&scene.access(), &scene.strategy());
    ensure!(
        matches!(seen.heads(), Sight::Failed(_)),
        "{:?}",
        seen.heads()
    );
    scene.token(&scene.token).await?;
    request(&scene, "please").await?;
    let handled = |status: &GitRepositoryAccessStatus| {
        status.last_handled_reconcile_at.as_deref() == Some("please")
    };
    scene.pass(1);
    let accesses = scene.accesses();
    status::until(&accesses, NAME, DEADLINE, "an answer", handled).await?;
    scene.heads(&controller, "the list", has_moved).await?;

    // What has not changed is not written, and what nobody needs any more is not asked.
    controller.rests().await?;
    let written = controller.writes("GitRepositoryAccess").await?;
    for _ in 0..3 {
        let before = repositories.listed_at(&scene.access());
        scene.pass(10);
        poll(DEADLINE, "another list", async || {
            let now = repositories.listed_at(&scene.access());
            ensure!(now > before, "{now:?}");
            anyhow::Ok(())
        })
        .await?;
    }
    let now = controller.writes("GitRepositoryAccess").await?;
    ensure!(now == written, "{} writes", now - written);
    repositories.forget(&scene.strategy());
    scene.pass(60);
    scene.says("True NotNeeded").await?;
    let asked = scene.line.bytes();
    scene.pass(3_600);
    controller.rests().await?;
    ensure!(scene.line.bytes() == asked, "it was asked");
    Ok(())
}

/// As `flux reconcile` asks.
async fn request(scene: &Scene, value: &str) -> Result<()> {
    let annotations: Value = json!({"reconcile.fluxcd.io/requestedAt": value});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let accesses = scene.accesses();
    accesses
        .patch(NAME, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

//! `cargo xtask demo`: the main job, on a real API server, on one screen.
//!
//! What comes in: the examples. What goes out: a story. The control plane starts, CRDs and
//! policies are installed, the controller runs, and gates open and close.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use sluice_tests::programs::Program;
use sluice_tests::progress::human;
use sluice_tests::{Options, User};

use crate::cargo;
use crate::server::{self, Open, Server};
use crate::signals::told_to_end;

mod flux;
mod screen;
mod stage;
mod story;

use screen::Screen;

/// The user names of the demo.
const PEOPLE: [&str; 2] = ["alice", "bob"];
/// The user name under which the admission policies know the controller.
const CONTROLLER: &str = "system:serviceaccount:sluice-system:gate-controller";
/// Where the examples go.
const NAMESPACE: &str = "sluice-demo";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// End with the story, instead of letting one play until Ctrl-C.
    #[arg(long)]
    exit: bool,
    /// With a chapter in which the real Flux delivers an app from Git. Building it takes eight
    /// minutes, the first time.
    #[arg(long)]
    flux: bool,
}

impl Arguments {
    /// The story alone, without playing afterwards.
    pub(crate) fn to_the_end(server: Server) -> Self {
        Self {
            server,
            exit: true,
            flux: false,
        }
    }
}

/// Tells the story.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let screen = Screen::new();
    let began = Instant::now();
    screen.scene("Building");
    let controller = cargo::program(Program::GateController)?;
    let kubectl_gate = cargo::program(Program::KubectlGate)?;
    screen.fact(&format!(
        "controller and kubectl-gate: {}",
        human(began.elapsed())
    ));
    let began = Instant::now();
    let mut options = Options::default().with_users(&PEOPLE).with_housekeeping();
    options.users.push(User::new(CONTROLLER));
    let open = arguments.server.open(options).await?;
    screen.fact(&format!(
        "API server, built or found, and ready: {}",
        human(began.elapsed())
    ));
    if arguments.flux {
        open.has_no_flux().await?;
    }
    let client = open.cluster.client().await?;
    server::create_namespace(&client, NAMESPACE).await?;
    let ended = told_to_end()?;
    let told = tokio::select! {
        told = tell(&screen, &controller, kubectl_gate, &open, &arguments) => told,
        () = ended => Ok(()),
    };
    if !open.is_ours() {
        server::clear(&client, NAMESPACE).await?;
        screen.fact("everything was taken away from your cluster again, except for the CRDs");
    }
    told
}

async fn tell(
    screen: &Screen,
    controller: &Path,
    kubectl_gate: PathBuf,
    open: &Open,
    arguments: &Arguments,
) -> Result<()> {
    let client = open.cluster.client().await?;
    screen.scene("Installing CRDs, admission policies, rights and examples");
    stage::install(&client).await?;
    let controller = stage::Controller::start(controller, open).await?;
    let stage = stage::Stage {
        kubectl_gate,
        cluster: open.cluster.clone(),
        client,
    };
    let chapter = match arguments.flux {
        true => Some(flux::Chapter::prepare(screen, &stage).await?),
        false => None,
    };
    let told = chapters(screen, &stage, chapter.as_ref()).await;
    if told.is_err() {
        screen.quote(&controller.process.log_tail());
    }
    told?;
    if !arguments.exit {
        screen.scene("Now you");
        screen.fact(&format!(
            "export KUBECONFIG={}",
            open.cluster.kubeconfig().display()
        ));
        screen.fact(&format!(
            "kubectl --namespace {NAMESPACE} get gates --watch"
        ));
        screen.fact(&format!("the plugin: {}", stage.kubectl_gate.display()));
        screen.fact("Ctrl-C ends the demo");
        std::future::pending::<()>().await;
    }
    drop((chapter, controller));
    Ok(())
}

/// What gates do by themselves, and then what Flux does with them.
async fn chapters(
    screen: &Screen,
    stage: &stage::Stage,
    flux: Option<&flux::Chapter>,
) -> Result<()> {
    story::tell(screen, stage).await?;
    match flux {
        Some(chapter) => chapter.tell(screen, stage).await,
        None => Ok(()),
    }
}

/// What a program said, and whether it succeeded.
struct Said {
    text: String,
    success: bool,
}

/// Runs `kubectl gate` as `user`.
async fn kubectl_gate(stage: &stage::Stage, user: &str, arguments: &[&str]) -> Result<Said> {
    let kubeconfig = stage.cluster.kubeconfig_for(user)?;
    let output = tokio::process::Command::new(&stage.kubectl_gate)
        .args(arguments)
        .args(["--namespace", NAMESPACE])
        .env("KUBECONFIG", &*kubeconfig)
        .env("COLUMNS", "100")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(90), output)
        .await
        .context("kubectl gate does not answer")??;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(
        !text.is_empty() || output.status.success(),
        "kubectl gate failed without a word"
    );
    Ok(Said {
        text: text.trim_end().to_owned(),
        success: output.status.success(),
    })
}

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
mod freeze;
mod pipelines;
mod promotion;
mod rollout;
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
    /// Another story: an app on its way through three environments on two clusters, by pull requests in a
    /// real Gitea, which the real Flux delivers. Building both takes ten minutes, the first time.
    #[arg(long, conflicts_with = "flux")]
    pipelines: bool,
    /// Another story: a shop whose three environments are branches in a real Gitea, which the real Flux
    /// delivers. A bad commit is taken back, and its fix gets out.
    #[arg(long, conflicts_with_all = ["flux", "pipelines"])]
    promotion: bool,
    /// Another story: twenty pods get a new version in batches, with the real controllers of workloads. A gate
    /// closes in the middle, a metric goes bad, and the old version is brought back. Always on a cluster of
    /// its own.
    #[arg(long, conflicts_with_all = ["flux", "pipelines", "promotion"])]
    rollout: bool,
}

impl Arguments {
    /// The story alone, without playing afterwards.
    pub(crate) fn to_the_end(server: Server) -> Self {
        Self {
            server,
            exit: true,
            flux: false,
            pipelines: false,
            promotion: false,
            rollout: false,
        }
    }

    /// The story of pipelines, on clusters of its own.
    pub(crate) fn of_pipelines() -> Self {
        Self {
            pipelines: true,
            ..Self::to_the_end(Server::local())
        }
    }

    /// The story of promotion by branches, on a cluster of its own.
    pub(crate) fn of_promotion() -> Self {
        Self {
            promotion: true,
            ..Self::to_the_end(Server::local())
        }
    }

    /// The story of a rollout, on a cluster of its own.
    pub(crate) fn of_rollout() -> Self {
        Self {
            rollout: true,
            ..Self::to_the_end(Server::local())
        }
    }

    /// Whether the story needs Flux.
    fn has_flux(&self) -> bool {
        self.flux || self.pipelines || self.promotion
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
    let mut server = arguments.server.clone();
    if arguments.rollout {
        // There is no node but that of the story.
        (server, options) = (Server::local(), options.with_workloads());
    }
    let open = server.open(options).await?;
    screen.fact(&format!(
        "API server, built or found, and ready: {}",
        human(began.elapsed())
    ));
    if arguments.has_flux() {
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
        columns: screen.columns(),
        cluster: open.cluster.clone(),
        client,
    };
    let told = async {
        let story = Story::prepare(screen, &stage, arguments).await?;
        story.tell(screen, &stage, &controller).await?;
        Ok::<_, anyhow::Error>(story)
    };
    let told = told.await;
    if told.is_err() {
        screen.waited();
        screen.quote(&controller.process.log_tail());
    }
    let story = told?;
    if !arguments.exit {
        now_you(screen, &stage, &story).await;
    }
    drop((story, controller));
    Ok(())
}

/// What is told, with everything that has to be there for it.
enum Story {
    Gates,
    Flux(Box<flux::Chapter>),
    Pipelines(Box<pipelines::Chapter>),
    Promotion(Box<promotion::Chapter>),
    Rollout(Box<rollout::Chapter>),
}

impl Story {
    async fn prepare(screen: &Screen, stage: &stage::Stage, arguments: &Arguments) -> Result<Self> {
        if arguments.flux {
            let chapter = flux::Chapter::prepare(screen, stage).await?;
            Ok(Self::Flux(Box::new(chapter)))
        } else if arguments.pipelines {
            let chapter = pipelines::Chapter::prepare(screen, stage).await?;
            Ok(Self::Pipelines(Box::new(chapter)))
        } else if arguments.promotion {
            let chapter = promotion::Chapter::prepare(screen, stage).await?;
            Ok(Self::Promotion(Box::new(chapter)))
        } else if arguments.rollout {
            let chapter = rollout::Chapter::prepare(screen, stage).await?;
            Ok(Self::Rollout(Box::new(chapter)))
        } else {
            Ok(Self::Gates)
        }
    }

    async fn tell(
        &self,
        screen: &Screen,
        stage: &stage::Stage,
        controller: &stage::Controller,
    ) -> Result<()> {
        match self {
            Self::Gates => story::tell(screen, stage).await,
            Self::Flux(chapter) => {
                story::tell(screen, stage).await?;
                chapter.tell(screen, stage).await
            }
            Self::Pipelines(chapter) => chapter.tell(screen, stage, controller).await,
            Self::Promotion(chapter) => chapter.tell(screen, stage, controller).await,
            Self::Rollout(chapter) => chapter.tell(screen, stage, controller).await,
        }
    }
}

/// Lets people play until they end the demo.
async fn now_you(screen: &Screen, stage: &stage::Stage, story: &Story) {
    screen.scene("Now you");
    let kubeconfig = stage.cluster.kubeconfig().display();
    screen.fact(&format!("export KUBECONFIG={kubeconfig}"));
    let plugin = stage.kubectl_gate.display();
    let play = |command: &str| {
        screen.fact(&format!("{plugin} --namespace {NAMESPACE} {command}"));
    };
    match story {
        Story::Gates | Story::Flux(_) => {
            screen.fact(&format!(
                "kubectl --namespace {NAMESPACE} get gates --watch"
            ));
            screen.fact(&format!("the plugin: {plugin}"));
        }
        Story::Pipelines(chapter) => {
            play("pipeline podinfo");
            chapter.addresses(screen);
        }
        Story::Promotion(chapter) => {
            play("promotion shop");
            chapter.addresses(screen);
        }
        Story::Rollout(_) => {
            play("rollout web --watch");
            rollout::Chapter::again(screen);
        }
    }
    screen.fact("Ctrl-C ends the demo");
    std::future::pending::<()>().await;
}

/// What a program said, and whether it succeeded.
struct Said {
    text: String,
    success: bool,
}

/// Runs `kubectl gate` as `user`.
async fn kubectl_gate(stage: &stage::Stage, user: &str, arguments: &[&str]) -> Result<Said> {
    say(stage, &stage.kubectl_gate, user, arguments).await
}

/// Runs a program in the namespace of the demo, as `user`.
async fn say(stage: &stage::Stage, program: &Path, user: &str, arguments: &[&str]) -> Result<Said> {
    let kubeconfig = stage.cluster.kubeconfig_for(user)?;
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .args(["--namespace", NAMESPACE])
        .env("KUBECONFIG", &*kubeconfig)
        .env("COLUMNS", stage.columns.to_string())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(90), output).await;
    let program = program.display();
    let output = output.with_context(|| format!("{program} does not answer"))??;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(
        !text.is_empty() || output.status.success(),
        "{program} failed without a word"
    );
    Ok(Said {
        text: text.trim_end().to_owned(),
        success: output.status.success(),
    })
}

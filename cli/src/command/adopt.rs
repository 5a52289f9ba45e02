//! `kubectl gate adopt`

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};
use sluice_core::offline::simulate::Key;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{ConsumerKind, SourceKind};
use sluice_crds::{Duration, Gate, GateReference, GateSet, GatedSource, Require};

use crate::arguments::{self, Globals};
use crate::cluster::{self, Connection, Consumer, Use};
use crate::instant;
use crate::outcome::Outcome;
use crate::output::{self, Data, say, warn};

mod plan;
mod promoter;
mod used;
mod write;

use plan::{Around, Attempt, Plan, Switch, Wish, plan};
use used::Used;

/// Put an app that Flux runs behind gates, without downtime
///
/// Prints the YAML to apply or to commit: a GatedSource that admits at once the revision that runs now,
/// and the change to the Kustomization or HelmRelease, which makes it use the child of the GatedSource.
/// A HelmRelease with spec.chart gets a HelmChart of its own.
///
/// With --write, the command applies the YAML itself. It first makes the child, waits until the child
/// serves the revision that runs now, and then makes the app use it. So nothing is ever missing.
///
/// The revision that runs now is admitted without asking the gates. For that you need the verb baseline
/// on gatedsources. The ClusterRole sluice-baseline grants it.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 the YAML is printed or applied, or nothing was left to do; 1 the app was \
                  not changed: the child does not serve the revision that runs; 2 it cannot be done."
)]
pub(crate) struct Adopt {
    /// The object of Flux that applies the app, as kustomization/NAME or helmrelease/NAME
    #[arg(value_name = "KIND/NAME", value_parser = parse_consumer, required = true)]
    consumer: Option<(ConsumerKind, String)>,

    /// The gates that every revision has to pass, separated by commas; a gate in another namespace as
    /// NAMESPACE/NAME
    #[arg(long = "gate", value_name = "NAME", required = true, value_delimiter = ',', value_parser = parse_gate)]
    gates: Vec<GateReference>,

    /// How the answers of several gates combine
    #[arg(long, value_name = "HOW", value_parser = arguments::require, default_value = "all")]
    require: Require,

    /// How far the sources of one gate are spread in time when it opens, such as 10m
    #[arg(long, value_name = "DURATION")]
    spread: Option<String>,

    /// The name of the GatedSource [default: that of the app]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The name of the child, the source that the app will use [default: that of the GatedSource,
    /// followed by -gated]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,

    /// Also change every other app that uses the same source
    #[arg(long)]
    all_consumers: bool,

    /// Apply the YAML
    #[arg(long)]
    write: bool,

    /// Apply the YAML even if Flux would revert it because the object comes from Git
    #[arg(long, requires = "write")]
    force_write: bool,

    /// How long to wait until the child serves the revision that runs now
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: String,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Promoter(promoter::Promoter),
}

fn parse_consumer(text: &str) -> Result<(ConsumerKind, String), &'static str> {
    used::named(text).ok_or("write kustomization/NAME or helmrelease/NAME")
}

fn parse_gate(text: &str) -> Result<GateReference, &'static str> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if name.is_empty() || name.contains('/') || namespace.is_some_and(str::is_empty) {
        return Err("write the name of a gate, or NAMESPACE/NAME");
    }
    Ok(GateReference {
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
    })
}

impl Adopt {
    /// What it does without a cluster. None: it needs one.
    pub(super) fn run_offline(&self, globals: &Globals) -> Option<Result<Outcome>> {
        let command = self.command.as_ref();
        command.map(|Command::Promoter(promoter)| promoter.run_offline(globals))
    }

    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let timeout = instant::parse_duration(&self.timeout).context("--timeout")?;
        let timeout = std::time::Duration::try_from(timeout).context("--timeout")?;
        let wish = self.wish()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let around = self.around(&connection).await?;
        let who = around.consumer.called();
        let plan = match plan(&wish, &around)? {
            Attempt::Adopted(source) => {
                say!("{who} is behind gates already: GatedSource {source}")?;
                return Ok(Outcome::Yes);
            }
            Attempt::Plan(plan) => plan,
        };
        self.check_chart(&connection, &plan).await?;
        check_child(&connection, &plan).await?;
        notes(&connection, &plan).await.iter().for_each(warn);
        if !self.write {
            output::text(printed(&plan)?)?;
            return Ok(Outcome::Yes);
        }
        if let Some(Switch {
            consumer,
            managed_by: Some(by),
            ..
        }) = plan.switches.iter().find(|it| it.managed_by.is_some())
            && !self.force_write
        {
            bail!(
                "{} is applied by {by}, which would revert the change; commit what adopt prints \
                 without --write, or add --force-write",
                consumer.called()
            );
        }
        write::write(&connection, &plan, timeout).await
    }

    fn wish(&self) -> Result<Wish> {
        let spread = self.spread.as_deref();
        if let Some(spread) = spread {
            instant::parse_duration(spread).context("--spread")?;
        }
        for (n, gate) in self.gates.iter().enumerate() {
            if self.gates[..n].contains(gate) {
                bail!("--gate: {} is named twice; name each gate once", gate.name);
            }
        }
        Ok(Wish {
            gates: GateSet {
                require: self.require,
                refs: self.gates.clone(),
            },
            spread: spread.map(Duration::from),
            name: self.name.clone(),
            target: self.target.clone(),
            all_consumers: self.all_consumers,
        })
    }

    async fn around(&self, connection: &Connection) -> Result<Around> {
        let consumer = self.consumer.as_ref();
        let (kind, name) = consumer.context("name the object of Flux that applies the app")?;
        let key = connection.key(name);
        let object = cluster::flux_object(connection, FluxKind::Consumer(*kind), &key).await?;
        let consumer = Consumer {
            kind: *kind,
            object: object.ok_or_else(|| cluster::missing(kind.as_str(), &key))?,
        };
        let used = Used::by(&consumer)?;
        let key = Key::from_reference(&used.namespace, None, &used.name);
        let upstream = cluster::flux_object(connection, used.kind, &key).await?;
        let (consumers, note) = cluster::consumers(connection).await?;
        note.iter().for_each(output::note);
        Ok(Around {
            consumer,
            upstream,
            consumers,
            sources: cluster::served(connection, false, ListParams::default()).await?,
        })
    }

    /// Whether there is a HelmChart of that name which is another.
    async fn check_chart(&self, connection: &Connection, plan: &Plan) -> Result<()> {
        let Some(chart) = &plan.chart else {
            return Ok(());
        };
        let kind = FluxKind::Source(SourceKind::HelmChart);
        let name = plan.source.name_any();
        let known = cluster::flux_object(connection, kind, &connection.key(&name)).await?;
        let other = known.filter(|known| {
            let wanted = chart["spec"].as_object();
            let has = |(field, value)| known.spec.get(field) == Some(value);
            !wanted.is_some_and(|wanted| wanted.iter().all(has))
        });
        match other {
            None => Ok(()),
            Some(_) => bail!(
                "there is a HelmChart {name} of another content; choose another name with --name"
            ),
        }
    }
}

/// Whether what is to be the child belongs to somebody else.
async fn check_child(connection: &Connection, plan: &Plan) -> Result<()> {
    let (kind, name) = &plan.child;
    let known = cluster::flux_object(connection, *kind, &connection.key(name)).await?;
    let source = plan.source.name_any();
    match known {
        Some(known) if cluster::parent(&known) != Some(&source) => bail!(
            "there is a {} {name} that is no child of GatedSource {source}; choose another name \
             with --target",
            kind.as_str()
        ),
        Some(_) | None => Ok(()),
    }
}

/// What else to say: gates that are not there, who goes around them.
async fn notes(connection: &Connection, plan: &Plan) -> Vec<String> {
    let mut notes = plan.notes.clone();
    for reference in &plan.source.spec.gates.refs {
        let namespace = reference.namespace.as_deref();
        let key = Key::from_reference(&connection.namespace, namespace, &reference.name);
        if let Ok(None) = cluster::find::<Gate>(connection, &key).await {
            notes.push(format!(
                "there is no gate {key}, so nothing new goes out until there is"
            ));
        }
    }
    if !plan.bypassing.is_empty() {
        notes.push(format!(
            "{} use the source itself and go around the gates; --all-consumers moves them, too",
            plan.bypassing.join(", ")
        ));
    }
    notes
}

/// The YAML, with what to do with it.
fn printed(plan: &Plan) -> Result<String> {
    let mut documents = Vec::new();
    if let Some(chart) = &plan.chart {
        let why = "# The chart, as Flux took it out of the HelmRelease so far: now an object of its own.\n";
        documents.push(format!("{why}{}", Data::Yaml.text(chart)?));
    }
    if plan.exists {
        let name = plan.source.name_any();
        output::note(format_args!("GatedSource {name} is there already."));
    } else {
        let why = match plan.source.spec.baseline {
            Some(_) => {
                "# Admits at once what runs, and from then on what its gates let pass. To apply it\n\
                 # needs the verb baseline on gatedsources: the ClusterRole sluice-baseline grants it.\n"
            }
            None => "# Admits what its gates let pass, the first revision included.\n",
        };
        documents.push(format!("{why}{}", Data::Yaml.text(&shown(&plan.source))?));
    }
    let (kind, child) = &plan.child;
    for switch in &plan.switches {
        let (key, who) = (switch.consumer.key(), switch.consumer.called());
        let mut why = format!(
            "# Once {} {child} is Ready: {who} uses it.\n",
            kind.as_str()
        );
        why += &match &switch.managed_by {
            Some(by) => format!("# {by} applies it: change it where that is written.\n"),
            None => format!(
                "# Change it where it is written, or: kubectl patch {} {} --namespace {} --type merge --patch-file FILE\n",
                switch.consumer.kind.as_str().to_ascii_lowercase(),
                key.name,
                key.namespace
            ),
        };
        if *kind == FluxKind::ExternalArtifact {
            why += "# Its controller has to run with --feature-gates=ExternalArtifact=true.\n";
        }
        documents.push(format!("{why}{}", Data::Yaml.text(&changed(switch))?));
    }
    Ok(documents.join("---\n"))
}

/// A GatedSource as somebody would write it.
fn shown(source: &GatedSource) -> Value {
    let mut shown = json!(source);
    if let Some(spec) = shown["spec"].as_object_mut() {
        // The default.
        spec.remove("deletionPolicy");
    }
    shown
}

/// The part of an object that changes.
fn changed(switch: &Switch) -> Value {
    let flux = FluxKind::Consumer(switch.consumer.kind);
    let Key { namespace, name } = switch.consumer.key();
    json!({
        "apiVersion": format!("{}/{}", flux.group(), flux.version()),
        "kind": flux.as_str(),
        "metadata": {"name": name, "namespace": namespace},
        "spec": switch.patch["spec"],
    })
}

//! `kubectl gate pipeline new`

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use sluice_core::offline::lint;

use crate::arguments::{Globals, consumer};
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// Print a new pipeline, to be committed
///
/// Nothing is changed in a cluster, and no cluster is asked. What is printed passes `kubectl gate lint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 it is printed; 2 it would be refused.

Example: kubectl gate pipeline new podinfo --app HelmRelease/podinfo \\
  --environment dev=podinfo-dev --environment prod=podinfo@Secret/prod-kubeconfig \\
  --gate prod=production --promote admission")]
pub(crate) struct New {
    /// The name of the pipeline
    #[arg(value_name = "NAME")]
    name: String,

    /// The app: the object of that kind and name in the namespace of each target
    #[arg(long, value_name = "KIND/NAME", value_parser = consumer)]
    app: (String, String),

    /// An environment with its targets, in the order in which a revision goes through them. A target is a
    /// namespace, and perhaps the cluster behind an @: Secret/NAME, Cluster/NAME or GitopsCluster/NAME
    #[arg(
        long = "environment",
        short = 'e',
        value_name = "NAME=TARGET,...",
        required = true
    )]
    environments: Vec<String>,

    /// A gate that a promotion to an environment has to pass; may be given more than once
    #[arg(
        long = "gate",
        short = 'g',
        value_name = "ENVIRONMENT=[NAMESPACE/]GATE"
    )]
    gates: Vec<String>,

    /// How a revision is promoted. Without it, people do it
    #[arg(long, value_name = "WAY")]
    promote: Option<Way>,

    /// An environment for which a person has to approve each promotion; may be given more than once
    #[arg(long, value_name = "ENVIRONMENT", requires = "promote")]
    manual: Vec<String>,

    /// The kind of forge: github, gitlab, gitea or bitbucket-server
    #[arg(long, value_name = "KIND")]
    forge: Option<String>,

    /// The address of the repository
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The Secret with the token of the forge
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,

    /// A file with markers; may be given more than once
    #[arg(long = "path", value_name = "FILE-IN-GIT")]
    written: Vec<String>,

    /// The branch that pull requests are merged into
    #[arg(long, value_name = "NAME", default_value = "main")]
    base_branch: String,
}

/// How a revision is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    PullRequest,
    Notification,
    Admission,
}

impl New {
    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        let object = self.object(globals)?;
        match lint::read(&object).mistakes.into_iter().next() {
            Some(mistake) => bail!("{mistake}"),
            None => output::text(Data::Yaml.text(&object)?)?,
        }
        Ok(Outcome::Yes)
    }

    fn object(&self, globals: &Globals) -> Result<Value> {
        let strategy = self.strategy()?;
        let mut environments = Vec::new();
        for text in &self.environments {
            environments.push(self.environment(text, strategy.as_ref())?);
        }
        self.all_are_known(&environments)?;
        let mut spec = json!({
            "appRef": {"kind": self.app.0, "name": self.app.1}, "environments": environments,
        });
        if let Some(strategy) = strategy {
            spec["promotion"] = json!({"strategy": strategy});
        }
        let mut metadata = json!({"name": self.name});
        if let Some(namespace) = &globals.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        Ok(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": metadata, "spec": spec,
        }))
    }

    fn environment(&self, text: &str, strategy: Option<&Value>) -> Result<Value> {
        let Some((name, targets)) = text.split_once('=') else {
            bail!("--environment {text}: write NAME=NAMESPACE, such as prod=podinfo");
        };
        let targets: Vec<Value> = targets.split(',').map(target).collect::<Result<_>>()?;
        let mut own = json!({"name": name, "targets": targets});
        let mut refs = Vec::new();
        for text in &self.gates {
            match text.split_once('=') {
                Some((at, gate)) if at == name => refs.push(gate_of(gate)),
                Some(_) => {}
                None => bail!("--gate {text}: write ENVIRONMENT=GATE, such as prod=production"),
            }
        }
        if !refs.is_empty() {
            own["gates"] = json!({"refs": refs});
        }
        if let Some(strategy) = strategy.filter(|_| self.manual.iter().any(|it| it == name)) {
            own["promotion"] = json!({"manual": true, "strategy": strategy});
        }
        Ok(own)
    }

    /// Gates and approvals that are for no environment would be lost.
    fn all_are_known(&self, environments: &[Value]) -> Result<()> {
        let is_known = |name: &str| environments.iter().any(|it| it["name"] == name);
        let gates = self.gates.iter().filter_map(|it| it.split_once('='));
        let gates = gates.map(|(name, _)| ("--gate", name));
        let manual = self.manual.iter().map(|name| ("--manual", name.as_str()));
        match gates.chain(manual).find(|(_, name)| !is_known(name)) {
            Some((flag, name)) => {
                bail!("{flag}: there is no environment `{name}`; add it by --environment")
            }
            None => Ok(()),
        }
    }

    fn strategy(&self) -> Result<Option<Value>> {
        let given = [&self.forge, &self.url, &self.secret];
        let is_forge = self.promote == Some(Way::PullRequest);
        if !is_forge && (given.iter().any(|it| it.is_some()) || !self.written.is_empty()) {
            bail!("--forge, --url, --secret and --path belong to --promote pull-request; add it");
        }
        let way = match self.promote {
            None => return Ok(None),
            Some(Way::Notification) => json!({"notification": {}}),
            Some(Way::Admission) => json!({"admission": {}}),
            Some(Way::PullRequest) => {
                let (Some(forge), Some(url), Some(secret)) = (&self.forge, &self.url, &self.secret)
                else {
                    bail!("--promote pull-request needs --forge, --url, --secret and --path");
                };
                json!({"pull-request": {
                    "type": forge, "url": url, "baseBranch": self.base_branch,
                    "secretRef": {"name": secret}, "paths": self.written,
                }})
            }
        };
        Ok(Some(way))
    }
}

/// A target: a namespace, and perhaps its cluster.
fn target(text: &str) -> Result<Value> {
    let Some((namespace, cluster)) = text.split_once('@') else {
        return Ok(json!({"namespace": text}));
    };
    let Some((kind, name)) = cluster.split_once('/') else {
        bail!("--environment: `{cluster}` names no cluster; write such as Secret/prod-kubeconfig");
    };
    Ok(json!({"namespace": namespace, "clusterRef": {"kind": kind, "name": name}}))
}

fn gate_of(text: &str) -> Value {
    match text.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": text}),
    }
}

//! `kubectl gate approve` and `kubectl gate reject`

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use sluice_core::gatekeeper::approval;
use sluice_core::offline::lint;
use sluice_core::offline::simulate::Key;
use sluice_core::revision::Revision;
use sluice_core::time::duration;
use sluice_core::verdict::question::Question;
use sluice_crds::approval::{ApprovalSpec, LocalReference, Vote as Decision};
use sluice_crds::gatekeeper::ApprovalRule;
use sluice_crds::{Approval, Gate, Gatekeeper};

use crate::arguments::{self, Globals, gate_name, gatekeeper_name};
use crate::cluster::{self, Cannot, Connection, Scope, Use, User};
use crate::explain;
use crate::outcome::Outcome;
use crate::output::{self, say};

mod promotion;
mod waiting;

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 the vote is written; 2 it cannot be written.")]
pub(crate) struct Vote {
    /// The gate whose gatekeeper needs approvals; or gatekeeper/NAME, if several gatekeepers of the
    /// gate need them
    #[arg(
        value_name = "NAME",
        required_unless_present = "pipeline",
        conflicts_with = "pipeline"
    )]
    name: Option<String>,

    /// Vote on a promotion of this pipeline, for the run and the revision that it waits with
    #[arg(long, value_name = "NAME", group = "waiting")]
    pipeline: Option<String>,

    /// The environment of the pipeline, or of the promotion strategy [default: the only one that waits]
    #[arg(long, short = 'e', value_name = "NAME", requires = "waiting")]
    environment: Option<String>,

    /// The revision as Flux writes it, with the commit in full: main@sha1:…
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = arguments::revision, required_unless_present_any = ["revision_of", "pipeline"])]
    revision: Option<Revision>,

    /// What waits, as gatedsource/app or promotionstrategy/shop: the vote is about the revision that its
    /// gates hold back
    #[arg(
        long,
        value_name = "KIND/NAME",
        group = "waiting",
        conflicts_with_all = ["revision", "pipeline"]
    )]
    revision_of: Option<String>,

    /// Why you vote so: everybody who looks at the approval sees it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A gatekeeper that asks for approvals.
struct Asking {
    key: Key,
    rule: ApprovalRule,
}

impl Vote {
    pub(super) async fn run(&self, globals: &Globals, decision: Decision) -> Result<Outcome> {
        if self.reason.as_ref().is_some_and(|it| it.trim().is_empty()) {
            bail!("--reason: it is empty; say why, or leave it out");
        }
        if let Some(pipeline) = &self.pipeline {
            return self.on_promotion(globals, decision, pipeline).await;
        }
        let connection = cluster::connect(globals, Use::Requests).await?;
        let asking = self.asking(&connection).await?;
        let revision = self.revision(&connection).await?;
        let user = connection.who().await?;
        let approval = self.approval(&asking, &revision, decision, &user)?;
        let api: Api<Approval> = connection.api(Some(&asking.key.namespace));
        let now = connection.present().await.there;
        let name = &asking.key.name;
        let known = already(&api, &approval, &asking.rule, now).await;
        create(&api, &approval, known, (name, &format!("at {name}"))).await?;
        if self.revision.is_none() {
            say!("it is about {revision}")?;
        }
        tell(&connection, &asking, &revision).await
    }

    /// The one gatekeeper whose votes these are.
    async fn asking(&self, connection: &Connection) -> Result<Asking> {
        let given = self.name.as_deref().context("no gate is named")?;
        if let Some(name) = gatekeeper_name(given) {
            let key = connection.key(name);
            let rule = rule(connection, &key).await?;
            let rule = rule.ok_or_else(|| {
                anyhow!("the gatekeeper {name} asks for no approvals: it is of another kind")
            })?;
            return Ok(Asking { key, rule });
        }
        let name = gate_name(given)?;
        let gate: Gate = cluster::read(&connection.here(), &name).await?;
        let mut asking = Vec::new();
        for reference in &gate.spec.gatekeepers {
            let key = Key::named_by(&gate, reference);
            if let Some(rule) = rule(connection, &key).await? {
                asking.push(Asking { key, rule });
            }
        }
        let names: Vec<&str> = asking.iter().map(|it| it.key.name.as_str()).collect();
        match names.as_slice() {
            [] => bail!(
                "no gatekeeper of the gate {name} asks for approvals; name one that does: gatekeeper/NAME"
            ),
            [_] => asking.pop().context("there is one"),
            several => bail!(
                "several gatekeepers of the gate {name} ask for approvals; choose one: gatekeeper/{}",
                several.join(", gatekeeper/")
            ),
        }
    }

    /// The Approval to create.
    fn approval(
        &self,
        asking: &Asking,
        revision: &Revision,
        decision: Decision,
        user: &User,
    ) -> Result<Approval> {
        let wanted = &asking.rule.groups;
        let is_in = |group: &&String| user.groups.contains(group);
        let groups: Vec<String> = wanted.iter().filter(is_in).cloned().collect();
        if decision == Decision::Approve && !wanted.is_empty() && groups.is_empty() {
            bail!(
                "your approval would not count: {} wants a member of {}, and the API server has you in {}",
                asking.key.name,
                wanted.join(" or "),
                user.groups.join(", ")
            );
        }
        if decision == Decision::Approve && approval::is_nobody(&user.name, &groups) {
            bail!(
                "your approval would not count: {} is a ServiceAccount, which is not a person; {} would have to name a group of it in spec.approval.groups, such as system:serviceaccounts",
                user.name,
                asking.key.name
            );
        }
        let spec = ApprovalSpec {
            gatekeeper_ref: Some(LocalReference {
                name: asking.key.name.clone(),
            }),
            pipeline_ref: None,
            revision: revision.to_string(),
            decision,
            by: user.name.clone(),
            groups,
            reason: self.reason(),
        };
        checked(spec, &asking.key)
    }

    fn reason(&self) -> Option<String> {
        self.reason.as_deref().map(|text| text.trim().to_owned())
    }
}

/// The Approval to create, about what has this name.
///
/// # Errors
/// Why the API server would refuse it.
fn checked(spec: ApprovalSpec, about: &Key) -> Result<Approval> {
    let mut approval = Approval::new("", spec);
    approval.metadata.name = None;
    approval.metadata.generate_name = Some(format!("{}-", about.name));
    approval.metadata.namespace = Some(about.namespace.clone());
    match lint::read(&json!(approval)).mistakes.into_iter().next() {
        Some(mistake) => bail!("{mistake}"),
        None => Ok(approval),
    }
}

/// Creates an Approval, unless there is one that says the same: `known`. Both what it is about and where
/// that is are for messages.
async fn create(
    api: &Api<Approval>,
    approval: &Approval,
    known: Option<String>,
    (about, place): (&str, &str),
) -> Result<()> {
    if let Some(known) = known {
        return say!("{about}: you have said so already (approval/{known})");
    }
    let verb = match approval.spec.decision {
        Decision::Approve => "approve of",
        Decision::Reject => "reject",
    };
    let created = api.create(&cluster::post(), approval).await;
    let revision = &approval.spec.revision;
    let created = created.cannot(format_args!("{verb} {revision} {place}"))?;
    say!("approval.sluice.dev/{} created", created.name_any())
}

/// The name of a vote that says the same and has not spent half of its time. Somebody who may not see
/// votes casts another.
async fn already(
    api: &Api<Approval>,
    approval: &Approval,
    rule: &ApprovalRule,
    now: Timestamp,
) -> Option<String> {
    let half = duration::parse(&rule.valid_for).ok()? / 2;
    let spec = &approval.spec;
    let revision = Revision::parse(&spec.revision).ok()?;
    let says_the_same = |known: &&Approval| {
        let created = known.metadata.creation_timestamp.as_ref();
        let fresh = created.is_some_and(|at| now.duration_since(at.0) < half);
        (fresh || spec.decision == Decision::Reject)
            && known.metadata.deletion_timestamp.is_none()
            && known.spec.gatekeeper_ref == spec.gatekeeper_ref
            && (&known.spec.by, known.spec.decision) == (&spec.by, spec.decision)
            && known.spec.groups == spec.groups
            && Revision::parse(&known.spec.revision).is_ok_and(|about| about.is(&revision))
    };
    let all = api.list(&ListParams::default()).await.ok()?;
    let known = all.items.iter().find(says_the_same);
    known.map(ResourceExt::name_any)
}

/// What the gates say with all votes.
async fn tell(connection: &Connection, asking: &Asking, revision: &Revision) -> Result<Outcome> {
    let gates = cluster::load(connection, &Scope::all(false), false).await;
    // Users who may vote may lack the right to see gates.
    let Ok(seen) = gates else {
        return Ok(Outcome::Yes);
    };
    let now = connection.present().await.now;
    let question = Question::new(now, Some(revision));
    let keeps = |gate: &Gate| {
        let mut named = gate.spec.gatekeepers.iter();
        named.any(|reference| Key::named_by(gate, reference) == asking.key)
    };
    for (key, _) in seen.world.gates.iter().filter(|(_, gate)| keeps(gate)) {
        let Some(mut scene) = seen.scene(key, now.at) else {
            continue;
        };
        let decision = seen.decide(&mut scene, question);
        output::line(explain::line(&decision))?;
    }
    Ok(Outcome::Yes)
}

/// How a gatekeeper asks for approvals. None: it does not, or is not there.
async fn rule(connection: &Connection, key: &Key) -> Result<Option<ApprovalRule>> {
    let found: Option<Gatekeeper> = cluster::find(connection, key).await?;
    Ok(found.and_then(|keeper| Some(*keeper.spec.approval?)))
}

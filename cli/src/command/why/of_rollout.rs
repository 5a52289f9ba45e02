//! Why a batch of a rollout waits, or goes out, in words.
//!
//! What comes in: a rollout with its workloads, and the gates of its batches. What goes out: a tree: the
//! workloads and the batches, with what is known of each; and what the gates say, here and now, of the batch
//! that is next.

use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::rollout::view::{Batch, Member};
use sluice_core::delivery::rollout::{KIND, View};
use sluice_core::revision::{Revision, short};
use sluice_core::verdict::question::Question;
use sluice_crds::Rollout;
use sluice_crds::rollout::{BatchDecision, HookRecord, MetricRecord, PastRun};

use super::asked::Asked;
use crate::cluster::Seen;
use crate::explain::{self, Branch};
use crate::instant::{Zone, length};
use crate::output::count;

/// A rollout, and what the gates say of its next batch.
pub(super) struct Told {
    view: View,
    asked: Option<Asked<usize>>,
    /// Whether the gates were asked without a revision, which the controller knows and this does not.
    is_unnamed: bool,
}

impl Told {
    /// Asks the gates of the first batch that is not out. Of a run that is over none is.
    pub(super) fn new(
        seen: &Seen,
        (object, view): (&Rollout, View),
        revision: Option<&Revision>,
        now: Now,
    ) -> Self {
        let own = view.revision.as_deref();
        let own = own.and_then(|text| Revision::parse(text).ok());
        let question = Question::new(now, revision.or(own.as_ref()));
        let next = view.next().filter(|_| view.ended().is_none());
        let asked = next.map(|next| {
            let decision = seen.ask_batch(object, next.batch, question);
            Asked::new(seen, next.batch, decision, question)
        });
        let is_unnamed = asked.is_some() && revision.is_none() && own.is_none();
        Self {
            view,
            asked,
            is_unnamed,
        }
    }

    /// For people.
    pub(super) fn text(&self, zone: &Zone) -> String {
        let mut text = format!("{}\n", self.headline());
        text += &explain::branches(&self.branches(zone));
        let Some(asked) = &self.asked else {
            return text;
        };
        text + &asked.text(&self.view.called(asked.of), zone)
    }

    /// For programs.
    pub(super) fn data(&self) -> Value {
        let asked = self.asked.as_ref();
        json!({
            "kind": KIND, "rollout": self.view, "batch": asked.map(|asked| asked.of),
            "decision": asked.and_then(|asked| asked.decision.as_ref()),
            "gates": asked.map(Asked::entries).unwrap_or_default(),
        })
    }

    fn headline(&self) -> String {
        let View {
            namespace,
            name,
            revision,
            state,
            held,
            outcome,
            message,
            ..
        } = &self.view;
        let revision = revision.as_deref().map(short);
        let what = revision.unwrap_or_else(|| "a new version".to_owned());
        let Some(state) = state else {
            return format!("{KIND} {namespace}/{name}: no controller has looked at it yet");
        };
        let held = held.as_ref().map(|it| &it.message);
        let said = held.or(outcome.as_ref().map(|it| &it.message));
        let said = said.or(message.as_ref());
        let said = said.map(|said| format!(": {said}"));
        format!(
            "{KIND} {namespace}/{name}: {what} is {}{}",
            state.as_str(),
            said.unwrap_or_default()
        )
    }

    fn branches(&self, zone: &Zone) -> Vec<Branch> {
        let view = &self.view;
        let mut all = vec![Branch::of(self.target())];
        all.extend(view.sources.iter().map(source).map(Branch::of));
        all.extend(view.batches.iter().map(|it| batch(view, it, zone)));
        let said = [self.held(zone), self.deadline(zone), view.trouble.clone()];
        all.extend(said.into_iter().flatten().map(Branch::of));
        if view.outdated && view.state.is_some() {
            let line = "another spec or run is asked for, and not looked at yet";
            all.push(Branch::of(line.to_owned()));
        }
        let past = view.history.iter().map(|run| past(run, zone));
        all.extend(past.map(Branch::of));
        if self.is_unnamed {
            let line = "no revision is known before the first run: its gates are asked without one here, see --revision";
            all.push(Branch::of(line.to_owned()));
        }
        all
    }

    fn target(&self) -> String {
        let View {
            target,
            size,
            updated,
            ready,
            ..
        } = &self.view;
        let name = format!("target {} {}", target.kind, target.name);
        match (updated, size, ready) {
            (Some(updated), Some(size), Some(ready)) => format!(
                "{name}: {updated} of {size} pods have the new version, {ready} of them are available"
            ),
            (Some(updated), Some(size), None) => {
                format!("{name}: {updated} of {size} pods have the new version")
            }
            (None, ..) | (_, None, _) => name,
        }
    }

    fn held(&self, zone: &Zone) -> Option<String> {
        let held = self.view.held.as_ref()?;
        let by = held.by.as_ref().map(|by| format!(" by {by}"));
        Some(format!(
            "held{} since {} ({}); its deadline stands still",
            by.unwrap_or_default(),
            zone.text(held.since.0),
            held.reason
        ))
    }

    fn deadline(&self, zone: &Zone) -> Option<String> {
        let at = self.view.deadline.as_ref();
        let at = at.filter(|_| self.view.held.is_none())?;
        let at = zone.text(at.0);
        Some(format!("it fails {at}, unless there is progress before"))
    }
}

/// `1 pod`, `2 pods`.
fn of_pods(pods: u32) -> String {
    count(usize::try_from(pods).unwrap_or(usize::MAX), "pod")
}

fn source(source: &Member) -> String {
    let name = format!("source {} {}", source.kind, source.name);
    match (source.pods, source.was) {
        (Some(pods), Some(was)) => format!("{name}: {pods} of {was} pods are left"),
        (Some(pods), None) => format!("{name}: {}", of_pods(pods)),
        (None, Some(was)) => format!("{name}: it had {}", of_pods(was.unsigned_abs())),
        (None, None) => name,
    }
}

/// A batch with everything that is known of it.
fn batch(view: &View, batch: &Batch, zone: &Zone) -> Branch {
    let size = match (batch.pods, &batch.replicas) {
        (Some(pods), _) => of_pods(pods),
        (None, Some(replicas)) => replicas.clone(),
        (None, None) => "the rest".to_owned(),
    };
    let goal = batch.goal.map(|goal| format!(", up to {goal}"));
    let mut lines = vec![format!(
        "{} is {}: {size}{}",
        view.called(batch.batch),
        batch.phase.as_str(),
        goal.unwrap_or_default()
    )];
    lines.extend(batch.decision.as_ref().map(|it| let_out(it, zone)));
    lines.extend(took(batch));
    lines.extend(
        batch
            .last
            .map(|last| format!("lastBatchToRollout is {last}")),
    );
    let hooks = batch.hooks.iter().map(hook);
    let metrics = batch.metrics.iter().map(|it| metric(it, zone));
    Branch {
        lines,
        inside: hooks.chain(metrics).map(Branch::of).collect(),
    }
}

fn let_out(decision: &BatchDecision, zone: &Zone) -> String {
    format!("let out {}: {}", zone.text(decision.at.0), decision.message)
}

fn took(batch: &Batch) -> Option<String> {
    let part = |word: &str, seconds: Option<i64>| {
        let seconds = seconds.filter(|it| *it > 0)?;
        Some(format!("{word} {}", length(seconds)))
    };
    let parts = [part("waited", batch.waited), part("worked", batch.worked)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn hook(hook: &HookRecord) -> String {
    let said = match (hook.status, &hook.error) {
        (Some(status), _) => format!("answers {status}"),
        (None, Some(error)) => format!("does not answer: {error}"),
        (None, None) => "does not answer".to_owned(),
    };
    let again = if hook.done {
        ""
    } else {
        ", and is called again"
    };
    let (type_, name) = (hook.type_.as_str(), &hook.name);
    format!("hook {name} ({type_}) {said}{again}")
}

fn metric(metric: &MetricRecord, zone: &Zone) -> String {
    let value = metric.value.as_deref();
    let value = value.map_or("has no value".to_owned(), |it| format!("is {it}"));
    let since = metric.within_since.as_ref();
    let since = match since {
        Some(since) => format!(", in its range since {}", zone.text(since.0)),
        None => ", not in its range".to_owned(),
    };
    format!("metric {} {value}{since}", metric.name)
}

fn past(run: &PastRun, zone: &Zone) -> String {
    format!(
        "run of {} ended {} ({}): {}",
        short(&run.revision),
        zone.text(run.ended.0),
        run.state.as_str(),
        run.message
    )
}

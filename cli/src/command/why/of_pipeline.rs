//! Why a pipeline waits, or goes on, in words.
//!
//! What comes in: a pipeline with the gates of its environments. What goes out: a tree: each environment
//! with what is said of it; and what the gates say, here and now, of the promotion that is next.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::pipeline::{EnvironmentView, KIND, View, view};
use sluice_core::revision::Revision;
use sluice_core::verdict::question::Question;
use sluice_crds::Pipeline;
use sluice_crds::pipeline::EnvironmentState;

use super::asked::Asked;
use crate::cluster::Seen;
use crate::explain::{self, Branch};
use crate::instant::Zone;

/// A pipeline, and what the gates of one environment say.
pub(super) struct Told {
    view: View,
    /// The environment that is asked about.
    asked: Option<Asked<String>>,
}

impl Told {
    /// Asks the gates of this environment; of the one that the run has reached where none is named.
    ///
    /// # Errors
    /// There is no such environment.
    pub(super) fn new(
        seen: &Seen,
        object: &Pipeline,
        environment: Option<&str>,
        revision: Option<&Revision>,
        now: Now,
    ) -> Result<Self> {
        let view = view(object, &[]);
        let known = |name: &str| object.spec.environments.iter().find(|it| it.name == name);
        let reached = || {
            let run = view.run.as_ref()?;
            let waits = run.state != EnvironmentState::Passed;
            waits.then_some(run.environment.as_str())
        };
        let Some(name) = environment.or_else(reached) else {
            return Ok(Self { view, asked: None });
        };
        let Some(spec) = known(name) else {
            let names = view.environments.iter().map(|it| it.name.as_str());
            bail!(
                "{} has no environment `{name}`; write one of {}",
                view.name,
                names.collect::<Vec<_>>().join(", ")
            )
        };
        let run = view.run.as_ref();
        let own = run.and_then(|run| Revision::parse(&run.revision).ok());
        let revision = revision.or(own.as_ref());
        let question = Question::new(now, revision);
        let decision = seen.ask_promotion(object, spec, question);
        let asked = Asked::new(seen, name.to_owned(), decision, question);
        Ok(Self {
            asked: Some(asked),
            view,
        })
    }

    /// For people.
    pub(super) fn text(&self, zone: &Zone) -> String {
        let View {
            namespace,
            name,
            run,
            ..
        } = &self.view;
        let said = run.as_ref().map_or_else(
            || "it has had no run yet".to_owned(),
            |run| format!("{} is at {}: {}", run.short, run.environment, run.message),
        );
        let mut text = format!("{KIND} {namespace}/{name}: {said}\n");
        let troubles = self.view.troubles.iter().cloned().map(Branch::of);
        let environments = self.view.environments.iter().map(branch);
        let branches: Vec<Branch> = environments.chain(troubles).collect();
        text += &explain::branches(&branches);
        let Some(asked) = &self.asked else {
            return text;
        };
        let who = format!("a promotion to {}", asked.of);
        text + &asked.text(&who, zone)
    }

    /// For programs.
    pub(super) fn data(&self) -> Value {
        let asked = self.asked.as_ref();
        json!({
            "kind": KIND, "pipeline": self.view,
            "environment": asked.map(|asked| &asked.of),
            "decision": asked.and_then(|asked| asked.decision.as_ref()),
            "gates": asked.map(Asked::entries).unwrap_or_default(),
        })
    }
}

/// An environment, with what each target runs.
fn branch(environment: &EnvironmentView) -> Branch {
    let state = environment.state.map_or("not looked at", |it| it.as_str());
    let targets = environment.targets.iter().map(|target| {
        let name = sluice_core::delivery::pipeline::target_name(target);
        let runs = target
            .revision
            .as_deref()
            .unwrap_or("nothing that is known");
        let why = target.error.as_ref().map(|why| format!(": {why}"));
        Branch::of(format!("{name} runs {runs}{}", why.unwrap_or_default()))
    });
    Branch {
        lines: vec![format!("{state}: {}", environment.message)],
        inside: targets.collect(),
    }
}

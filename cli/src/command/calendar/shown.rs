//! What is drawn: the coming days of gates, of gated sources, and of environments of pipelines.
//!
//! What comes in: gates with everything that they are decided from, and which days. What goes out: a
//! picture of each; of a gated source or an environment one of all its gates and those of policies
//! together, and one of each of them.

use anyhow::{Result, bail};
use jiff::Timestamp;
use sluice_core::delivery::gated_source::{self, KIND};
use sluice_core::offline::simulate::{Key, Scene, Set, Stretches, together};
use sluice_core::revision::{Revision, short};
use sluice_core::time::span::Span;
use sluice_core::{Now, Question, Reason};
use sluice_crds::{GatedSource, Pipeline};

use crate::cluster::{Asked, Seen, key_of};
use crate::instant::Zone;
use crate::picture::Picture;

/// A picture, and what it is about.
pub(super) struct Shown {
    pub(super) key: Key,
    pub(super) what: What,
    pub(super) picture: Picture,
}

/// What a picture is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// One gate.
    Gate,
    /// A gated source, with all of its gates.
    Source,
    /// An environment of a pipeline, with all of its gates.
    Promotion(String),
}

impl What {
    pub(super) fn is_promotion(&self) -> bool {
        self.environment().is_some()
    }

    /// The environment, if it is about one.
    pub(super) fn environment(&self) -> Option<&str> {
        match self {
            What::Gate | What::Source => None,
            What::Promotion(environment) => Some(environment),
        }
    }
}

/// Which days, about which revision, and the instant to mark.
pub(super) struct Frame<'a> {
    /// None: that of each gate.
    pub(super) zone: Option<Zone>,
    pub(super) from: Timestamp,
    pub(super) now: Timestamp,
    pub(super) days: u16,
    /// None: any.
    pub(super) revision: Option<&'a Revision>,
}

impl Frame<'_> {
    /// The time of so many days in a zone.
    fn span(&self, zone: &Zone) -> Span {
        Span {
            start: self.from,
            end: Picture::end(self.from, self.days, zone),
        }
    }

    fn picture(&self, name: String, zone: Zone, stretches: Stretches) -> Picture {
        let about = self.revision.map(|it| short(&it.to_string()));
        let about = about.map(|revision| format!(" for {revision}"));
        Picture {
            name: name + &about.unwrap_or_default(),
            span: self.span(&zone),
            zone,
            now: self.now,
            stretches,
        }
    }
}

/// A picture of each gate.
pub(super) fn gates(scenes: Vec<(&Key, Scene)>, frame: &Frame<'_>) -> Vec<Shown> {
    let mut namespaces = scenes.iter().map(|(key, _)| &key.namespace);
    let first = namespaces.next();
    let several = namespaces.any(|other| Some(other) != first);
    let picture = |(key, mut scene): (&Key, Scene)| {
        let name = match several {
            true => key.to_string(),
            false => key.name.clone(),
        };
        let zone = frame.zone.clone().unwrap_or_else(|| Zone::of(&scene));
        let stretches = scene.stretches_about(frame.span(&zone), frame.revision);
        Shown {
            key: key.clone(),
            what: What::Gate,
            picture: frame.picture(name, zone, stretches),
        }
    };
    scenes.into_iter().map(picture).collect()
}

/// The pictures of a gated source: that of all its gates together is the first.
pub(super) fn source(seen: &Seen, source: &GatedSource, frame: &Frame<'_>) -> Vec<Shown> {
    let question = Question::new(Now::given(frame.now), frame.revision);
    let text = frame.revision.map(ToString::to_string);
    let subject = gated_source::subject(source, text.as_deref());
    let sets = seen.sets(&source.spec.gates, &subject, question);
    let own = Key::of(&source.metadata);
    let called = format!("{KIND} {own}");
    together_and_each(seen, &sets, (own, called, What::Source), frame)
}

/// The pictures of an environment of a pipeline: that of all its gates together is the first.
///
/// # Errors
/// No environment is named, or none of that name is there, or it has no gates.
pub(super) fn pipeline(
    seen: &Seen,
    object: &Pipeline,
    environment: Option<&str>,
    frame: &Frame<'_>,
) -> Result<Vec<Shown>> {
    let own = Key::of(&object.metadata);
    let environments = object.spec.environments.iter();
    let names: Vec<&str> = environments.skip(1).map(|it| it.name.as_str()).collect();
    let choose = || {
        let each = names
            .iter()
            .map(|name| format!("pipeline/{}/{name}", own.name));
        each.collect::<Vec<_>>().join(", ")
    };
    let Some(named) = environment else {
        bail!(
            "each environment of {own} has gates of its own; write one of {}",
            choose()
        )
    };
    let mut environments = object.spec.environments.iter();
    let Some(spec) = environments.find(|it| it.name == named) else {
        bail!(
            "{own} has no environment `{named}`; write one of {}",
            choose()
        )
    };
    let question = Question::new(Now::given(frame.now), frame.revision);
    let sets = seen.sets_of_promotion(object, spec, question);
    if sets.is_empty() {
        bail!("a promotion to {named} of {own} has to pass no gate; name another environment");
    }
    let called = format!("Pipeline {own} to {named}");
    let about = (own, called, What::Promotion(named.to_owned()));
    Ok(together_and_each(seen, &sets, about, frame))
}

/// A picture of all gates of these sets together, and one of each.
fn together_and_each(
    seen: &Seen,
    sets: &[Asked],
    (own, title, what): (Key, String, What),
    frame: &Frame<'_>,
) -> Vec<Shown> {
    let names = sets.iter().flat_map(|set| &set.gates);
    let keys = names.filter_map(|(name, _)| key_of(name));
    let scenes = keys.filter_map(|key| Some((key.to_string(), seen.scene(&key, frame.now)?)));
    let scenes: Vec<(String, Scene)> = scenes.collect();
    // The zone in which the windows of all gates are written.
    let shared = || Zone::shared(scenes.iter().flat_map(|(_, scene)| scene.time_zones()));
    let zone = frame.zone.clone().unwrap_or_else(shared);
    let span = frame.span(&zone);
    let stretches = |name: &String, unasked: &Option<(Reason, String)>| {
        let scene = scenes.iter().find(|(known, _)| known == name);
        match (unasked, scene) {
            (Some((reason, why)), _) => Stretches::closed(span, *reason, why),
            (None, Some((_, scene))) => scene.clone().stretches_about(span, frame.revision),
            (None, None) => Stretches::closed(span, Reason::GateMissing, "it went away"),
        }
    };
    let gates = |set: &Asked| {
        let gates = set.gates.iter();
        let gates = gates.map(|(name, unasked)| (name.clone(), stretches(name, unasked)));
        gates.collect::<Vec<_>>()
    };
    let asked: Vec<Vec<(String, Stretches)>> = sets.iter().map(gates).collect();
    let of_sets = sets.iter().zip(&asked).map(|(set, gates)| Set {
        require: set.require,
        gates: gates.iter().map(|(name, it)| (name.as_str(), it)).collect(),
    });
    let all = together(&of_sets.collect::<Vec<_>>(), span);
    let mut shown = vec![Shown {
        what,
        picture: frame.picture(title, zone.clone(), all),
        key: own.clone(),
    }];
    for (name, stretches) in asked.into_iter().flatten() {
        let (namespace, name) = name.split_once('/').unwrap_or(("", &name));
        let key = Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        // The source itself and a policy may ask for the same one.
        if shown
            .iter()
            .any(|known| known.what == What::Gate && known.key == key)
        {
            continue;
        }
        let called = match key.namespace == own.namespace {
            true => format!("Gate {name}"),
            false => format!("Gate {key}"),
        };
        shown.push(Shown {
            key,
            what: What::Gate,
            picture: frame.picture(called, zone.clone(), stretches),
        });
    }
    shown
}

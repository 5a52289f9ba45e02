//! What a spec asks for: which sources, what their children are called, and what is wrong with it.

use jiff::SignedDuration;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{Baseline, SourceKind, Strategy, Target, TargetedSource};
use sluice_crds::{Duration, GatedSource, GatedSourceSpec};

use crate::gatekeeper::gates;
use crate::revision::{REMEDY, Revision};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;

/// How often a pinned child is fetched again where the spec says nothing: a commit is cloned in full each
/// time, and a child that has lost its artifact is asked at once.
const INTERVAL: &str = "12h";
/// The shortest interval of a child.
const SHORTEST_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// The longest spread.
const LONGEST_SPREAD: SignedDuration = SignedDuration::from_hours(24);

/// A source that a spec names, and the child that it has made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The kind of the source.
    pub kind: SourceKind,
    /// Its name.
    pub name: String,
    /// The name of the child.
    pub target: String,
    /// What runs already.
    pub baseline: Option<Baseline>,
}

impl Wanted {
    /// The kind of the child.
    pub fn child(&self, strategy: Strategy) -> FluxKind {
        match strategy {
            Strategy::Pin | Strategy::Suspend => FluxKind::Source(self.kind),
            Strategy::Artifact => FluxKind::ExternalArtifact,
        }
    }

    /// What consumers name: the child, or the source itself where there is none.
    pub fn used(&self, strategy: Strategy) -> (FluxKind, &str) {
        let name = match strategy {
            Strategy::Pin | Strategy::Artifact => &self.target,
            Strategy::Suspend => &self.name,
        };
        (self.child(strategy), name)
    }
}

/// The sources that a spec names, in its order; none where it selects them by labels.
pub fn wanted(object: &GatedSource) -> Vec<Wanted> {
    let own = object.metadata.name.as_deref().unwrap_or_default();
    let spec = &object.spec;
    let named = |target: &Option<Target>, otherwise: String| {
        target
            .as_ref()
            .map_or(otherwise, |target| target.name.clone())
    };
    let one = spec.source_ref.iter().map(|source| Wanted {
        kind: source.kind,
        name: source.name.clone(),
        target: named(&spec.target, own.to_owned()),
        baseline: spec.baseline.clone(),
    });
    let several = spec.source_refs.iter().map(|source| Wanted {
        kind: source.kind,
        name: source.name.clone(),
        target: named(&source.target, format!("{own}-{}", source.name)),
        baseline: source.baseline.clone(),
    });
    one.chain(several).collect()
}

/// The durations of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How far sources are spread in time.
    pub spread: SignedDuration,
}

/// The interval of pinned children, as Flux reads it.
pub(super) fn interval(spec: &GatedSourceSpec) -> String {
    let given = spec.interval.as_ref();
    given.map_or_else(|| INTERVAL.to_owned(), duration::without_days)
}

/// Everything that is wrong with a GatedSource, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &GatedSource) -> Result<Times, Refusals> {
    let spec = &object.spec;
    let sources = wanted(object);
    let mut mistakes = Vec::from_iter(wrong_sources(spec));
    mistakes.extend(wrong_for_strategy(spec));
    for (place, source) in sources.iter().enumerate() {
        let kind = field(spec, place, "sourceRef.kind", "kind");
        mistakes.extend(wrong_kind(kind, source.kind, spec.strategy));
    }
    for place in 0..sources.len() {
        let target = field(spec, place, "target.name", "target.name");
        mistakes.extend(wrong_target(target, spec.strategy, &sources, place));
    }
    if let (Some(text), Some(source)) = (&spec.revision, &spec.source_ref) {
        mistakes.extend(wrong_revision(
            "spec.revision",
            text,
            source.kind,
            spec.strategy,
        ));
    }
    for (place, source) in sources.iter().enumerate() {
        let at = field(spec, place, "baseline", "baseline");
        let baseline = source.baseline.as_ref();
        mistakes.extend(baseline.and_then(|it| wrong_baseline(&at, it, source, spec.strategy)));
    }
    let gates = gates::check(&spec.gates, "spec.gates");
    mistakes.extend(gates.err().map(Refusals::into_vec).into_iter().flatten());
    let spread = read(spec.spread.as_ref(), "spec.spread", &mut mistakes);
    if spread > LONGEST_SPREAD {
        let problem = "it is longer than 24h";
        mistakes.push(Refusal::new("spec.spread", problem, "write at most 24h"));
    }
    if spec.interval.is_some()
        && read(spec.interval.as_ref(), "spec.interval", &mut mistakes) < SHORTEST_INTERVAL
    {
        let problem = "it is shorter than 1m";
        mistakes.push(Refusal::new("spec.interval", problem, "write at least 1m"));
    }
    Refusals::unless_empty(mistakes, Times { spread })
}

fn read(text: Option<&Duration>, field: &str, mistakes: &mut Vec<Refusal>) -> SignedDuration {
    match text.map(duration::parse) {
        None => SignedDuration::ZERO,
        Some(Ok(duration)) => duration,
        Some(Err(problem)) => {
            mistakes.push(Refusal::new(field, problem, duration::REMEDY));
            // One mistake is enough to say of it.
            SHORTEST_INTERVAL
        }
    }
}

/// Where a spec says something of the source at this place among those that it names: of `sourceRef`, or
/// of one of `sourceRefs`.
fn field(spec: &GatedSourceSpec, place: usize, of_one: &str, of_several: &str) -> String {
    match place.checked_sub(usize::from(spec.source_ref.is_some())) {
        None => format!("spec.{of_one}"),
        Some(place) => format!("spec.sourceRefs[{place}].{of_several}"),
    }
}

fn wrong_sources(spec: &GatedSourceSpec) -> Option<Refusal> {
    let ways = [
        spec.source_ref.is_some(),
        !spec.source_refs.is_empty(),
        spec.selector.is_some(),
    ];
    let problem = match ways.iter().filter(|is_given| **is_given).count() {
        1 => {
            let mut sources = spec.source_refs.iter().enumerate();
            return sources.find_map(|(place, source)| listed_twice(spec, place, source));
        }
        0 => "no source is named",
        _ => "sources are named in several ways",
    };
    let remedy = "write exactly one of sourceRef, sourceRefs and selector";
    Some(Refusal::new("spec.sourceRef", problem, remedy))
}

fn listed_twice(spec: &GatedSourceSpec, place: usize, source: &TargetedSource) -> Option<Refusal> {
    let is_it = |it: &TargetedSource| (it.kind, &it.name) == (source.kind, &source.name);
    spec.source_refs[..place].iter().any(is_it).then(|| {
        let field = format!("spec.sourceRefs[{place}]");
        let problem = format!("{} {} is listed twice", source.kind.as_str(), source.name);
        Refusal::new(field, problem, "list each source once")
    })
}

fn wrong_for_strategy(spec: &GatedSourceSpec) -> Vec<Refusal> {
    let suspends = spec.strategy == Strategy::Suspend;
    let is_alone = spec.source_ref.is_some() && !suspends;
    let alone = |is_given: bool, field| {
        let problem = "it belongs to sourceRef, and to the strategies pin and artifact";
        let remedy = "remove it; of sourceRefs each has a target and a baseline of its own";
        (is_given && !is_alone, field, problem, remedy)
    };
    let mut several = spec.source_refs.iter();
    let makes_children = several.any(|it| it.target.is_some() || it.baseline.is_some());
    let mistakes = [
        (
            spec.selector.is_some() && !suspends,
            "spec.selector",
            "only the strategy suspend selects sources",
            "name them with sourceRef or sourceRefs",
        ),
        alone(spec.target.is_some(), "spec.target"),
        alone(spec.revision.is_some(), "spec.revision"),
        alone(spec.baseline.is_some(), "spec.baseline"),
        (
            spec.interval.is_some() && spec.strategy != Strategy::Pin,
            "spec.interval",
            "it is that of pinned children",
            "remove it, or write strategy: pin",
        ),
        (
            suspends && makes_children,
            "spec.sourceRefs",
            "the strategy suspend makes no children",
            "remove target and baseline",
        ),
    ];
    let mistakes = mistakes.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    let refuse = |(_, field, problem, remedy)| Refusal::new(field, problem, remedy);
    mistakes.map(refuse).collect()
}

fn wrong_kind(field: String, kind: SourceKind, strategy: Strategy) -> Option<Refusal> {
    let (problem, remedy) = match (strategy, kind) {
        (Strategy::Pin, SourceKind::Bucket) => (
            "a Bucket keeps no earlier content that could be pinned",
            "write strategy: artifact",
        ),
        (Strategy::Pin | Strategy::Artifact, SourceKind::HelmRepository) => (
            "a HelmRepository is an index, not something to deploy",
            "gate the HelmCharts of it, which HelmReleases use by chartRef",
        ),
        (
            Strategy::Pin | Strategy::Artifact,
            SourceKind::GitRepository | SourceKind::OCIRepository | SourceKind::HelmChart,
        )
        | (Strategy::Artifact, SourceKind::Bucket)
        | (Strategy::Suspend, _) => return None,
    };
    Some(Refusal::new(field, problem, remedy))
}

fn wrong_target(
    field: String,
    strategy: Strategy,
    all: &[Wanted],
    place: usize,
) -> Option<Refusal> {
    let Wanted { kind, target, .. } = &all[place];
    let child = all[place].child(strategy);
    let is_source = |it: &Wanted| (it.kind, &it.name) == (*kind, target);
    let is_child = |it: &Wanted| (it.child(strategy), &it.target) == (child, target);
    let whose = if strategy == Strategy::Pin && all.iter().any(is_source) {
        "a source"
    } else if strategy != Strategy::Suspend && all[..place].iter().any(is_child) {
        "another child"
    } else {
        return None;
    };
    let problem = format!("the {} {target} is {whose}", child.as_str());
    Some(Refusal::new(field, problem, "write another name"))
}

/// What is wrong with a revision that a source of that kind has to be set to.
fn wrong_revision(
    field: &str,
    text: &str,
    kind: SourceKind,
    strategy: Strategy,
) -> Option<Refusal> {
    let revision = match Revision::parse(text) {
        Err(mistake) => return Some(Refusal::new(field, mistake.to_string(), REMEDY)),
        Ok(revision) => revision,
    };
    let has_digest_of = |is_right: fn(&str) -> bool| revision.digest().is_some_and(is_right);
    let (is_right, remedy) = match kind {
        SourceKind::GitRepository => (
            has_digest_of(|it| it.starts_with("sha1:") || it.starts_with("sha256:")),
            "write the commit in full, such as main@sha1:… or its forty digits",
        ),
        SourceKind::OCIRepository => (
            has_digest_of(|it| !it.starts_with("sha1:")),
            "write the digest in full, such as latest@sha256:… or sha256:…",
        ),
        SourceKind::HelmChart => (
            revision.version().is_some() && revision.digest().is_none(),
            "write the version in full, such as 6.7.1",
        ),
        SourceKind::Bucket | SourceKind::HelmRepository => (true, ""),
    };
    (!is_right && strategy != Strategy::Artifact).then(|| {
        let kind = kind.as_str();
        let problem = format!("`{revision}` says nothing that a {kind} can be pinned to");
        Refusal::new(field, problem, remedy)
    })
}

fn wrong_baseline(
    field: &str,
    baseline: &Baseline,
    source: &Wanted,
    strategy: Strategy,
) -> Option<Refusal> {
    match (&baseline.from, &baseline.revision) {
        (Some(_), None) => None,
        (None, Some(text)) => {
            wrong_revision(&format!("{field}.revision"), text, source.kind, strategy)
        }
        (None, None) | (Some(_), Some(_)) => Some(Refusal::new(
            field,
            "it says not exactly one thing",
            "write from, or revision, and not both",
        )),
    }
}

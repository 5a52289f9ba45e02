//! What a spec asks for: which sources, what their children are called, and what is wrong with it.

use jiff::SignedDuration;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{Baseline, SourceKind, Strategy, Target};
use sluice_crds::{Duration, GatedSource, GatedSourceSpec};

use crate::gatekeeper::gates;
use crate::revision::{REMEDY, Revision};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;

/// How often a pinned child is fetched anew where the spec says nothing: a commit is cloned in full
/// each time, and a child that has lost its artifact is asked at once.
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
    let named = |target: Option<&Target>, otherwise: String| {
        target.map_or(otherwise, |target| target.name.clone())
    };
    let one = spec.source_ref.iter().map(|source| Wanted {
        kind: source.kind,
        name: source.name.clone(),
        target: named(spec.target.as_ref(), own.to_owned()),
        baseline: spec.baseline.clone(),
    });
    let several = spec.source_refs.iter().map(|source| Wanted {
        kind: source.kind,
        name: source.name.clone(),
        target: named(source.target.as_ref(), format!("{own}-{}", source.name)),
        baseline: source.baseline.clone(),
    });
    one.chain(several).collect()
}

/// What the durations of a spec come to.
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
    let mut mistakes = Vec::new();
    mistakes.extend(wrong_sources(spec));
    mistakes.extend(wrong_for_strategy(spec));
    mistakes.extend(wrong_targets(object));
    mistakes.extend(wrong_revision(spec));
    for (field, kind, baseline) in baselines(spec) {
        mistakes.extend(wrong_baseline(&field, kind, spec.strategy, baseline));
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

fn wrong_sources(spec: &GatedSourceSpec) -> Option<Refusal> {
    let given = [
        spec.source_ref.is_some(),
        !spec.source_refs.is_empty(),
        spec.selector.is_some(),
    ];
    let count = given.iter().filter(|given| **given).count();
    let twice = spec.source_refs.iter().enumerate().find(|(place, one)| {
        let earlier = &spec.source_refs[..*place];
        earlier
            .iter()
            .any(|other| (other.kind, &other.name) == (one.kind, &one.name))
    });
    match (count, twice) {
        (1, None) => None,
        (1, Some((place, source))) => Some(Refusal::new(
            format!("spec.sourceRefs[{place}]"),
            format!("{} {} is listed twice", source.kind.as_str(), source.name),
            "list each source once",
        )),
        (0, _) => Some(Refusal::new(
            "spec.sourceRef",
            "no source is named",
            "write exactly one of sourceRef, sourceRefs and selector",
        )),
        _ => Some(Refusal::new(
            "spec.sourceRef",
            "sources are named in several ways",
            "write exactly one of sourceRef, sourceRefs and selector",
        )),
    }
}

fn wrong_for_strategy(spec: &GatedSourceSpec) -> Vec<Refusal> {
    let mut mistakes = Vec::new();
    let mut wrong = |holds: bool, field: &str, problem: &str, remedy: &str| {
        if holds {
            mistakes.push(Refusal::new(field, problem, remedy));
        }
    };
    let suspends = spec.strategy == Strategy::Suspend;
    let one = spec.source_ref.is_some() && !suspends;
    wrong(
        spec.selector.is_some() && !suspends,
        "spec.selector",
        "only the strategy suspend selects sources",
        "name them with sourceRef or sourceRefs",
    );
    let alone = [
        (spec.target.is_some(), "spec.target"),
        (spec.revision.is_some(), "spec.revision"),
        (spec.baseline.is_some(), "spec.baseline"),
    ];
    for (given, field) in alone {
        wrong(
            given && !one,
            field,
            "it belongs to sourceRef, and to the strategies pin and artifact",
            "remove it; of sourceRefs each has a target and a baseline of its own",
        );
    }
    wrong(
        spec.interval.is_some() && spec.strategy != Strategy::Pin,
        "spec.interval",
        "it is that of pinned children",
        "remove it, or write strategy: pin",
    );
    let untargeted = |suspends: bool| {
        let mut sources = spec.source_refs.iter();
        suspends && sources.any(|source| source.target.is_some() || source.baseline.is_some())
    };
    wrong(
        untargeted(suspends),
        "spec.sourceRefs",
        "the strategy suspend makes no children",
        "remove target and baseline",
    );
    for (field, kind) in kinds(spec) {
        mistakes.extend(wrong_kind(field, kind, spec.strategy));
    }
    mistakes
}

fn kinds(spec: &GatedSourceSpec) -> Vec<(String, SourceKind)> {
    let one = spec.source_ref.iter();
    let one = one.map(|source| ("spec.sourceRef.kind".to_owned(), source.kind));
    let several = spec.source_refs.iter().enumerate();
    let several = several.map(|(n, source)| (format!("spec.sourceRefs[{n}].kind"), source.kind));
    one.chain(several).collect()
}

fn wrong_kind(field: String, kind: SourceKind, strategy: Strategy) -> Option<Refusal> {
    match (strategy, kind) {
        (Strategy::Pin, SourceKind::Bucket) => Some(Refusal::new(
            field,
            "a Bucket keeps no earlier content that could be pinned",
            "write strategy: artifact",
        )),
        (Strategy::Pin | Strategy::Artifact, SourceKind::HelmRepository) => Some(Refusal::new(
            field,
            "a HelmRepository is an index, not something to deploy",
            "gate the HelmCharts of it, which HelmReleases use by chartRef",
        )),
        (
            Strategy::Pin | Strategy::Artifact,
            SourceKind::GitRepository | SourceKind::OCIRepository | SourceKind::HelmChart,
        )
        | (Strategy::Artifact, SourceKind::Bucket)
        | (Strategy::Suspend, _) => None,
    }
}

fn wrong_targets(object: &GatedSource) -> Vec<Refusal> {
    let strategy = object.spec.strategy;
    if strategy == Strategy::Suspend {
        return Vec::new();
    }
    let all = wanted(object);
    let mut mistakes = Vec::new();
    for (place, source) in all.iter().enumerate() {
        let field = match &object.spec.source_ref {
            Some(_) => "spec.target.name".to_owned(),
            None => format!("spec.sourceRefs[{place}].target.name"),
        };
        let child = (source.child(strategy), &source.target);
        let is_source = strategy == Strategy::Pin
            && all
                .iter()
                .any(|other| (other.kind, &other.name) == (source.kind, &source.target));
        let is_another =
            (all[..place].iter()).any(|other| (other.child(strategy), &other.target) == child);
        if is_source || is_another {
            let whose = if is_source {
                "a source"
            } else {
                "another child"
            };
            let kind = child.0.as_str();
            mistakes.push(Refusal::new(
                field,
                format!("the {kind} {} is {whose}", source.target),
                "write another name",
            ));
        }
    }
    mistakes
}

fn wrong_revision(spec: &GatedSourceSpec) -> Option<Refusal> {
    let text = spec.revision.as_deref()?;
    let kind = spec.source_ref.as_ref()?.kind;
    match Revision::parse(text) {
        Err(mistake) => Some(Refusal::new("spec.revision", mistake.to_string(), REMEDY)),
        Ok(revision) => wrong_form("spec.revision", kind, spec.strategy, &revision),
    }
}

/// Whether a source of that kind can be brought to a revision that is written like this.
fn wrong_form(
    field: &str,
    kind: SourceKind,
    strategy: Strategy,
    revision: &Revision,
) -> Option<Refusal> {
    if strategy == Strategy::Artifact {
        return None;
    }
    let (holds, remedy) = match kind {
        SourceKind::GitRepository => (
            revision
                .digest()
                .is_some_and(|digest| digest.starts_with("sha1:") || digest.starts_with("sha256:")),
            "write the commit in full, such as main@sha1:… or its forty digits",
        ),
        SourceKind::OCIRepository => (
            revision
                .digest()
                .is_some_and(|digest| !digest.starts_with("sha1:")),
            "write the digest in full, such as latest@sha256:… or sha256:…",
        ),
        SourceKind::HelmChart => (
            revision.version().is_some() && revision.digest().is_none(),
            "write the version in full, such as 6.7.1",
        ),
        SourceKind::Bucket | SourceKind::HelmRepository => (true, ""),
    };
    let problem = || {
        format!(
            "`{revision}` says nothing that a {} can be pinned to",
            kind.as_str()
        )
    };
    (!holds).then(|| Refusal::new(field, problem(), remedy))
}

fn baselines(spec: &GatedSourceSpec) -> Vec<(String, SourceKind, &Baseline)> {
    let one = spec.source_ref.iter().zip(&spec.baseline);
    let one = one.map(|(source, baseline)| ("spec.baseline".to_owned(), source.kind, baseline));
    let several = spec.source_refs.iter().enumerate();
    let several = several.filter_map(|(place, source)| {
        let field = format!("spec.sourceRefs[{place}].baseline");
        Some((field, source.kind, source.baseline.as_ref()?))
    });
    one.chain(several).collect()
}

fn wrong_baseline(
    field: &str,
    kind: SourceKind,
    strategy: Strategy,
    baseline: &Baseline,
) -> Option<Refusal> {
    match (&baseline.from, &baseline.revision) {
        (Some(_), None) => None,
        (None, Some(text)) => {
            let field = format!("{field}.revision");
            match Revision::parse(text) {
                Err(mistake) => Some(Refusal::new(field, mistake.to_string(), REMEDY)),
                Ok(revision) => wrong_form(&field, kind, strategy, &revision),
            }
        }
        (None, None) | (Some(_), Some(_)) => Some(Refusal::new(
            field,
            "it says not exactly one thing",
            "write from, or revision, and not both",
        )),
    }
}

//! What has to be written so that an app continues to run, behind gates.
//!
//! What comes in: the wish, the object that applies the app, and everything around them. What goes out:
//! a [`Plan`], or why there is none. No I/O.

use anyhow::{Result, bail};
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use sluice_core::delivery::gated_source;
use sluice_core::flux::content::unpinnable;
use sluice_core::offline::lint;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{SourceKind, SourceReference, Strategy, Target};
use sluice_crds::{Duration, GateSet, GatedSource, GatedSourceSpec};

use super::used::{How, Used, baseline};
use crate::cluster::{self, Consumer};

/// What somebody wants.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) gates: GateSet,
    pub(super) spread: Option<Duration>,
    /// The name of the GatedSource, where it is given.
    pub(super) name: Option<String>,
    /// The name of its child, where it is given.
    pub(super) target: Option<String>,
    /// Whether all who use the source are to go over.
    pub(super) all_consumers: bool,
}

/// What there is.
#[derive(Clone, Debug)]
pub(super) struct Around {
    /// The object that applies the app.
    pub(super) consumer: Consumer,
    /// The source that it uses. None: there is none of that name.
    pub(super) upstream: Option<FluxObject>,
    /// Everybody who uses anything.
    pub(super) consumers: Vec<Consumer>,
    /// The GatedSources of the namespace.
    pub(super) sources: Vec<GatedSource>,
}

/// What to write, in this order.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// A HelmChart of one's own: that of Flux goes with `spec.chart` of the HelmRelease.
    pub(super) chart: Option<Value>,
    /// The GatedSource.
    pub(super) source: GatedSource,
    /// Whether it is there already.
    pub(super) exists: bool,
    /// Its child.
    pub(super) child: (FluxKind, String),
    /// Who goes over to the child.
    pub(super) switches: Vec<Switch>,
    /// The objects that continue to use the source itself, and so bypass the gates.
    pub(super) bypassing: Vec<String>,
    /// What else there is to say.
    pub(super) notes: Vec<String>,
}

/// Somebody who goes over to the child.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub(super) consumer: Consumer,
    /// What changes of it, as a JSON merge patch.
    pub(super) patch: Value,
    /// Who would revert the change, because they apply the object from elsewhere.
    pub(super) managed_by: Option<String>,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub(super) enum Attempt {
    /// This has to be written.
    Plan(Box<Plan>),
    /// The app is behind gates already: those of this GatedSource.
    Adopted(String),
}

/// What has to be written.
///
/// # Errors
/// Why it cannot be done, and what can.
pub(super) fn plan(wish: &Wish, around: &Around) -> Result<Attempt> {
    let Around {
        consumer,
        upstream,
        consumers,
        sources,
    } = around;
    let who = consumer.called();
    let used = Used::by(consumer)?;
    let own = consumer.key().namespace;
    if used.namespace != own {
        bail!(
            "{who} uses {} of another namespace, and a gated source gates sources of its own \
             namespace alone; move the source to {own}, or the {} to {}",
            used.called(),
            consumer.kind.as_str(),
            used.namespace
        );
    }
    let Some(upstream) = upstream else {
        bail!("{who} uses {}, which is not there", used.called());
    };
    if let Some(source) = cluster::parent(upstream) {
        return Ok(Attempt::Adopted(source.to_owned()));
    }
    let (kind, strategy) = gated(&used, &who)?;
    if let Some(why) = unpinnable(kind, &upstream.spec).filter(|_| strategy == Strategy::Pin) {
        bail!("{who} uses {}, which {why}", used.called());
    }
    in_a_registry(&used, upstream, &who)?;
    let known = find(wish, &used, kind, consumer, sources);
    let name = match (known, &wish.name) {
        (Some(known), _) => known.name_any(),
        (None, Some(name)) => name.clone(),
        (None, None) => consumer.key().name,
    };
    let source_ref = SourceReference {
        kind,
        name: match used.how {
            How::Chart(_) => name.clone(),
            How::Source | How::ChartRef | How::ChartIn => used.name.clone(),
        },
    };
    let target = known
        .and_then(target_of)
        .or_else(|| wish.target.clone())
        .unwrap_or_else(|| format!("{name}-gated"));
    let child = match strategy {
        Strategy::Artifact => (FluxKind::ExternalArtifact, target.clone()),
        Strategy::Pin | Strategy::Suspend => (FluxKind::Source(kind), target.clone()),
    };
    if child == (FluxKind::Source(kind), source_ref.name.clone()) {
        bail!("--target: {target} is the name of the source itself; choose another");
    }
    let chart = match &used.how {
        How::Chart(spec) => Some(own_chart(consumer, spec, &name)),
        How::Source | How::ChartRef | How::ChartIn => None,
    };
    let users = consumers.iter().filter(|it| uses(it, consumer, &used));
    let (going, bypassing): (Vec<&Consumer>, Vec<&Consumer>) =
        users.partition(|it| it.is(consumer) || wish.all_consumers);
    let switches = going.into_iter().map(|it| switch(it, &child));
    let switches = switches.collect::<Result<Vec<_>>>()?;
    let (baseline, notes) = baseline(consumer, &used, upstream, kind);
    let mut source = GatedSource::new(
        &name,
        GatedSourceSpec {
            source_ref: Some(source_ref),
            source_refs: Vec::new(),
            selector: None,
            strategy,
            gates: wish.gates.clone(),
            target: Some(Target { name: target }),
            revision: None,
            baseline,
            spread: wish.spread.clone(),
            interval: None,
            deletion_policy: Default::default(),
            suspend: false,
        },
    );
    source.metadata.namespace = Some(own);
    if known.is_none() && sources.iter().any(|it| it.name_any() == name) {
        bail!(
            "there is a GatedSource {name} that gates something else, or with other gates; choose \
             another name with --name"
        );
    }
    if known.is_none() {
        check(&source)?;
    }
    Ok(Attempt::Plan(Box::new(Plan {
        chart,
        exists: known.is_some(),
        source: known.cloned().unwrap_or(source),
        child,
        switches,
        bypassing: bypassing.into_iter().map(Consumer::called).collect(),
        notes,
    })))
}

/// What is gated, and how.
fn gated(used: &Used, who: &str) -> Result<(SourceKind, Strategy)> {
    match (used.kind, &used.how) {
        (FluxKind::Source(SourceKind::HelmRepository), How::Chart(_)) => {
            Ok((SourceKind::HelmChart, Strategy::Pin))
        }
        (FluxKind::Source(SourceKind::Bucket), How::Source) => {
            Ok((SourceKind::Bucket, Strategy::Artifact))
        }
        (
            FluxKind::Source(
                kind @ (SourceKind::GitRepository
                | SourceKind::OCIRepository
                | SourceKind::HelmChart),
            ),
            How::Source | How::ChartRef | How::ChartIn,
        ) => Ok((kind, Strategy::Pin)),
        (FluxKind::Source(SourceKind::Bucket), _) => bail!(
            "{who} takes its chart from {}, and a chart cannot be read from an ExternalArtifact \
             that way; put the chart into a Git or Helm repository, or into a registry",
            used.called()
        ),
        (FluxKind::ExternalArtifact, _) => bail!(
            "{who} uses {}, which another controller serves; gate the source that it is made of",
            used.called()
        ),
        _ => bail!("{who} uses {}, which cannot be gated", used.called()),
    }
}

/// A HelmRepository of the type oci stands for a registry, where a version is a tag that may move.
///
/// # Errors
/// It is one.
fn in_a_registry(used: &Used, upstream: &FluxObject, who: &str) -> Result<()> {
    let text = |field: &str| upstream.spec.get(field).and_then(Value::as_str);
    let How::Chart(spec) = &used.how else {
        return Ok(());
    };
    if text("type") != Some("oci") {
        return Ok(());
    }
    let field = |name: &str| spec.get(name).and_then(Value::as_str).unwrap_or_default();
    let (chart, url) = (field("chart"), text("url").unwrap_or_default());
    let reference = match field("version") {
        "" => "ref: {semver: \"*\"}".to_owned(),
        version => format!("ref: {{semver: \"{version}\"}}"),
    };
    bail!(
        "{who} takes its chart from {}, which is of type oci: there a version is a tag that may \
         move, and an OCIRepository is pinned by digest. Write an OCIRepository with `url: {}/{chart}` \
         and `{reference}`, let the HelmRelease name it by chartRef in place of chart, and adopt it \
         again",
        used.called(),
        url.trim_end_matches('/')
    )
}

/// The GatedSource that does already what is wanted.
fn find<'a>(
    wish: &Wish,
    used: &Used,
    kind: SourceKind,
    consumer: &Consumer,
    sources: &'a [GatedSource],
) -> Option<&'a GatedSource> {
    let upstream = match used.how {
        How::Chart(_) => wish.name.clone().unwrap_or_else(|| consumer.key().name),
        How::Source | How::ChartRef | How::ChartIn => used.name.clone(),
    };
    sources.iter().find(|known| {
        let of = known.spec.source_ref.as_ref();
        let named = wish.name.is_none() || wish.name == known.metadata.name;
        let aimed = wish.target.is_none() || wish.target == target_of(known);
        named
            && aimed
            && of.is_some_and(|of| (of.kind, &of.name) == (kind, &upstream))
            && known.spec.strategy != Strategy::Suspend
            && known.spec.gates == wish.gates
            && known.spec.spread == wish.spread
    })
}

/// What the child of a GatedSource of one source is called, written in its spec or not.
fn target_of(source: &GatedSource) -> Option<String> {
    let wanted = gated_source::wanted(source).into_iter().next();
    wanted.map(|wanted| wanted.target)
}

/// Whether the API server would take the GatedSource.
fn check(source: &GatedSource) -> Result<()> {
    let Some(mistake) = lint::read(&json!(source)).mistakes.into_iter().next() else {
        return Ok(());
    };
    let options = [
        ("metadata.name", "--name"),
        ("spec.target", "--target"),
        ("spec.spread", "--spread"),
        ("spec.gates", "--gate"),
    ];
    let mut options = options.into_iter();
    match options.find(|(field, _)| mistake.field.starts_with(field)) {
        Some((_, option)) => bail!("{option}: {}; {}", mistake.problem, mistake.remedy),
        None => bail!("the GatedSource would be refused: {mistake}"),
    }
}

/// Whether `other` uses what `consumer` uses. A chart of a Helm repository is the HelmRelease's own.
fn uses(other: &Consumer, consumer: &Consumer, used: &Used) -> bool {
    let same = || Used::by(other).is_ok_and(|it| it.called() == used.called());
    match used.how {
        How::Chart(_) => other.is(consumer),
        How::Source | How::ChartRef | How::ChartIn => other.is(consumer) || same(),
    }
}

fn switch(consumer: &Consumer, (kind, name): &(FluxKind, String)) -> Result<Switch> {
    let used = Used::by(consumer)?;
    let mut reference = json!({"kind": kind.as_str(), "name": name});
    if used.namespace != consumer.key().namespace {
        reference["namespace"] = used.namespace.into();
    }
    let spec = match used.how {
        How::Source => json!({"sourceRef": reference}),
        How::ChartRef => json!({"chartRef": reference}),
        How::ChartIn => json!({"chart": {"spec": {"sourceRef": reference}}}),
        How::Chart(_) => json!({"chart": null, "chartRef": reference}),
    };
    Ok(Switch {
        managed_by: managed_by(&consumer.object),
        consumer: consumer.clone(),
        patch: json!({"spec": spec}),
    })
}

/// Who applies the object from elsewhere.
fn managed_by(object: &FluxObject) -> Option<String> {
    let kinds = [
        ("Kustomization", "kustomize.toolkit.fluxcd.io"),
        ("HelmRelease", "helm.toolkit.fluxcd.io"),
    ];
    kinds.into_iter().find_map(|(kind, domain)| {
        let label = |key: &str| object.labels().get(&format!("{domain}/{key}"));
        let (name, namespace) = (label("name")?, label("namespace")?);
        Some(format!("{kind} {namespace}/{name}"))
    })
}

/// The HelmChart that Flux makes of a HelmRelease, as one of its own.
fn own_chart(consumer: &Consumer, template: &Map<String, Value>, name: &str) -> Value {
    const COPIED: [&str; 6] = [
        "chart",
        "version",
        "reconcileStrategy",
        "valuesFiles",
        "ignoreMissingValuesFiles",
        "verify",
    ];
    let copied = COPIED.iter().filter_map(|&field| {
        let value = template.get(field)?;
        Some((field.to_owned(), value.clone()))
    });
    let mut spec: Map<String, Value> = copied.collect();
    let of = |field: &str| template.get("sourceRef")?.get(field).cloned();
    let reference = json!({"kind": of("kind"), "name": of("name")});
    spec.insert("sourceRef".to_owned(), reference);
    let interval = template
        .get("interval")
        .or(consumer.object.spec.get("interval"));
    spec.extend(interval.map(|interval| ("interval".to_owned(), interval.clone())));
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmChart",
        "metadata": {"name": name, "namespace": consumer.key().namespace},
        "spec": spec,
    })
}

#[cfg(test)]
mod tests;

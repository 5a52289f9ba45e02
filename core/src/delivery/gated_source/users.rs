//! Step 1: who applies what a source brings. Some consumers bypass the gates, and some gates arrive by
//! the path that they close.

use serde_json::Value;
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind, Strategy};

use super::sources::{Child, Observed, Seen};
use super::{Consumer, KIND};
use crate::flux::users::{Carried, Used, by_labels, chart_of, consumer_called, uses};
use crate::gate::set::Gathered;

/// What Flux has brought of a GatedSource and of everything that decides about it, including the gates of
/// policies and gates behind gates.
pub fn carried(object: &GatedSource, gates: &Gathered) -> Vec<Carried> {
    let own = [(KIND, &object.metadata)];
    let all = own.into_iter().chain(gates.objects());
    let mut carried = Vec::new();
    for brought in all.flat_map(|(kind, metadata)| by_labels(kind, metadata)) {
        if !carried.contains(&brought) {
            carried.push(brought);
        }
    }
    carried
}

/// Who uses the sources and the names of their children, as messages name them.
pub(super) struct Users {
    /// Those that still use a source that is gated, past its gates.
    pub(super) bypassing: Vec<String>,
    /// Those that use an object that has the name of a child, but belongs to somebody else.
    pub(super) misled: Vec<String>,
    /// Objects that arrive by way of a child (or of a source that is suspended) and decide about it: a
    /// change of them cannot arrive while it holds back.
    pub(super) self_gated: Vec<String>,
}

impl Users {
    pub(super) fn new(seen: &Seen, consumers: &[Consumer], carried: &[Carried]) -> Self {
        let called = |uses: &dyn Fn(ConsumerKind, &FluxObject) -> bool| -> Vec<String> {
            let those = consumers.iter().filter(|(kind, it)| uses(*kind, it));
            those.map(|(kind, it)| consumer_called(*kind, it)).collect()
        };
        let bypasses = |kind, it: &FluxObject| {
            seen.strategy() != Strategy::Suspend && bypasses(seen, kind, it)
        };
        let is_misled = |kind, it: &FluxObject| is_misled(seen, kind, it);
        let by_us = |carried: &&Carried| {
            let is_carrier = |(kind, it): &&Consumer| {
                let metadata = &it.metadata;
                *kind == carried.by
                    && metadata.namespace.as_ref() == Some(&carried.namespace)
                    && metadata.name.as_ref() == Some(&carried.name)
            };
            let carrier = consumers.iter().find(is_carrier);
            carrier.is_some_and(|(kind, it)| uses_ours(seen, *kind, it))
        };
        let by_us = carried.iter().filter(by_us);
        Self {
            bypassing: called(&bypasses),
            misled: called(&is_misled),
            self_gated: by_us.map(|carried| carried.what.clone()).collect(),
        }
    }
}

/// Whether a consumer uses a source itself, or takes the same chart out of the same repository.
fn bypasses(seen: &Seen, kind: ConsumerKind, consumer: &FluxObject) -> bool {
    let is_gated = |used: &Used<'_>, it: &Observed| {
        *used == (it.wanted.kind.as_str(), seen.namespace(), &it.wanted.name)
    };
    let used = uses(kind, consumer);
    seen.sources.iter().any(|source| {
        used.iter().any(|used| is_gated(used, source))
            || takes_chart(seen.namespace(), source, kind, consumer)
    })
}

/// Whether a HelmRelease takes the same chart out of the same repository.
fn takes_chart(own: &str, source: &Observed, kind: ConsumerKind, user: &FluxObject) -> bool {
    if (kind, source.wanted.kind) != (ConsumerKind::HelmRelease, SourceKind::HelmChart) {
        return false;
    }
    let its_own = user.metadata.namespace.as_deref().unwrap_or_default();
    let taken = user.spec.get("chart").and_then(|chart| chart.get("spec"));
    let taken = taken
        .and_then(Value::as_object)
        .and_then(|spec| chart_of(spec, its_own));
    let gated = source.upstream.object();
    let gated = gated.and_then(|object| chart_of(&object.spec, own));
    taken.is_some() && taken == gated
}

/// Whether a consumer uses an object that has the name of a child, but belongs to somebody else.
fn is_misled(seen: &Seen, kind: ConsumerKind, consumer: &FluxObject) -> bool {
    let mut taken = (seen.sources.iter()).filter(|it| matches!(it.child, Child::Taken));
    let used = uses(kind, consumer);
    taken.any(|it| used.contains(&(it.child_kind.as_str(), seen.namespace(), &it.wanted.target)))
}

/// Whether a consumer uses what this GatedSource holds back: a child, or a source that is suspended.
fn uses_ours(seen: &Seen, kind: ConsumerKind, consumer: &FluxObject) -> bool {
    let used = uses(kind, consumer);
    seen.sources.iter().any(|it| {
        let (kind, name) = it.wanted.used(seen.strategy());
        used.contains(&(kind.as_str(), seen.namespace(), name))
    })
}

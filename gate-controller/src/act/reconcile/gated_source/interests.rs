//! What a gated source depends on: the names of everything, whether or not it is there.

use sluice_core::delivery::gated_source::wanted;
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::Strategy;

use crate::act::reconcile::consumer_interests;
use crate::cluster::key::{ObjectKey, Work};

/// The names of what matters to a gated source.
pub(super) fn of(object: &GatedSource, key: &ObjectKey) -> Vec<Work> {
    let spec = &object.spec;
    let here = |kind: FluxKind, name: &str| Work::own(kind.into(), key.naming(None, name));
    let mut all = consumer_interests(key, &spec.gates.refs);
    for source in wanted(object) {
        all.push(here(FluxKind::Source(source.kind), &source.name));
        if spec.strategy != Strategy::Suspend {
            all.push(here(source.child(spec.strategy), &source.target));
        }
        // The object that the baseline says is running already.
        let from = source.baseline.as_ref().and_then(|it| it.from.as_ref());
        all.extend(from.map(|from| {
            let kind = FluxKind::Consumer(from.kind);
            let key = key.naming(from.namespace.as_deref(), &from.name);
            Work::own(kind.into(), key)
        }));
    }
    if let Some(selector) = &spec.selector {
        let kind = FluxKind::Source(selector.kind);
        all.push(Work::all(kind.into(), &key.namespace));
    }
    all
}

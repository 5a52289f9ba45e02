//! The work that the queue holds here: of which kind it is, and how urgent.

use super::{OfKind, Urgency};
use crate::cluster::key::Work;

impl OfKind for Work {
    fn kind(&self) -> &'static str {
        Work::kind(self)
    }
}

/// How urgent a look is that nobody in particular asked for.
pub(crate) fn urgency(work: &Work) -> Urgency {
    match work {
        Work::GatedSource(_) => Urgency::Delivery,
        Work::Gate(_) => Urgency::Gate,
        Work::Gatekeeper(_) | Work::GatePolicy(_) => Urgency::Report,
    }
}

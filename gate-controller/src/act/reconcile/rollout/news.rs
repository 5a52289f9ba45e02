//! What is reported of a Rollout: in the log, and by events.

use sluice_core::delivery::rollout::News;
use sluice_crds::Rollout;

use crate::act::reconcile::Context;
use crate::act::reconcile::news::{self, Item};
use crate::cluster::key::ObjectKey;

/// Reports something once.
pub(super) fn tell(context: &Context, key: &ObjectKey, object: &Rollout, item: News) {
    let News {
        is_warning,
        reason,
        message,
    } = item;
    let run = object.status.as_ref().and_then(|it| it.run.as_ref());
    let item = Item {
        warning: is_warning,
        reason: reason.to_owned(),
        message,
        environment: None,
        revision: run.map(|run| run.revision.clone()),
    };
    news::tell(context, key, object, item);
}

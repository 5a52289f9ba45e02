//! Calendars in ConfigMaps: read when the map changes, good until it changes again.

use sluice_core::gatekeeper::schedule::Reading;
use sluice_crds::gatekeeper::{Calendar, ConfigMapKeyReference};

use super::{Look, Seen, text};
use crate::lists;

impl Look<'_> {
    pub(super) async fn at_config_map(
        &self,
        source: &Calendar,
        reference: &ConfigMapKeyReference,
        last: Option<&Seen>,
    ) -> Seen {
        let key = lists::source(reference, &self.namespace);
        // The calendar outlives a map that is gone: it may come back as it was.
        let kept = || last.and_then(|last| last.kept.clone());
        let bytes = match self.clients.config_maps.text(&key, &reference.key).await {
            Err(why) => return self.seen(source, Reading::Unavailable(why), kept(), None),
            Ok(bytes) => bytes,
        };
        let parsed = self
            .clients
            .reader
            .read(&bytes, &self.zone, &self.namespace)
            .await;
        self.seen(source, text::reading(&parsed, None), parsed.ok(), None)
    }
}

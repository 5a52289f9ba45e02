//! Calendars in ConfigMaps: read when the map changes, good until it changes again.

use k8s_openapi::api::core::v1::ConfigMap;
use sluice_core::calendar::in_config_map;
use sluice_core::schedule::Reading;
use sluice_crds::gatekeeper::{Calendar, ConfigMapKeyReference};

use super::{Look, Seen, text};
use crate::ConfigMapKey;

/// How many keys of a map a message names.
const KEYS_NAMED: usize = 5;

impl Look<'_> {
    pub(super) async fn at_config_map(
        &self,
        source: &Calendar,
        reference: &ConfigMapKeyReference,
        last: Option<&Seen>,
    ) -> Seen {
        let key = ConfigMapKey {
            namespace: self.namespace.clone(),
            name: reference.name.clone(),
        };
        // The calendar outlives a map that is gone: it may come back as it was.
        let kept = || last.and_then(|last| last.kept.clone());
        let unavailable = |why| self.seen(source, Reading::Unavailable(why), kept(), None);
        let map = match self.clients.config_maps.get(&key).await {
            Err(error) => return unavailable(error.to_string()),
            Ok(None) => return unavailable(format!("there is no ConfigMap {key}")),
            Ok(Some(map)) => map,
        };
        let Some(bytes) = in_config_map(&map, &reference.key) else {
            return unavailable(without_key(&map, &key, &reference.key));
        };
        let parsed = self.clients.reader.read(bytes, &self.zone).await;
        self.seen(source, text::reading(&parsed, None), parsed.ok(), None)
    }
}

fn without_key(map: &ConfigMap, name: &ConfigMapKey, key: &str) -> String {
    let text = map.data.iter().flatten().map(|(key, _)| key);
    let mut keys: Vec<_> = text
        .chain(map.binary_data.iter().flatten().map(|(k, _)| k))
        .collect();
    keys.sort_unstable();
    let more = keys.len().saturating_sub(KEYS_NAMED);
    keys.truncate(KEYS_NAMED);
    let named: Vec<_> = keys.into_iter().map(|key| format!("`{key}`")).collect();
    let has = match (named.is_empty(), more) {
        (true, _) => "no keys".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => format!("{} and {more} more", named.join(", ")),
    };
    format!("the ConfigMap {name} has no key `{key}`; it has {has}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use rstest::rstest;

    use super::*;

    fn map(text: &[&str], binary: &[&str]) -> ConfigMap {
        let text = text
            .iter()
            .map(|key| ((*key).to_owned(), "text".to_owned()));
        let binary = binary
            .iter()
            .map(|key| ((*key).to_owned(), ByteString(b"binary".to_vec())));
        ConfigMap {
            data: Some(text.collect()),
            binary_data: Some(binary.collect()),
            ..ConfigMap::default()
        }
    }

    #[rstest]
    #[case(&[], &[], "no keys")]
    #[case(&["b", "a"], &[], "`a`, `b`")]
    #[case(&["b"], &["a"], "`a`, `b`")]
    #[case(&["a", "b", "c", "d", "e"], &["f", "g"], "`a`, `b`, `c`, `d`, `e` and 2 more")]
    fn a_missing_key_is_told_with_those_that_are_there(
        #[case] text: &[&str],
        #[case] binary: &[&str],
        #[case] has: &str,
    ) {
        let name = ConfigMapKey {
            namespace: "apps".into(),
            name: "holidays".into(),
        };
        let said = without_key(&map(text, binary), &name, "uk.ics");
        let expected = format!("the ConfigMap apps/holidays has no key `uk.ics`; it has {has}");
        assert_eq!(said, expected);
    }
}

//! One text in a ConfigMap.

use k8s_openapi::api::core::v1::ConfigMap;
use sluice_core::time::calendar::in_config_map;

use super::{ConfigMapKey, ConfigMaps};

/// How many keys of a map a message names.
const KEYS_NAMED: usize = 5;

impl ConfigMaps {
    /// What stands under `key` of a map, as text or as binary data.
    ///
    /// # Errors
    /// Why it cannot be read, in a sentence.
    pub async fn text(&self, name: &ConfigMapKey, key: &str) -> Result<Vec<u8>, String> {
        let map = match self.get(name).await {
            Err(error) => return Err(error.to_string()),
            Ok(None) => return Err(format!("there is no ConfigMap {name}")),
            Ok(Some(map)) => map,
        };
        match in_config_map(&map, key) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(without_key(&map, name, key)),
        }
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

    #[test]
    fn a_text_may_be_under_either() {
        let map = map(&["a"], &["b"]);
        assert_eq!(in_config_map(&map, "a"), Some(&b"text"[..]));
        assert_eq!(in_config_map(&map, "b"), Some(&b"binary"[..]));
        assert_eq!(in_config_map(&map, "c"), None);
    }
}

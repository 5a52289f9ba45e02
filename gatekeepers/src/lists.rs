//! Texts in ConfigMaps that are lists: revisions, and their authors. Each is read when its map
//! changes, and understood once.

use std::sync::Arc;

use futures::future::join_all;
use sha2::{Digest as _, Sha256};
use sluice_core::evidence::reading::Reading;
use sluice_crds::gatekeeper::ConfigMapKeyReference;

use crate::{Clients, ConfigMapKey};

/// The SHA-256 of a text.
type Digest = [u8; 32];

/// A list as it was last seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen<T> {
    reference: ConfigMapKeyReference,
    /// Of the text that it was read from, if there was one.
    digest: Option<Digest>,
    pub(crate) reading: Reading<T>,
}

/// The ConfigMap that `reference` means in a namespace.
pub(crate) fn source(reference: &ConfigMapKeyReference, namespace: &str) -> ConfigMapKey {
    ConfigMapKey {
        namespace: namespace.to_owned(),
        name: reference.name.clone(),
    }
}

/// What was seen of each of `references`, if all of them were.
pub(crate) fn known<'a, T>(
    references: impl Iterator<Item = &'a ConfigMapKeyReference>,
    last: &[Seen<T>],
) -> Option<Vec<Reading<T>>> {
    references
        .map(|reference| Some(find(last, reference)?.reading.clone()))
        .collect()
}

fn find<'a, T>(last: &'a [Seen<T>], reference: &ConfigMapKeyReference) -> Option<&'a Seen<T>> {
    last.iter().find(|seen| seen.reference == *reference)
}

/// Reads the lists that `references` mean in a namespace. `parse` understands a text; it may take
/// its time.
pub(crate) async fn observe<T: Send + Sync + 'static>(
    references: &[&ConfigMapKeyReference],
    namespace: &str,
    clients: &Clients,
    last: &[Seen<T>],
    parse: fn(&str) -> Result<T, String>,
) -> Vec<Seen<T>> {
    let looks = references.iter().map(async |reference| {
        let read = clients
            .config_maps
            .text(&source(reference, namespace), &reference.key)
            .await;
        let (digest, reading) = match read {
            Err(why) => (None, Reading::Unavailable(why)),
            Ok(bytes) => {
                let digest: Digest = Sha256::digest(&bytes).into();
                let known = find(last, reference).filter(|seen| seen.digest == Some(digest));
                let reading = match known {
                    Some(seen) => seen.reading.clone(),
                    None => understand(bytes, parse).await,
                };
                (Some(digest), reading)
            }
        };
        Seen {
            reference: (*reference).clone(),
            digest,
            reading,
        }
    });
    join_all(looks).await
}

async fn understand<T: Send + 'static>(
    bytes: Vec<u8>,
    parse: fn(&str) -> Result<T, String>,
) -> Reading<T> {
    let parsing = tokio::task::spawn_blocking(move || {
        let text = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        parse(text)
    });
    match parsing.await {
        Ok(Ok(list)) => Reading::Read(Arc::new(list)),
        Ok(Err(why)) => Reading::Broken(why),
        Err(_) => Reading::Broken("its reader stopped; please report it".to_owned()),
    }
}

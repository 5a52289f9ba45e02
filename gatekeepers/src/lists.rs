//! Texts in ConfigMaps, such as lists of revisions and of their authors. Each is read when its map
//! changes, and parsed once.

use futures::future::join_all;
use sha2::{Digest as _, Sha256};
use sluice_core::evidence::reading::Reading;
use sluice_core::gatekeeper::Evidence;
use sluice_crds::gatekeeper::ConfigMapKeyReference;

use crate::observation::{self, Look, Observation};
use crate::{ConfigMapKey, Source};

/// The SHA-256 of a text.
type Digest = [u8; 32];

/// A text as it was last seen.
#[derive(Clone, Debug)]
struct Seen<T> {
    reference: ConfigMapKeyReference,
    /// Of the text that it was read from, if there was one.
    digest: Option<Digest>,
    reading: Reading<T>,
}

impl<T: Clone + Send + Sync + 'static> observation::Seen for Vec<Seen<T>> {
    /// ConfigMaps are watched: nothing is read at intervals.
    fn make_due(&mut self) {}
}

/// The ConfigMap that `reference` means in a namespace.
pub(crate) fn source(reference: &ConfigMapKeyReference, namespace: &str) -> ConfigMapKey {
    ConfigMapKey {
        namespace: namespace.to_owned(),
        name: reference.name.clone(),
    }
}

/// The ConfigMaps that `references` mean in a namespace, each once.
pub(crate) fn sources<'a>(
    references: impl Iterator<Item = &'a ConfigMapKeyReference>,
    namespace: &str,
) -> Vec<Source> {
    let mut keys: Vec<_> = references
        .map(|reference| source(reference, namespace))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(Source::ConfigMap).collect()
}

/// What was seen of each of `references`, if all of them were.
pub(crate) fn known<'a, T: Clone + Send + Sync + 'static>(
    references: impl Iterator<Item = &'a ConfigMapKeyReference>,
    last: &Observation,
) -> Option<Vec<Reading<T>>> {
    let last = last.seen().map_or(&[][..], Vec::as_slice);
    references
        .map(|reference| Some(find(last, reference)?.reading.clone()))
        .collect()
}

fn find<'a, T>(last: &'a [Seen<T>], reference: &ConfigMapKeyReference) -> Option<&'a Seen<T>> {
    last.iter().find(|seen| seen.reference == *reference)
}

/// Reads the texts that `references` mean. `parse` understands a text, and may take its time;
/// `evidence` is what all of them are, in the order of the references.
pub(crate) async fn observe<T: Clone + Send + Sync + 'static>(
    references: Vec<&ConfigMapKeyReference>,
    look: Look<'_>,
    parse: fn(&str) -> Result<T, String>,
    evidence: fn(Vec<Reading<T>>) -> Evidence,
) -> Observation {
    let (namespace, last) = (look.namespace(), look.seen::<Vec<_>>().unwrap_or_default());
    let looks = references.into_iter().map(async |reference| {
        let key = source(reference, &namespace);
        let read = look.clients.config_maps.text(&key, &reference.key).await;
        let (digest, reading) = match read {
            Err(why) => (None, Reading::Unavailable(why)),
            Ok(bytes) => {
                let digest: Digest = Sha256::digest(&bytes).into();
                let known = find(&last, reference).filter(|seen| seen.digest == Some(digest));
                let reading = match known {
                    Some(seen) => seen.reading.clone(),
                    None => understand(bytes, parse).await,
                };
                (Some(digest), reading)
            }
        };
        Seen {
            reference: reference.clone(),
            digest,
            reading,
        }
    });
    let seen = join_all(looks).await;
    let readings = seen.iter().map(|seen| seen.reading.clone()).collect();
    Observation::new(evidence(readings), None, seen)
}

async fn understand<T: Send + Sync + 'static>(
    bytes: Vec<u8>,
    parse: fn(&str) -> Result<T, String>,
) -> Reading<T> {
    let parsing = tokio::task::spawn_blocking(move || Reading::of(&bytes, parse));
    let stopped = || Reading::Broken("its reader stopped; please report it".to_owned());
    parsing.await.unwrap_or_else(|_| stopped())
}

//! One gate holds many objects of a kind, and lets all of them go on at once.
//!
//! What comes in: how long after the switch each went on. What goes out: a table, beside a bare client that
//! writes as many statuses.

use std::fmt::{Debug, Display, Formatter};
use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::ordered::Ordered;
use super::process::Usage;
use super::scale::connections;

pub(super) struct Wave {
    pub(super) words: Words,
    pub(super) n: usize,
    pub(super) begun: Ordered,
    pub(super) usage: Usage,
    /// Statuses a second.
    pub(super) raw: f64,
}

/// How the table calls what is held, what of it is counted by the second, and what happens to it.
pub(super) struct Words {
    pub(super) held: &'static str,
    pub(super) counted: &'static str,
    pub(super) happens: &'static str,
}

/// How many statuses like these a bare client writes in a second, with as many requests in flight. `changed` gives
/// the status of an object, with a field that is another one.
pub(super) async fn raw<K, S>(
    api: &Api<K>,
    manager: &str,
    changed: impl Fn(K) -> Result<S>,
) -> Result<f64>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    S: Serialize,
{
    let all = api.list(&ListParams::default()).await?.items;
    let n = all.len();
    let bodies = all.into_iter().map(|object| {
        let name = object.name_any();
        let body = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": {"name": name}, "status": changed(object)?,
        });
        Ok((name, body))
    });
    let bodies = bodies.collect::<Result<Vec<_>>>()?;
    let params = PatchParams::apply(manager).force();
    let began = Instant::now();
    futures::stream::iter(bodies)
        .map(async |(name, body)| api.patch_status(&name, &params, &Patch::Apply(body)).await)
        .buffer_unordered(connections()?)
        .try_for_each(async |_| Ok(()))
        .await?;
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    Ok(n as f64 / began.elapsed().as_secs_f64())
}

impl Display for Wave {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            words,
            n,
            begun,
            usage,
            raw,
        } = self;
        let Words {
            held,
            counted,
            happens,
        } = words;
        #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
        let rate = begun.count() as f64 / begun.at(1.0);
        writeln!(
            f,
            "\n| one gate holds {n} {held}, and opens | |\n|---|---|\n\
             | raw patch rate of the server, with statuses like these | {raw:.0}/s |\n\
             | {counted} {happens} a second | {rate:.0}/s, {:.0} % of raw |\n\
             | {happens} after the switch: p50, p99, last | {:.2} s, {:.2} s, {:.2} s |\n\
             | highest resident | {} MiB |",
            100.0 * rate / raw,
            begun.at(0.5),
            begun.at(0.99),
            begun.at(1.0),
            usage.highest,
        )
    }
}

//! Objects read from the API server: one, some, or all of a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use anyhow::{Error, Result, anyhow};
use futures::{StreamExt, stream};
use kube::Resource;
use kube::api::{Api, ListParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use sluice_core::offline::simulate::Key;
use sluice_crds::{Gate, Gatekeeper};

use super::connection::Connection;
use super::fault::{Cannot, code, is_unknown_kind};
use crate::instant::Zone;

/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// How many objects one answer of the API server holds.
const PAGE: u32 = 500;

/// A kind as messages have it: `gated source`.
fn kind<K: Resource<DynamicType = ()>>() -> String {
    let mut words = String::new();
    for letter in K::kind(&()).chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Several objects of a kind: `gate policies`.
fn kinds<K: Resource<DynamicType = ()>>() -> String {
    let one = kind::<K>();
    match one.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    }
}

/// The zone in which the windows of all gatekeepers here, or everywhere, are written. People who may not see
/// gatekeepers see UTC.
pub(crate) async fn zone(connection: &Connection, everywhere: bool) -> Zone {
    let api: Api<Gatekeeper> = connection.api(connection.area(everywhere));
    let found = list(&api, ListParams::default()).await;
    Zone::of_gatekeepers(&found.unwrap_or_default())
}

/// The objects that `page` asks for, in the connection's namespace or everywhere. There are none where the API
/// server does not know the kind.
///
/// # Errors
/// Anything that keeps us from listing them.
pub(crate) async fn served<K>(
    connection: &Connection,
    everywhere: bool,
    page: ListParams,
) -> Result<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api: Api<K> = connection.api(connection.area(everywhere));
    match pages(&api, page).await {
        Err(error) if is_unknown_kind(&error) => Ok(Vec::new()),
        listed => listed.cannot(format_args!("list {}", kinds::<K>())),
    }
}

/// All the objects that `page` asks for, page by page.
///
/// # Errors
/// Anything that keeps us from listing them.
pub(crate) async fn list<K>(api: &Api<K>, page: ListParams) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let many = kinds::<K>();
    let of = api.namespace().map(|namespace| format!(" of {namespace}"));
    let of = of.unwrap_or_default();
    pages(api, page)
        .await
        .cannot(format_args!("list {many}{of}"))
}

/// The same, with the API server's own words for what went wrong.
pub(super) async fn pages<K>(api: &Api<K>, page: ListParams) -> Result<Vec<K>, kube::Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut all = Vec::new();
    let mut page = page.limit(PAGE);
    loop {
        let listed = api.list(&page).await?;
        all.extend(listed.items);
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// The plural names of what the API server serves of a group and version. Nothing: it knows none.
///
/// # Errors
/// Anything that keeps us from asking.
pub(crate) async fn resources(connection: &Connection, version: &str) -> Result<Vec<String>> {
    match connection.client.list_api_group_resources(version).await {
        Err(error) if code(&error) == Some(404) => Ok(Vec::new()),
        listed => {
            let listed = listed.cannot(format_args!("look for {version}"))?;
            Ok(listed.resources.into_iter().map(|it| it.name).collect())
        }
    }
}

/// The object of that name.
///
/// # Errors
/// There is none; anything that keeps us from reading it.
pub(crate) async fn read<K>(api: &Api<K>, name: &str) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let found = api.get(name).await;
    found.cannot(format_args!("read the {} {name}", kind::<K>()))
}

/// The object of that name in any namespace. None: there is none.
///
/// # Errors
/// Anything that keeps us from reading it.
pub(crate) async fn find<K>(connection: &Connection, key: &Key) -> Result<Option<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api: Api<K> = connection.api(Some(&key.namespace));
    let found = api.get_opt(&key.name).await;
    found.cannot(format_args!("read the {} {key}", kind::<K>()))
}

/// The object of that name in the connection's namespace.
///
/// # Errors
/// There is none, and what to do; anything that keeps us from reading it.
pub(crate) async fn existing<K>(connection: &Connection, name: &str) -> Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let key = connection.key(name);
    let found = find(connection, &key).await?;
    found.ok_or_else(|| missing(&kind::<K>(), &key))
}

/// There is no such object.
pub(crate) fn missing(kind: &str, Key { namespace, name }: &Key) -> Error {
    anyhow!(
        "there is no {kind} `{name}` in the namespace {namespace}; name another, or another \
         namespace with -n"
    )
}

/// Each of these as [`find`] finds it, several at once.
pub(super) async fn each<K>(
    connection: &Connection,
    keys: impl IntoIterator<Item = Key>,
) -> Vec<(Key, Result<Option<K>>)>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let one = async |key: Key| {
        let found = find(connection, &key).await;
        (key, found)
    };
    let found = stream::iter(keys).map(one).buffered(AT_ONCE);
    found.collect().await
}

/// Gates of any namespace, as far as they are there and may be seen; and what may not, which counts
/// as closed.
pub(super) async fn visible(
    connection: &Connection,
    wanted: BTreeSet<Key>,
) -> (BTreeMap<Key, Gate>, Vec<String>) {
    let (mut gates, mut notes) = (BTreeMap::new(), Vec::new());
    for (key, found) in each(connection, wanted).await {
        match found {
            Ok(found) => gates.extend(found.map(|gate| (key, gate))),
            Err(error) => notes.push(format!("{error}; it counts as closed")),
        }
    }
    (gates, notes)
}

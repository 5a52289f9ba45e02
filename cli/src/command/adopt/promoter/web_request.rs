//! A WebRequestCommitStatus as gates, as far as it goes: an address that is asked by GET, and an answer that is
//! judged by its status and its JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluice_core::time::duration;
use sluice_crds::Duration;

use super::guard::{Gates, Side, kept_gate};
use super::names::Names;
use super::theirs::{Found, Theirs};
use crate::converted::Notes;

mod address;
mod answer;

/// The longest that an answer may take, in seconds.
const TIMEOUT: i64 = 10;

/// # Errors
/// Why it cannot be done, and what to do instead.
pub(super) fn gates(theirs: &Theirs, found: &Found, names: &mut Names) -> Result<Gates, String> {
    let spec = theirs.spec();
    let side = match spec["reportOn"].as_str() {
        Some("active") => Side::Active,
        _ => Side::Proposed,
    };
    let name = theirs.names("promotionStrategyRef");
    let strategy = found.find("PromotionStrategy", &theirs.namespace, name);
    let (key, mut notes) = (spec["key"].as_str().unwrap_or_default(), theirs.notes());
    let http = http(spec, side, &mut notes)?;
    let branches = strategy.map_or_else(Vec::new, |it| branches(it.spec(), side, key));
    let template = spec["httpRequest"]["urlTemplate"].as_str();
    let template = template.unwrap_or_default();
    let (mut of, mut documents) = (BTreeMap::new(), Vec::new());
    let mut made: BTreeMap<String, String> = BTreeMap::new();
    for branch in branches {
        let url = address::of(template, theirs, strategy, branch)?;
        // One gate for all that ask the same address.
        if let Some(known) = made.get(&url) {
            of.insert(branch.to_owned(), known.clone());
            continue;
        }
        let name = match address::names_branch(template) {
            true => names.name(&[name, key, branch]),
            false => names.name(&[name, key]),
        };
        let mut http = http.clone();
        http["url"] = url.as_str().into();
        documents.extend(kept_gate(
            theirs,
            &name,
            notes.clone(),
            &json!({ "http": http }),
        )?);
        made.insert(url, name.clone());
        of.insert(branch.to_owned(), name);
    }
    Ok(Gates {
        side,
        of,
        others_wait: true,
        documents,
    })
}

/// The branches of the environments that have the check.
fn branches<'s>(strategy: &'s Value, side: Side, key: &str) -> Vec<&'s str> {
    let has = |value: &Value| {
        let mut all = value[side.checks()].as_array().into_iter().flatten();
        all.any(|it| it["key"] == key)
    };
    let all = strategy["environments"].as_array().into_iter().flatten();
    let all = all.filter(|it| has(strategy) || has(it));
    all.filter_map(|it| it["branch"].as_str()).collect()
}

/// Everything but the address.
fn http(spec: &Value, side: Side, notes: &mut Notes) -> Result<Value, String> {
    let request = &spec["httpRequest"];
    asks_by_get(request)?;
    let (statuses, expression) = answer::of(&spec["success"]["when"])?;
    let mut own = json!({ "expectedStatuses": statuses });
    if let Some(expression) = expression {
        own["expression"] = expression.into();
    }
    let mode = &spec["mode"];
    let interval = [
        &mode["polling"]["interval"],
        &mode["trigger"]["requeueDuration"],
    ];
    if let Some(interval) = interval.into_iter().find_map(Value::as_str) {
        own["interval"] = interval.into();
    }
    if let Some(timeout) = request["timeout"].as_str() {
        let parsed = duration::parse(&Duration::from(timeout));
        let is_longer = parsed.is_ok_and(|it| it.as_secs() > TIMEOUT);
        own["timeout"] = if is_longer { "10s" } else { timeout }.into();
        if is_longer {
            notes.lose(format!(
                "spec.httpRequest.timeout: {timeout} is longer than the 10s that an answer may take"
            ));
        }
    }
    if let Some(secret) = secret(&request["authentication"])? {
        own["secretRef"] = json!({ "name": secret });
        notes.note(format!(
            "the Secret {secret} needs the annotation sluice.dev/allowed-hosts with the host of the address"
        ));
    }
    if !mode["trigger"].is_null() {
        notes.lose(
            "spec.mode.trigger: it is asked each interval, whatever the expressions of the trigger say",
        );
    }
    if ["descriptionTemplate", "urlTemplate"]
        .iter()
        .any(|it| spec[*it].as_str().is_some_and(|text| !text.is_empty()))
    {
        notes.lose(
            "spec.descriptionTemplate and spec.urlTemplate: the gate tells in its own words what was answered",
        );
    }
    if side == Side::Proposed {
        notes.note("it is asked until the merge, and not only until the first success");
    }
    Ok(own)
}

fn asks_by_get(request: &Value) -> Result<(), String> {
    let methods = [&request["methodTemplate"], &request["method"]];
    let method = methods.into_iter().find_map(Value::as_str).unwrap_or("GET");
    let is_empty = |field: &str| match &request[field] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let problem = if !method.trim().eq_ignore_ascii_case("GET") {
        format!("it asks by {method}")
    } else if !is_empty("headerTemplates") {
        "it sends headers of its own".to_owned()
    } else if !is_empty("bodyTemplate") {
        "it sends a body".to_owned()
    } else {
        return Ok(());
    };
    Err(format!(
        "{problem}, and a gatekeeper over http only asks by GET. {INSTEAD}"
    ))
}

/// What to do where an address does not say it.
const INSTEAD: &str = "Let what is asked write a CommitStatus with this key, or say it to a gatekeeper of the kind \
                       external";

/// The Secret that is sent.
fn secret(authentication: &Value) -> Result<Option<&str>, String> {
    let way = authentication.as_object().and_then(|it| it.iter().next());
    let Some((way, how)) = way else {
        return Ok(None);
    };
    match way.as_str() {
        "basic" | "bearer" => Ok(how["secretRef"]["name"].as_str()),
        way => Err(format!(
            "it proves who it is by {way}, and a gatekeeper over http only by a password or a token. {INSTEAD}"
        )),
    }
}

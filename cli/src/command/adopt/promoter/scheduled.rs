//! A ScheduledCommitStatus as gates: what is proposed is merged at some times only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::guard::{Gates, Side, gate, keeper};
use super::names::Names;
use super::theirs::Theirs;

/// # Errors
/// Why it cannot be done.
pub(super) fn gates(theirs: &Theirs, names: &mut Names) -> Result<Gates, String> {
    let spec = theirs.spec();
    let key = spec["key"].as_str().unwrap_or_default();
    let strategy = theirs.names("promotionStrategyRef");
    let (mut of, mut documents) = (BTreeMap::new(), Vec::new());
    for environment in spec["environments"].as_array().into_iter().flatten() {
        let branch = environment["branch"].as_str().unwrap_or_default();
        let name = names.name(&[strategy, key, branch]);
        let mut keepers = Vec::new();
        for (zone, schedule) in schedules(spec, environment, branch)? {
            let own = match keepers.is_empty() {
                true => name.clone(),
                false => names.name(&[strategy, key, branch, zone]),
            };
            let spec = json!({ "schedule": schedule });
            documents.push(keeper(theirs, &own, theirs.notes(), &spec)?);
            keepers.push(own);
        }
        documents.push(gate(theirs, &name, &keepers)?);
        of.insert(branch.to_owned(), name);
    }
    Ok(Gates {
        side: Side::Proposed,
        of,
        others_wait: false,
        documents,
    })
}

/// The schedules of an environment, one for each time zone. All of them have to be open, so what is open stands
/// in the first one alone.
fn schedules<'v>(
    spec: &'v Value,
    environment: &'v Value,
    branch: &str,
) -> Result<Vec<(&'v str, Value)>, String> {
    let [open, closed] = ["allow", "exclude"].map(|list| {
        let all = [&spec[list], &environment[list]].into_iter();
        let all = all.filter_map(Value::as_array).flatten();
        all.collect::<Vec<_>>()
    });
    let default = text(&spec["timezone"]).unwrap_or("UTC");
    let zone = |window: &'v Value| text(&window["timezone"]).unwrap_or(default);
    let opening: BTreeSet<&str> = open.iter().map(|it| zone(it)).collect();
    let closing: BTreeSet<&str> = closed.iter().map(|it| zone(it)).collect();
    let first = one(&opening, branch)?;
    let first = first.or_else(|| closing.first().copied());
    let first = first.unwrap_or(default);
    let rest = closing.into_iter().filter(|it| *it != first);
    let all = [first].into_iter().chain(rest).map(|own| {
        let mut schedule = json!({"timeZone": own});
        for (list, windows) in [("open", &open), ("closed", &closed)] {
            let own = windows.iter().filter(|it| zone(it) == own);
            let own: Vec<_> = own.map(|it| window(it)).collect();
            if !own.is_empty() {
                schedule[list] = own.into();
            }
        }
        (own, schedule)
    });
    Ok(all.collect())
}

/// The zone of the windows that open. None: there are none.
fn one<'v>(zones: &BTreeSet<&'v str>, branch: &str) -> Result<Option<&'v str>, String> {
    if zones.len() < 2 {
        return Ok(zones.first().copied());
    }
    let zones: Vec<_> = zones.iter().copied().collect();
    Err(format!(
        "the windows that open {branch} are written in several time zones ({}), and a schedule has one. Write \
         them in one; or write a gatekeeper for each zone, and a Gate with `require: oneOf` that they keep",
        zones.join(", ")
    ))
}

fn window(theirs: &Value) -> Value {
    let mut own = json!({"cron": theirs["cron"], "duration": theirs["duration"]});
    if let Some(reason) = text(&theirs["description"]) {
        own["reason"] = reason.into();
    }
    own
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

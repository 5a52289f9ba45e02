use serde_json::json;
use sluice_crds::State;

use super::*;
use crate::instant::Zone;

fn row(name: &str, state: Option<State>, age: &str) -> Row {
    Row {
        key: Key {
            namespace: "flux-system".to_owned(),
            name: name.to_owned(),
        },
        cells: ["Closed", "Manual", age, "a message"]
            .map(str::to_owned)
            .into(),
        state,
        object: json!({}),
    }
}

fn listing(rows: Vec<Row>) -> Listing {
    Listing {
        titles: &["STATE", "REASON", "AGE"],
        zone: Zone::utc(),
        rows,
        wake: None,
    }
}

fn get(all_namespaces: bool, output: Form) -> Get {
    Get {
        what: Vec::new(),
        all_namespaces,
        selector: None,
        watch: true,
        trust_unverified_identity: false,
        output,
    }
}

#[test]
fn columns_are_as_wide_as_what_is_in_them() {
    let rows = vec![
        row("a", Some(State::Closed), "2m"),
        row("production", None, "2m"),
    ];
    let listing = listing(rows);
    let plain = |all_namespaces, output| {
        let table = get(all_namespaces, output).table(&listing);
        anstream::adapter::strip_str(&output::table(&table)).to_string()
    };
    insta::assert_snapshot!(plain(false, Form::Table), @r"
    NAME         STATE    REASON   AGE
    a            Closed   Manual   2m
    production   Closed   Manual   2m
    ");
    insta::assert_snapshot!(plain(true, Form::Wide), @r"
    NAMESPACE     NAME         STATE    REASON   AGE   MESSAGE
    flux-system   a            Closed   Manual   2m    a message
    flux-system   production   Closed   Manual   2m    a message
    ");
}

#[test]
fn that_something_is_older_is_no_news() {
    let get = get(false, Form::Table);
    let steady = |age| get.steady(&listing(Vec::new()), &row("a", None, age));
    assert_eq!(steady("2m"), steady("3m"));
    assert_eq!(steady("2m"), "Closed\nManual\n");
}

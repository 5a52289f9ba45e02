use serde_json::json;

use super::*;

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
        titles: ["STATE", "REASON", "AGE"].map(str::to_owned).into(),
        rows,
        wake: None,
    }
}

#[test]
fn columns_are_as_wide_as_what_is_in_them() {
    let rows = vec![
        row("a", Some(State::Closed), "2m"),
        row("production", None, "2m"),
    ];
    let listing = listing(rows);
    let plain = |namespaces, wide| {
        let (head, rows) = table(&listing, namespaces, wide);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        anstream::adapter::strip_str(&output::table(&head, &rows)).to_string()
    };
    insta::assert_snapshot!(plain(false, false), @r"
    NAME         STATE    REASON   AGE
    a            Closed   Manual   2m
    production   Closed   Manual   2m
    ");
    insta::assert_snapshot!(plain(true, true), @r"
    NAMESPACE     NAME         STATE    REASON   AGE   MESSAGE
    flux-system   a            Closed   Manual   2m    a message
    flux-system   production   Closed   Manual   2m    a message
    ");
}

#[test]
fn that_something_is_older_is_no_news() {
    let get = Get {
        what: Vec::new(),
        all_namespaces: false,
        selector: None,
        watch: true,
        trust_unverified_identity: false,
        output: Form::Table,
    };
    let steady = |age| get.steady(&listing(Vec::new()), &row("a", None, age));
    assert_eq!(steady("2m"), steady("3m"));
    assert_eq!(steady("2m"), "Closed\nManual\n");
}

#[test]
fn names_may_come_with_their_kind() {
    let split = |what: &[&str]| {
        let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
        split(&what).unwrap()
    };
    assert_eq!(split(&[]), (Listed::Gates, vec![]));
    assert_eq!(split(&["gk"]), (Listed::Gatekeepers, vec![]));
    assert_eq!(
        split(&["gates", "a", "gate/b"]),
        (Listed::Gates, vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(split(&["sources"]), (Listed::Sources, vec![]));
    assert_eq!(split(&["gs/a"]), (Listed::Sources, vec!["a".to_owned()]));
    assert_eq!(split(&["policies"]), (Listed::Policies, vec![]));
    assert_eq!(
        split(&["approvals", "a"]),
        (Listed::Approvals, vec!["a".to_owned()])
    );
    assert_eq!(split(&["a"]), (Listed::Gates, vec!["a".to_owned()]));
}

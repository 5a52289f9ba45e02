use super::*;

#[test]
fn columns_are_as_wide_as_what_is_in_them() {
    let row = |name: &str, state| Row {
        cells: ["flux-system", name, "Closed", "Manual", "a message"]
            .map(str::to_owned)
            .into(),
        state,
    };
    let rows = [row("a", Some(State::Closed)), row("production", None)];
    let plain = |namespaces, wide| {
        anstream::adapter::strip_str(&table(&["REASON"], &rows, namespaces, wide)).to_string()
    };
    insta::assert_snapshot!(plain(false, false), @r"
    NAME         STATE    REASON
    a            Closed   Manual
    production   Closed   Manual
    ");
    insta::assert_snapshot!(plain(true, true), @r"
    NAMESPACE     NAME         STATE    REASON   MESSAGE
    flux-system   a            Closed   Manual   a message
    flux-system   production   Closed   Manual   a message
    ");
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
    assert_eq!(split(&["a"]), (Listed::Gates, vec!["a".to_owned()]));
}

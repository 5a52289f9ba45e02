use super::*;

const NOW: &str = "2026-11-20T19:00:00Z";

fn row(namespace: &str, gates: &[&str], message: &str) -> Row {
    Row {
        namespace: namespace.to_owned(),
        what: "GatedSource/app".to_owned(),
        revision: Some("main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3".to_owned()),
        gates: gates.iter().map(|gate| (*gate).to_owned()).collect(),
        since: "2026-11-20T18:30:00Z".parse().unwrap(),
        until: Some("2026-11-23T09:00:00Z".parse().unwrap()),
        message: message.to_owned(),
        warnings: Vec::new(),
    }
}

fn shown(rows: &[Row], columns: Option<usize>) -> String {
    let zone = Zone::named("Europe/London").unwrap();
    table(rows, NOW.parse().unwrap(), Some("apps"), &zone, columns)
}

const CAUSE: &str = "no-deploy-fridays: closed by window 'fridays' until Sat 00:00 Europe/London";

#[test]
fn a_cause_says_no_more_than_the_cells_beside_it() {
    let message = format!("held back by apps/production: {CAUSE}");
    let text = shown(&[row("apps", &["apps/production"], &message)], None);
    let expected = format!(
        "\
WAITS             REVISION            AT           SINCE   UNTIL (Europe/London)   BECAUSE
GatedSource/app   main@4f2a9c1e0b7d   production   30m     Mon 2026-11-23 09:00    {CAUSE}
"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_cause_that_does_not_fit_beside_is_written_below() {
    let message = format!("held back by apps/production: {CAUSE}");
    let rows = [
        row("apps", &["apps/production"], &message),
        row("apps", &["apps/production"], &format!("{message}, {CAUSE}")),
    ];
    let text = shown(&rows, Some(100));
    let expected = "\
WAITS             REVISION            AT           SINCE   UNTIL (Europe/London)
GatedSource/app   main@4f2a9c1e0b7d   production   30m     Mon 2026-11-23 09:00
    no-deploy-fridays: closed by window 'fridays' until Sat 00:00 Europe/London
GatedSource/app   main@4f2a9c1e0b7d   production   30m     Mon 2026-11-23 09:00
    no-deploy-fridays: closed by window 'fridays' until Sat 00:00 Europe/London, no-deploy-fridays:
      closed by window 'fridays' until Sat 00:00 Europe/London
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn what_tells_namespaces_and_gates_apart_stays() {
    let both = "held back by platform/freeze (GatePolicy year-end): a; apps/production: b";
    let gates = ["platform/freeze", "apps/production"];
    let rows = [row("apps", &gates, both), row("team", &gates, "odd")];
    let text = shown(&rows, None);
    for part in [
        "NAMESPACE   WAITS",
        "apps        GatedSource/app",
        "platform/freeze,production   30m",
        "platform/freeze (GatePolicy year-end): a; apps/production: b",
        "platform/freeze,apps/production   30m",
    ] {
        // Columns are as wide as their widest cell.
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).contains(&squeezed(part)), "{part}: {text}");
    }
    let whole = "held back by platform/freeze (GatePolicy year-end): a";
    let one = row("apps", &["platform/freeze"], whole);
    assert_eq!(because(&one), "platform/freeze (GatePolicy year-end): a");
    let told = "Deployment apps/shop, deploy: held back by apps/production: closed by default";
    let told = row("apps", &["apps/production"], told);
    assert_eq!(because(&told), "closed by default");
    let quoted = "somebody is held back by apps/production: b";
    let odd = row("apps", &["apps/production"], quoted);
    assert_eq!(because(&odd), quoted);
}

//! A table of mistakes, a line each, refused by the API server and by lint.

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::{Value, json};
use sluice_core::offline::lint;
use sluice_tests::{Namespace, shared};

use super::{ask, object};

mod objects;
mod pipelines;
mod promotion;
mod rollouts;
mod sources;
mod windows;

/// A mistake: the spec in YAML, the field that the API server names, words that it says, and the
/// field that lint names. `=` stands for the same field.
type Mistake = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const GATES: &[Mistake] = &[
    ("{window: 0s}", "spec.window", "must be at least 1m", "="),
    ("{window: 59s999ms}", "spec.window", "must be at least 1m", "="),
    ("{window: 0h0m}", "spec.window", "write a duration such as 1h", "="),
    ("{window: 2a}", "spec.window", "should match", "="),
    ("{window: 1000days}", "spec.window", "should match", "="),
    ("{window: -1h}", "spec.window", "should match", "="),
    ("{window: 1h 30m}", "spec.window", "should match", "="),
    ("{window: ''}", "spec.window", "should match", "="),
    ("{window: 60}", "spec.window", "must be of type string", "="),
    ("{maxOverride: 0s, window: 0s}", "spec.maxOverride", "at most 8784h (366 days)", "="),
    ("{maxOverride: 59m59s, window: 1m}", "spec.maxOverride", "must be at least 1h", "="),
    ("{maxOverride: 8785h}", "spec.maxOverride", "at most 8784h (366 days)", "="),
    ("{maxOverride: 366d1s}", "spec.maxOverride", "at most 8784h (366 days)", "="),
    ("{maxOverride: 99999d}", "spec.maxOverride", "at most 8784h (366 days)", "="),
    ("{maxOverride: 100000d}", "spec.maxOverride", "should match", "="),
    ("{maxOverride: 1.5d}", "spec.maxOverride", "should match", "="),
    ("{maxOverride: 12h1d}", "spec.maxOverride", "should match", "="),
    ("{window: 1d1s}", "spec.window", "shorten window or raise maxOverride", "="),
    ("{window: 0d}", "spec.window", "must be at least 1m", "="),
    ("{window: 2h, maxOverride: 1h}", "spec.window", "shorten window or raise maxOverride", "="),
    ("{default: ajar}", "spec.default", "supported values: \"open\", \"closed\"", "="),
    ("{require: any}", "spec.require", "supported values: \"all\", \"oneOf\"", "="),
    ("{suspend: 'yes'}", "spec.suspend", "must be of type boolean", "="),
    ("{gatekeepers: [{name: a}], default: open}", "spec.default", "only a gate without gatekeepers has a default", "="),
    ("{gatekeepers: [{name: a}, {name: b}, {name: a}]}", "spec.gatekeepers", "is listed twice", "spec.gatekeepers[2]"),
    ("{gatekeepers: [{name: a, namespace: x}, {name: a, namespace: x}]}", "spec.gatekeepers", "is listed twice", "spec.gatekeepers[1]"),
    ("{gatekeepers: [{name: a, namespace: null}, {name: a}]}", "spec.gatekeepers", "is listed twice", "spec.gatekeepers[1]"),
    ("{gatekeepers: null, default: ajar}", "spec.default", "supported values", "="),
    ("{gatekeepers: [{}]}", "spec.gatekeepers[0].name", "Required value", "="),
    ("{gatekeepers: [{name: ''}]}", "spec.gatekeepers[0].name", "at least 1 chars long", "="),
    ("{gatekeepers: [{name: Office}]}", "spec.gatekeepers[0].name", "should match", "="),
    ("{gatekeepers: [{name: a, namespace: a.b}]}", "spec.gatekeepers[0].namespace", "should match", "="),
    ("{gatekeepers: [a]}", "spec.gatekeepers[0]", "must be of type object", "="),
    ("{gatekeepers: {name: a}}", "spec.gatekeepers", "must be of type array", "="),
];

#[rustfmt::skip]
const GATEKEEPERS: &[Mistake] = &[
    ("{}", "spec", "exactly one kind; write one of schedule, manual", "="),
    ("{manual: {state: open}, schedule: {open: [{cron: '* * * * *'}]}}", "spec", "exactly one kind", "="),
    ("{onError: ignore, manual: {state: open}}", "spec.onError", "supported values", "="),
    ("{manual: {}}", "spec.manual.state", "Required value", "="),
    ("{manual: {state: ajar}}", "spec.manual.state", "supported values", "="),
    ("{manual: {state: open, until: tomorrow}}", "spec.manual.until", "must be of type date-time", "="),
    ("{manual: {state: open, until: '9999-12-30T00:00:00Z'}}", "spec.manual.until", "write an earlier instant, or remove it", "="),
    ("{manual: {state: open, until: '9999-12-31T23:59:59-12:00'}}", "spec.manual.until", "must be before 9999-12-30T00:00:00Z", "="),
    ("{manual: {state: open, reason: ''}}", "spec.manual.reason", "at least 1 chars long", "="),
    ("{schedule: {}}", "spec.schedule", "at least one window under open or closed", "="),
    ("{schedule: {open: [], closed: []}}", "spec.schedule", "at least one window", "="),
    ("{schedule: {timeZone: '', open: [{cron: '* * * * *'}]}}", "spec.schedule.timeZone", "at least 1 chars long", "="),
    ("{schedule: {timeZone: 'Europe/London ', open: [{cron: '* * * * *'}]}}", "spec.schedule.timeZone", "should match", "="),
];

#[rustfmt::skip]
const POLICIES: &[Mistake] = &[
    ("{}", "spec.gates", "Required value", "="),
    ("{gates: {refs: []}}", "spec.gates.refs", "should have at least 1 items", "="),
    ("{gates: {refs: [{name: a}]}}", "spec.gates.refs", "write the namespace of each gate", "spec.gates.refs[0].namespace"),
    ("{gates: {refs: [{name: a, namespace: b}, {name: a, namespace: b}]}}", "spec.gates.refs", "is listed twice", "spec.gates.refs[1]"),
    ("{kinds: [pipeline], gates: {refs: [{name: a, namespace: b}]}}", "spec.kinds[0]", "should match", "="),
    ("{namespaceSelector: {matchLabels: {tier: a b}}, gates: {refs: [{name: a, namespace: b}]}}", "spec.namespaceSelector.matchLabels.tier", "should match", "spec.namespaceSelector.matchLabels[tier]"),
    ("{namespaceSelector: {matchExpressions: [{key: tier, operator: Is}]}, gates: {refs: [{name: a, namespace: b}]}}", "spec.namespaceSelector.matchExpressions[0].operator", "supported values", "="),
    ("{namespaceSelector: {matchExpressions: [{key: tier, operator: In}]}, gates: {refs: [{name: a, namespace: b}]}}", "spec.namespaceSelector.matchExpressions[0].values", "belong to In and NotIn", "="),
    ("{namespaceSelector: {matchExpressions: [{key: tier, operator: Exists, values: [a]}]}, gates: {refs: [{name: a, namespace: b}]}}", "spec.namespaceSelector.matchExpressions[0].values", "to no other operator", "="),
    ("{namespaceSelector: {matchExpressions: [{key: a b, operator: Exists}]}, gates: {refs: [{name: a, namespace: b}]}}", "spec.namespaceSelector.matchExpressions[0].key", "should match", "="),
];

/// Mistakes between windows.
#[rustfmt::skip]
const SCHEDULES: &[Mistake] = &[
    ("{closed: [{cron: '0 9 * * 1', duration: 8h, lastStart: 30m}]}", "spec.schedule.closed", "lastStart belongs to open windows; remove it", "spec.schedule.closed[0].lastStart"),
    ("{open: [{name: a, cron: '* * * * *'}, {name: a, cron: '* * * * *'}]}", "spec.schedule.open", "give each window a name of its own", "spec.schedule.open[1].name"),
    ("{closed: [{name: a, cron: '* * * * *'}, {name: a, cron: '* * * * *'}]}", "spec.schedule.closed", "give each window a name of its own", "spec.schedule.closed[1].name"),
    ("{open: [{name: a, cron: '* * * * *'}], closed: [{name: a, cron: '* * * * *'}]}", "spec.schedule.open", "has the name of a closed one", "spec.schedule.closed[0].name"),
];

/// Mistakes in a metric, which has an address, a query and a range but for what is written here.
#[rustfmt::skip]
const METRICS: &[Mistake] = &[
    ("{address: null}", ".address", "Required value", "="),
    ("{query: null}", ".query", "Required value", "="),
    ("{range: null}", ".range", "Required value", "="),
    ("{address: 'prometheus:9090'}", ".address", "should match", "="),
    ("{address: 'ftp://prometheus'}", ".address", "should match", "="),
    ("{address: 'https://'}", ".address", "should match", "="),
    ("{address: 'https://me:secret@prometheus'}", ".address", "should match", "="),
    ("{address: 'https://prometheus/?dedup=true'}", ".address", "should match", "="),
    ("{query: ''}", ".query", "at least 1 chars long", "="),
    ("{range: {}}", ".range", "admits everything; write min, max or both", "="),
    ("{range: {min: null, max: null}}", ".range", "admits everything", "="),
    ("{range: {min: 2, max: 1}}", ".range.min", "must not be above max", "="),
    ("{range: {max: '5%'}}", ".range.max", "must be of type number", "="),
    ("{interval: 4s}", ".interval", "between 5s and 24h", "="),
    ("{interval: 25h}", ".interval", "between 5s and 24h", "="),
    ("{interval: 1d1s}", ".interval", "between 5s and 24h", "="),
    ("{interval: 1w}", ".interval", "should match", "="),
    ("{timeout: 0s}", ".timeout", "longer than zero and at most 10s", "="),
    ("{timeout: 11s}", ".timeout", "longer than zero and at most 10s", "="),
    ("{for: 0s}", ".for", "longer than zero and at most 168h", "="),
    ("{for: 169h}", ".for", "longer than zero and at most 168h", "="),
    ("{for: 7d1s}", ".for", "longer than zero and at most 168h", "="),
    ("{for: 5 minutes}", ".for", "should match", "="),
    ("{onNoData: ignore}", ".onNoData", "supported values", "="),
    ("{address: 'http://prometheus', secretRef: {name: a}}", ".secretRef", "sent over https only; write an https address", "="),
    ("{address: 'http://prometheus', certSecretRef: {name: a}}", ".certSecretRef", "belongs to an https address; remove it", "="),
    ("{secretRef: {name: ''}}", ".secretRef.name", "at least 1 chars long", "="),
    ("{certSecretRef: {}}", ".certSecretRef.name", "Required value", "="),
];

/// Mistakes in a check over http, which has a url but for what is written here.
#[rustfmt::skip]
const CHECKS: &[Mistake] = &[
    ("{url: null}", ".url", "Required value", "="),
    ("{url: status.example.com}", ".url", "should match", "="),
    ("{url: 'file:///etc/passwd'}", ".url", "should match", "="),
    ("{url: 'https://me@status.example.com/'}", ".url", "should match", "="),
    ("{expectedStatuses: []}", ".expectedStatuses", "at least 1 items", "="),
    ("{expectedStatuses: [200, 99]}", ".expectedStatuses[1]", "greater than or equal to 100", "="),
    ("{expectedStatuses: [600]}", ".expectedStatuses[0]", "less than or equal to 599", "="),
    ("{expectedStatuses: [2xx]}", ".expectedStatuses[0]", "must be of type integer", "="),
    ("{expression: ''}", ".expression", "at least 1 chars long", "="),
    ("{interval: 1s}", ".interval", "between 5s and 24h", "="),
    ("{timeout: 1m}", ".timeout", "longer than zero and at most 10s", "="),
    ("{retries: -1}", ".retries", "greater than or equal to 0", "="),
    ("{retries: 6}", ".retries", "less than or equal to 5", "="),
    ("{url: 'http://status', secretRef: {name: a}}", ".secretRef", "sent over https only; write an https address", "="),
    ("{url: 'http://status', certSecretRef: {name: a}}", ".certSecretRef", "belongs to an https address; remove it", "="),
];

#[tokio::test]
async fn mistakes_in_gates_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let table = GATES.iter().map(|mistake| (mistake.0.to_owned(), mistake));
    judge.refuses_all("Gate", "", table).await?;
    judge.refuses_long("Gate", 33, "spec.gatekeepers").await
}

#[tokio::test]
async fn mistakes_in_policies_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let table = POLICIES
        .iter()
        .map(|mistake| (mistake.0.to_owned(), mistake));
    judge.refuses_all("GatePolicy", "", table).await?;
    judge
        .accepts(&object(
            "GatePolicy",
            "{kinds: [Check], gates: {refs: [{name: a, namespace: b}]}, namespaceSelector: {matchLabels: {a: ''}, \
             matchExpressions: [{key: example.com/tier, operator: NotIn, values: [dev]}]}}",
        )?)
        .await
}

#[tokio::test]
async fn mistakes_in_gatekeepers_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let table = GATEKEEPERS
        .iter()
        .map(|mistake| (mistake.0.to_owned(), mistake));
    judge.refuses_all("Gatekeeper", "", table).await?;
    let whole = |mistake: &Mistake| format!("{{schedule: {}}}", mistake.0);
    let table = SCHEDULES.iter().map(|mistake| (whole(mistake), mistake));
    judge.refuses_all("Gatekeeper", "", table).await?;
    judge
        .refuses_long("Gatekeeper", 129, "spec.schedule.open")
        .await
}

#[tokio::test]
async fn mistakes_in_what_is_asked_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let metric = "address: 'https://prometheus', query: up, range: {min: 1}";
    let whole = |mistake: &Mistake| with("metric", metric, mistake.0);
    let table: Vec<_> = METRICS
        .iter()
        .map(|mistake| Ok((whole(mistake)?, mistake)))
        .collect::<Result<_>>()?;
    judge
        .refuses_all("Gatekeeper", "spec.metric", table.into_iter())
        .await?;
    let whole = |mistake: &Mistake| with("http", "url: 'https://status'", mistake.0);
    let table: Vec<_> = CHECKS
        .iter()
        .map(|mistake| Ok((whole(mistake)?, mistake)))
        .collect::<Result<_>>()?;
    judge
        .refuses_all("Gatekeeper", "spec.http", table.into_iter())
        .await?;
    let long: String = "200, ".repeat(17);
    let long = format!("{{http: {{url: 'https://status', expectedStatuses: [{long}]}}}}");
    let mistake = ("", "spec.http.expectedStatuses", "must have at most", "=");
    judge
        .refuses("", object("Gatekeeper", &long)?, &mistake)
        .await
}

/// The spec of a kind with these fields, of which `other` takes the place.
fn with(kind: &str, fields: &str, other: &str) -> Result<String> {
    let mut spec: Value = serde_saphyr::from_str(&format!("{{{fields}}}"))?;
    let other: Value = serde_saphyr::from_str(other)?;
    for (field, value) in other.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    Ok(json!({ kind: spec }).to_string())
}

/// An optional field that is null is absent.
#[tokio::test]
async fn what_is_null_is_absent() -> Result<()> {
    let judge = Judge::new().await?;
    for window in [
        "{cron: '* * * * *', name: null, reason: null, duration: null, from: null, lastStart: null}",
        "{cron: null, from: 2026-12-19T00:00:00, until: 2026-12-20T00:00:00, calendar: null}",
        "{calendar: {url: null, configMapRef: {name: a, key: b}, certSecretRef: null}}",
    ] {
        let spec = format!("{{manual: null, schedule: {{open: [{window}]}}}}");
        judge.accepts(&object("Gatekeeper", &spec)?).await?;
    }
    judge
        .accepts(&object(
            "Gate",
            "{gatekeepers: [{name: a, namespace: null}], window: null}",
        )?)
        .await
}

/// The API server counts days in every field that is a length, and takes an end by the wall clock.
#[tokio::test]
async fn days_and_ends_by_the_clock_are_accepted() -> Result<()> {
    let judge = Judge::new().await?;
    for (kind, spec) in [
        ("Gate", "{window: 1d, maxOverride: 366d}"),
        ("Gate", "{window: 1d12h30m, maxOverride: 2d}"),
        (
            "Gatekeeper",
            "{schedule: {open: [{cron: '0 9 * * 1', duration: 366d, lastStart: 365d23h59m}]}}",
        ),
        (
            "Gatekeeper",
            "{schedule: {open: [{calendar: {url: 'https://example.com/', interval: 7d}}]}}",
        ),
        (
            "Gatekeeper",
            "{schedule: {open: [{cron: '0 22 * * *', until: '06:00', lastStart: 30m}]}}",
        ),
        (
            "Gatekeeper",
            "{schedule: {closed: [{cron: '0 0 * * *', until: '00:00'}]}}",
        ),
        ("Gatekeeper", "{approval: {validFor: 90d}}"),
        (
            "Gatekeeper",
            "{metric: {address: 'https://a', query: up, range: {min: 1}, interval: 1d, timeout: 0d5s, for: 7d}}",
        ),
        (
            "Gatekeeper",
            "{http: {url: 'https://status', interval: 1d, timeout: 0d5s}}",
        ),
        (
            "Gatekeeper",
            "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: a}], soak: 7d}}",
        ),
        (
            "GatedSource",
            "{sourceRef: {kind: GitRepository, name: b}, gates: {refs: [{name: a}]}, interval: 2d, spread: 1d}",
        ),
    ] {
        judge.accepts(&object(kind, spec)?).await?;
    }
    Ok(())
}

#[tokio::test]
async fn names_that_fit_no_label_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let source =
        "{sourceRef: {kind: Bucket, name: a}, strategy: artifact, gates: {refs: [{name: a}]}}";
    for (kind, spec) in [
        ("Gate", "{}"),
        ("Gatekeeper", "{manual: {state: open}}"),
        ("GatedSource", source),
    ] {
        let mut long = object(kind, spec)?;
        long["metadata"]["name"] = "a".repeat(64).into();
        let mistake = ("", "", "so that it fits a label", "metadata.name");
        judge.refuses("", long.clone(), &mistake).await?;
        long["metadata"]["name"] = "a".repeat(63).into();
        judge.accepts(&long).await?;
    }
    Ok(())
}

/// The API server, and lint beside it.
struct Judge {
    client: Client,
    namespace: Namespace,
}

impl Judge {
    async fn new() -> Result<Self> {
        let cluster = shared().await?;
        Ok(Self {
            client: cluster.client().await?,
            namespace: Namespace::create(cluster, "admission").await?,
        })
    }

    async fn accepts(&self, object: &Value) -> Result<()> {
        ask(&self.client, self.namespace.name(), object).await??;
        let mistakes = lint::read(object).mistakes;
        ensure!(mistakes.is_empty(), "{object}: lint says {mistakes:?}");
        Ok(())
    }

    /// Checks a table, and tells of all that is not as it says.
    async fn refuses_all(
        &self,
        kind: &str,
        root: &str,
        table: impl Iterator<Item = (String, &'static Mistake)>,
    ) -> Result<()> {
        let mut wrong = Vec::new();
        for (spec, mistake) in table {
            if let Err(error) = self.refuses(root, object(kind, &spec)?, mistake).await {
                wrong.push(format!("{error:#}"));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    }

    /// Checks that `object` is refused at the fields of `mistake`, which count from `root`.
    async fn refuses(&self, root: &str, object: Value, mistake: &Mistake) -> Result<()> {
        let (_, field, words, lint_field) = mistake;
        let field = format!("{root}{field}");
        let answer = ask(&self.client, self.namespace.name(), &object).await?;
        let Err(kube::Error::Api(status)) = answer else {
            anyhow::bail!("{object}: the API server says {answer:?}");
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let named = causes
            .into_iter()
            .any(|cause| cause.field == field && cause.message.contains(words));
        let anywhere = field.is_empty() && status.message.contains(words);
        ensure!(
            status.code == 422 && (named || anywhere),
            "{object}: not at {field}, or without {words:?}: {}",
            status.message
        );

        let field = if *lint_field == "=" {
            &field
        } else {
            *lint_field
        };
        let mistakes = lint::read(&object).mistakes;
        ensure!(
            mistakes.iter().any(|mistake| mistake.field == *field),
            "{object}: lint does not refuse {field}: {mistakes:?}"
        );
        Ok(())
    }

    /// Checks that a list of `count` items is too long.
    async fn refuses_long(&self, kind: &str, count: usize, field: &'static str) -> Result<()> {
        let items: String = (0..count)
            .map(|n| match kind {
                "Gate" => format!("{{name: g{n}}}, "),
                _ => format!("{{name: w{n}, cron: '* * * * *'}}, "),
            })
            .collect();
        let spec = match kind {
            "Gate" => format!("{{gatekeepers: [{items}]}}"),
            _ => format!("{{schedule: {{open: [{items}]}}}}"),
        };
        let mistake = ("", field, "must have at most", "=");
        self.refuses("", object(kind, &spec)?, &mistake).await
    }
}

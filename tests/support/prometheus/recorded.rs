//! What Prometheus records by itself: rules without a source, each with the value that a test sets.
//!
//! What comes in: names with values. What goes out: a file of rules, for Prometheus to read. Whatever is
//! scraped would come seconds later: Prometheus looks for targets five seconds after its start for the first
//! time.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Between two evaluations.
const INTERVAL: &str = "100ms";

/// Gauges as they stand in a query, `errors` or `errors{pod="a"}`, with their values.
pub(super) type Gauges = BTreeMap<String, f64>;

/// The file of rules. JSON is YAML.
pub(super) fn rules(gauges: &Gauges) -> Value {
    let rules: Vec<_> = gauges.iter().map(rule).collect();
    json!({"groups": [{"name": "gauges", "interval": INTERVAL, "rules": rules}]})
}

fn rule((gauge, value): (&String, &f64)) -> Value {
    let (name, labels) = gauge.split_once('{').unwrap_or((gauge, ""));
    let pairs = labels.trim_end_matches('}').split(',');
    let labels: Map<String, Value> = pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(label, value)| (label.to_owned(), value.trim_matches('"').into()))
        .collect();
    json!({"record": name, "labels": labels, "expr": format!("vector({value})")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_a_rule() {
        let gauges = [
            ("errors{pod=\"a\",zone=\"b\"}", 0.02),
            ("latency", f64::NAN),
        ];
        let gauges = gauges.map(|(gauge, value)| (gauge.to_owned(), value));
        assert_eq!(
            rules(&gauges.into())["groups"][0]["rules"],
            json!([
                {"record": "errors", "labels": {"pod": "a", "zone": "b"}, "expr": "vector(0.02)"},
                {"record": "latency", "labels": {}, "expr": "vector(NaN)"},
            ])
        );
    }
}

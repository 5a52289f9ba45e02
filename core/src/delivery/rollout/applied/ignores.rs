//! The rules by which a Kustomization or HelmRelease leaves fields alone.
//!
//! Anyone who may write one writes its rules: what is too much of them is not read, and leaves nothing alone. They
//! are matched with the text of kinds and names, which is ASCII, so patterns know ASCII alone, as they do in Flux.

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
use sluice_crds::gated_source::ConsumerKind;

use crate::delivery::rollout::given::Name;

/// How many rules are read.
const MOST: usize = 20;
/// How long a pattern may be, in bytes, and how large when it is compiled.
const LONGEST: usize = 256;
const LARGEST: usize = 8 << 10;
/// Flags that Flux does not know. With them a short pattern may name all letters of the world many times, which takes
/// long to compile.
const FOREIGN: [char; 2] = ['u', 'x'];

/// The rules of one of them.
pub(super) struct Rules<'a>(Vec<Rule<'a>>);

struct Rule<'a> {
    paths: Vec<&'a str>,
    kind: Pattern,
    name: Pattern,
}

enum Pattern {
    /// Nothing is written: all match.
    All,
    /// It cannot be read.
    Nothing,
    Some(Regex),
}

impl<'a> Rules<'a> {
    /// Those of this object.
    pub(super) fn read(object: &'a Value, kind: ConsumerKind) -> Self {
        let rules = match kind {
            ConsumerKind::Kustomization => "/spec/ignore",
            ConsumerKind::HelmRelease => "/spec/driftDetection/ignore",
        };
        let rules = object.pointer(rules).and_then(Value::as_array);
        let rules = rules.into_iter().flatten().take(MOST);
        Self(rules.filter_map(Rule::read).collect())
    }

    /// Whether one of them leaves this field of a workload alone.
    pub(super) fn ignore(&self, name: &Name, field: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.paths.iter().any(|path| covers(path, field))
                && rule.kind.matches(name.kind.as_str())
                && rule.name.matches(&name.name)
        })
    }
}

impl<'a> Rule<'a> {
    /// None: it selects by labels, and what those select may change with each commit.
    fn read(rule: &'a Value) -> Option<Self> {
        let paths = rule["paths"].as_array().into_iter().flatten();
        let target = &rule["target"];
        let selects = |field: &str| target.get(field).is_some_and(|it| it != "");
        if selects("labelSelector") || selects("annotationSelector") {
            return None;
        }
        let text = |field: &str| target.get(field)?.as_str();
        Some(Self {
            paths: paths.filter_map(Value::as_str).collect(),
            kind: Pattern::read(text("kind").unwrap_or_default()),
            name: Pattern::read(text("name").unwrap_or_default()),
        })
    }
}

impl Pattern {
    fn read(text: &str) -> Self {
        if text.is_empty() {
            return Pattern::All;
        }
        if text.len() > LONGEST || has_foreign_flags(text) {
            return Pattern::Nothing;
        }
        #[cfg(test)]
        COMPILED.with(|all| all.set(all.get() + 1));
        let whole = format!("^(?:{text})$");
        let mut whole = RegexBuilder::new(&whole);
        let whole = whole.unicode(false).size_limit(LARGEST).build();
        whole.map_or(Pattern::Nothing, Pattern::Some)
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::All => true,
            Pattern::Nothing => false,
            Pattern::Some(whole) => whole.is_match(text.as_bytes()),
        }
    }
}

fn has_foreign_flags(pattern: &str) -> bool {
    let groups = pattern.split("(?").skip(1);
    let flags = groups.flat_map(|it| it.chars().take_while(|it| it.is_alphabetic() || *it == '-'));
    let mut flags = flags;
    flags.any(|flag| FOREIGN.contains(&flag))
}

fn covers(path: &str, field: &str) -> bool {
    let rest = field.strip_prefix(path.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
thread_local! {
    /// How many patterns this thread has compiled.
    pub(in crate::delivery::rollout) static COMPILED: std::cell::Cell<usize> =
        const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::delivery::rollout::workload::Kind;

    const FIELD: &str = "/spec/replicas";

    fn ignores(rules: &Value, name: &str) -> bool {
        let object = json!({"spec": {"ignore": rules}});
        let name = Name {
            kind: Kind::Deployment,
            name: name.to_owned(),
        };
        Rules::read(&object, ConsumerKind::Kustomization).ignore(&name, FIELD)
    }

    fn rule(name: &str) -> Value {
        json!({"paths": [FIELD], "target": {"name": name}})
    }

    #[test]
    fn a_pattern_is_of_the_whole_name() {
        let cases = [
            (r"web-v\d+", true),
            ("web|api", false),
            ("web|api|web-v1", true),
            (r"\w+-\w+", true),
            ("(?i)WEB-V1", true),
            ("eb-v1", false),
            ("web-v1|[", false),
        ];
        for (pattern, expected) in cases {
            assert_eq!(
                ignores(&json!([rule(pattern)]), "web-v1"),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_is_too_much_is_not_read() {
        let mut rules = vec![rule("other"); MOST - 1];
        rules.push(rule("web"));
        assert!(ignores(&rules.clone().into(), "web"));
        rules.insert(0, rule("other"));
        assert!(!ignores(&rules.into(), "web"));

        let long = |length: usize| format!("web[{}]?", "b".repeat(length - 6));
        assert!(ignores(&json!([rule(&long(LONGEST))]), "web"));
        assert!(!ignores(&json!([rule(&long(LONGEST + 1))]), "web"));

        assert!(ignores(&json!([rule("[a-z]{1,30}")]), "web"));
        for pattern in ["(?:[a-z]{1,30}){1,30}", r"(?iu)\pL*", r"(?i-x:a)|\w*"] {
            assert!(!ignores(&json!([rule(pattern)]), "web"), "{pattern}");
        }
    }
}

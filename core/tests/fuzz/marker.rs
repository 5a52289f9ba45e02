//! Files of YAML with values that are marked to be promoted.

use bolero::TypeGenerator;
use serde_json::Value;
use sluice_core::delivery::pull_request::Promotion;
use sluice_core::delivery::pull_request::marker::{Edited, Mistake, edited};
use sluice_core::revision::Revision;

use super::target::Target;

pub const TARGET: Target = Target {
    name: "marker",
    words: &[
        " # {\"$promotion\": \"flux-system:podinfo:prod\"}\n",
        " # {\"$promotion\": \"flux-system:podinfo:prod:ref\"}\n",
        " # {\"$promotion\": \"flux-system:podinfo:prod:commit\"}\n",
        " # {\"$promotion\": \"flux-system:podinfo:dev\"}\n",
        " # {\"$imagepolicy\": \"flux-system:podinfo:tag\"}\n",
        "flux-system:podinfo:prod",
        "$promotion",
        ":version",
        ":digest",
        "6.1.0",
        "1.10",
        "\"6.1.0\"",
        "'6.1.0'",
        "\n",
        "\r\n",
        "\r",
        "\n---\n",
        "\n...\n",
        "%YAML 1.1\n---\n",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "\0",
        "key: ",
        "- ",
        "? ",
        ": ",
        ":",
        "  ",
        "\t",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a",
        "!!str ",
        "!t ",
        "<<: ",
        "|\n",
        ">-\n",
        "\"",
        "'",
        "\\",
        "\\x2e",
        "#",
        " #",
        "{{ .Values.tag }}",
        "é",
    ],
    texts: 6_000,
};

const PROD: Promotion<'_> = Promotion {
    namespace: "flux-system",
    pipeline: "podinfo",
    environment: "prod",
};

/// What is to be written. Each is a text that YAML or one of its quotes has its own idea of.
const REVISIONS: [&str; 10] = [
    "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
    "v6.1.6@sha1:4020901000708060504030201009080706050403",
    "6.1.6+3",
    "1.10",
    "true",
    "2026-11-20",
    "a\"b\\c",
    "it's#,[]{}",
    "*a&b",
    "gr\u{202e}ün\u{feff}",
];

/// Which of the revisions.
#[derive(Debug, Default, TypeGenerator)]
pub struct Asked {
    revision: u8,
}

/// Only marked values change, to a part of the revision, and only once.
pub fn holds(text: &str, asked: &Asked) -> bool {
    let revision = REVISIONS[usize::from(asked.revision) % REVISIONS.len()];
    let revision = Revision::parse(revision).unwrap();
    match edited(text.as_bytes(), &PROD, &revision) {
        Ok(Edited::AlreadyThere) => true,
        Ok(Edited::Changed(new)) => {
            assert_ne!(new, text);
            let again = edited(new.as_bytes(), &PROD, &revision);
            assert_eq!(again, Ok(Edited::AlreadyThere), "{text:?} became {new:?}");
            lines_without_markers_are_left_alone(text, &new);
            other_values_are_left_alone(text, &new, &revision);
            true
        }
        Err(mistake) => {
            is_told(&mistake, text);
            false
        }
    }
}

fn lines_without_markers_are_left_alone(text: &str, new: &str) {
    let lines = |text: &str| {
        text.split(['\n', '\r'])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (before, after) = (lines(text), lines(new));
    // A value on several lines becomes one on one line.
    if before.len() == after.len() {
        for (before, after) in before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other)
        {
            assert!(before.contains("$promotion"), "{before:?} became {after:?}");
            let marker = |line: &str| line.rfind("{").map(|at| line[at..].to_owned());
            assert_eq!(marker(before), marker(after), "{before:?} became {after:?}");
        }
    }
}

/// As another reader of YAML sees it.
fn other_values_are_left_alone(text: &str, new: &str, revision: &Revision) {
    let Ok(before) = serde_saphyr::from_multiple::<Value>(text) else {
        return;
    };
    // What has an anchor may also be the name of something.
    if text.contains('*') {
        return;
    }
    let after = serde_saphyr::from_multiple::<Value>(new);
    let after = after.unwrap_or_else(|error| panic!("{text:?} became {new:?}: {error}"));
    let version = revision.version().map(ToString::to_string);
    let digits = revision
        .digest()
        .and_then(|digest| digest.split(':').nth(1));
    let parts = [
        Some(revision.as_str()),
        revision.digest(),
        revision.name(),
        version.as_deref(),
        digits,
    ];
    let [before, after] = [before, after].map(Value::Array);
    let changed = changed(&before, &after);
    for value in changed.unwrap_or_else(|| panic!("{text:?} became {new:?}")) {
        let is_part = value
            .as_str()
            .is_some_and(|value| parts.contains(&Some(value)));
        assert!(is_part, "{value} is in {new:?}");
    }
}

/// The values of `after` that differ. None: they differ in more than values.
fn changed<'v>(before: &Value, after: &'v Value) -> Option<Vec<&'v Value>> {
    let inner: Vec<_> = match (before, after) {
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).collect()
        }
        (Value::Object(before), Value::Object(after)) if before.keys().eq(after.keys()) => {
            before.values().zip(after.values()).collect()
        }
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
            return None;
        }
        (before, after) if before == after => return Some(Vec::new()),
        (_, after) => return Some(vec![after]),
    };
    let inner = inner
        .into_iter()
        .map(|(before, after)| changed(before, after));
    Some(inner.collect::<Option<Vec<_>>>()?.concat())
}

/// In one line, with a line that there is.
fn is_told(mistake: &Mistake, text: &str) {
    let told = mistake.to_string();
    assert!(!told.contains(char::is_control), "{told:?} of {text:?}");
    match mistake {
        Mistake::NoMarker(_) | Mistake::TooLong(_) | Mistake::TooMuch(_) => {}
        Mistake::At { line, .. } => {
            let lines = text.split(['\n', '\r']).count();
            assert!((1..=lines).contains(line), "{told:?} of {text:?}");
        }
    }
}

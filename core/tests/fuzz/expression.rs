//! Conditions in CEL, over JSON that somebody else wrote.

use bolero::TypeGenerator;
use serde_json::{Value, json};
use sluice_core::evidence::expression::{Expression, ExpressionError};

use super::target::Target;

pub const TARGET: Target = Target {
    name: "expression",
    words: &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "!",
        "-",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " != ",
        " < ",
        " >= ",
        " && ",
        " || ",
        " in ",
        " ? ",
        " : ",
        ".",
        ", ",
        "'",
        "\"",
        "\\",
        "//",
        "\n",
        "r'\\'",
        "b'a'",
        "'''",
        "true",
        "null",
        "0",
        "1u",
        "1.5",
        "1e308",
        "-9223372036854775808",
        "18446744073709551615u",
        "status",
        "body",
        ".items",
        ".labels",
        ".secret",
        ".name",
        ".nothing",
        ".missing",
        "['tier']",
        "[0]",
        "[-1]",
        "i",
        "has(body.labels)",
        ".all(i, true)",
        ".exists(i, i == 1)",
        ".exists_one(i, i)",
        ".filter(i, i > 0)",
        ".map(i, i + i)",
        ".size() > 0",
        ".contains('a')",
        ".startsWith(body.secret)",
        "size(",
        "string(",
        "int(",
        "double(",
        "type(",
        "bytes(",
        "dyn(",
        "duration('1h')",
        "timestamp(",
        "matches(",
        "@result",
        "body.items.map(a, body.items.map(b, [a, b]))",
        "é",
    ],
    texts: 1_500,
};

/// What no message may hold.
const SECRET: &str = "xyzzy-4711";

/// Which of the bodies it is asked about.
#[derive(Debug, Default, TypeGenerator)]
pub struct Question {
    #[generator(0..6_u8)]
    body: u8,
}

impl Question {
    fn body(&self) -> Value {
        let items = |length: usize| -> Vec<_> {
            let item = |n| json!({"name": format!("pod-{n}"), "weight": n, "secret": SECRET});
            (0..length).map(item).collect()
        };
        let object = |length| {
            json!({
                "name": "web-1", "secret": SECRET, "nothing": null, "load": 0.75, "ready": true,
                "labels": {"tier": "front", "a b": "c", SECRET: SECRET},
                "items": items(length),
            })
        };
        match self.body {
            0 => object(3),
            1 => object(0),
            2 => object(500),
            3 => json!([SECRET, 1, 2.5, u64::MAX, i64::MIN, null, [[]], {}]),
            4 => json!(SECRET),
            _ => json!(null),
        }
    }
}

/// It stops nothing, tells nothing, and comes to the same each time, and to the opposite where it
/// is negated. Understood is what can be asked.
pub fn holds(text: &str, question: &Question) -> bool {
    let read = |text: &str| Expression::parse(text, &["status", "body"]);
    let expression = match read(text) {
        Ok(expression) => expression,
        Err(problem) => {
            assert!(!problem.contains("cannot be parsed"), "{text:?}");
            assert!(!problem.contains(char::is_control), "{text:?}: {problem:?}");
            return false;
        }
    };
    let inputs = [("status", json!(200)), ("body", question.body())];
    let found = expression.evaluate(&inputs);
    assert_eq!(
        expression.evaluate(&inputs),
        found,
        "{text:?} a second time"
    );
    if let Err(error) = &found {
        let defect = error == &ExpressionError::Defect;
        assert!(!defect || asks_a_type(text), "{text:?}");
        let told = error.to_string();
        assert!(
            !told.contains(SECRET) && !told.contains("front"),
            "{text:?}: {told}"
        );
    }
    // On lines of their own, for a text may end in a comment. Within parentheses it may be too
    // deep, and take more work than it may.
    let negated = read(&format!("!(\n{text}\n)"));
    let negated = negated.ok().map(|negated| negated.evaluate(&inputs));
    if let (Ok(found), Some(negated)) = (found, negated) {
        let spent = negated == Err(ExpressionError::TooMuchWork);
        assert!(
            spent || negated == Ok(!found),
            "{text:?} is {found}, negated {negated:?}"
        );
    }
    true
}

/// `double.name`: of a type, whose name no variable has, the crate says that it is not declared.
/// For this alone `Expression` has no word yet.
fn asks_a_type(text: &str) -> bool {
    let types = [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
    ];
    let dense: String = text.split_whitespace().collect();
    types.iter().any(|name| dense.contains(&format!("{name}.")))
}

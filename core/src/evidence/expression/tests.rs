//! What expressions say, how they are refused, and that nobody's expression stops the process.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;

mod memory;

const VARIABLES: [&str; 2] = ["status", "body"];

fn parse(text: &str) -> Result<Expression, String> {
    Expression::parse(text, &VARIABLES)
}

fn ask(text: &str, body: Json) -> Result<bool, ExpressionError> {
    parse(text)
        .unwrap()
        .evaluate(&[("status", json!(200)), ("body", body)])
}

#[rstest]
#[case("body.name", Ok("web-1".to_owned()))]
#[case("body.items[1].name + '!'", Ok("b!".to_owned()))]
#[case("'v' + string(body.replicas)", Ok("v3".to_owned()))]
#[case("body.replicas", Err(ExpressionError::NotAText("int".to_owned())))]
#[case("body.absent", Err(ExpressionError::NoSuchKey(Some("absent".to_owned()))))]
fn a_text_is_made_where_one_is_asked_for(
    #[case] text: &str,
    #[case] expected: Result<String, ExpressionError>,
) {
    let read = Expression::parse_text(text, &VARIABLES).unwrap();
    let made = read.text_of(&[("body", body())], &Allowance::default());
    assert_eq!(made, expected);
}

#[rstest]
#[case("size(body.name)", "its value is a number, not a text")]
#[case("[body.name]", "its value is a list, not a text")]
fn what_is_never_a_text_is_refused(#[case] text: &str, #[case] problem: &str) {
    let refused = Expression::parse_text(text, &VARIABLES).unwrap_err();
    assert_eq!(refused, problem);
}

fn body() -> Json {
    json!({
        "ready": true,
        "name": "web-1",
        "replicas": 3,
        "load": 0.75,
        "many": u64::MAX,
        "nothing": null,
        "empty": [],
        "labels": { "tier": "front", "a b": "c" },
        "items": [
            { "name": "a", "status": "ok", "weight": 1 },
            { "name": "b", "status": "late", "weight": 2 },
        ],
    })
}

#[rstest]
#[case("true", true)]
#[case("status == 200", true)]
#[case("status >= 200 && status < 300", true)]
#[case("status in [200, 204]", true)]
#[case("status in [404]", false)]
#[case("body.ready", true)]
#[case("!body.ready", false)]
#[case(
    "body.replicas == 3 && body.replicas == 3.0 && body.replicas == 3u",
    true
)]
#[case("body.replicas * 2 - 1 == 5 && body.replicas % 2 == 1", true)]
#[case("body.load < 0.8 && body.load > 0", true)]
#[case("double(body.replicas) / 2.0 == 1.5", true)]
#[case(
    "body.many == 18446744073709551615u && body.many > body.replicas",
    true
)]
#[case("body.nothing == null", true)]
#[case("body.name.startsWith('web-') && body.name.endsWith('1')", true)]
#[case("body.name.contains('b-')", true)]
#[case("body.name + '!' == 'web-1!' && size(body.name) == 5", true)]
#[case("int(body.name.contains('w') ? '7' : '8') == 7", true)]
#[case(
    "has(body.labels) && has(body.labels.tier) && !has(body.labels.zone)",
    true
)]
#[case("'tier' in body.labels && !('zone' in body.labels)", true)]
#[case("body.labels['a b'] == 'c'", true)]
#[case("body.items[1].name == 'b'", true)]
#[case("body.items.size() == 2 && size(body.empty) == 0", true)]
#[case("body.items.all(i, i.status == 'ok')", false)]
#[case("body.items.exists(i, i.status == 'late')", true)]
#[case("body.items.exists_one(i, i.weight > 1)", true)]
#[case("body.items.filter(i, i.weight > 1).map(i, i.name) == ['b']", true)]
#[case("body.items.map(i, i.weight > 1, i.name) == ['b']", true)]
#[case("body.items.all(i, body.items.exists(j, j.weight >= i.weight))", true)]
#[case("body.empty.all(i, false) && !body.empty.exists(i, true)", true)]
#[case("body.labels.all(key, body.labels[key] != '')", true)]
#[case("type(body.replicas) == int && type(body.items) == list", true)]
#[case("{'a': [1, 2]} == {'a': [1.0, 2u]}", true)]
#[case("[1] + [2] == [1, 2]", true)]
// What one side decides needs no other.
#[case("body.missing == 1 || body.ready", true)]
#[case("body.ready || body.missing == 1", true)]
#[case("has(body.missing) && body.missing > 1", false)]
#[case("body.items.exists(i, i.missing == 1 || i.weight == 2)", true)]
// A variable of a macro hides one of the same name.
#[case("body.items.all(body, body.weight > 0)", true)]
fn expressions_are_judged_as_cel_has_it(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(ask(text, body()), Ok(expected), "{text}");
}

#[rstest]
#[case("body.missing", "there is no key `missing`")]
#[case("body['missing'] == 1", "there is no key `missing`")]
#[case(
    "body.items[2].name == ''",
    "a list is shorter than the place that is asked for"
)]
#[case("body.items[body.load].name == ''", "`[]` does not take double")]
#[case("body.name", "its value is a value of type string, not true or false")]
#[case(
    "body.nothing",
    "its value is a value of type null_type, not true or false"
)]
#[case("body.name > 1", "`>` does not take string and int")]
#[case("body.name + 1 == 1", "`+` does not take values of these types")]
#[case("body.name && true", "`&&` does not take string and bool")]
#[case("body.name.missing == 1", "`.` does not take string and string")]
#[case(
    "body.replicas.all(i, true)",
    "`all, exists, map or filter` does not take values of these types"
)]
#[case("body.replicas in body.name", "`in` does not take int and string")]
#[case("size(body.replicas) > 0", "`size` does not take int")]
#[case("9223372036854775807 + body.replicas > 0", "a number overflows")]
#[case("body.replicas / (body.replicas - 3) == 0", "it divides by zero")]
#[case("int(body.name) == 1", "`int` fails on the value that it is given")]
#[case("{body.name: 1, 'web-1': 2} == {}", "an object has the same key twice")]
fn what_comes_to_nothing_is_told(#[case] text: &str, #[case] expected: &str) {
    let error = ask(text, body()).unwrap_err();
    assert_eq!(error.to_string(), expected, "{text}");
}

/// A user who names an address must not read its replies in a message.
#[rstest]
#[case("body.m[body.secret] == 1")]
#[case("body.secret in 1 == true")]
#[case("body.secret + 1 == 1")]
#[case("body.secret - body.secret == 1")]
#[case("body.secret < 1")]
#[case("body.secret")]
#[case("body.l[body.secret] == 1")]
#[case("{body.secret: 1, body.secret: 2} == {}")]
#[case("int(body.secret) == 1")]
#[case("body.secret.all(i, true)")]
#[case("-body.secret == 1")]
#[case("body[body.m] == 1")]
fn no_message_holds_a_value(#[case] text: &str) {
    let body = json!({ "secret": "s3cr3t", "m": { "s3cr3t-key": 1 }, "l": ["s3cr3t"] });
    let error = ask(text, body).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
}

#[rstest]
#[case("", "at character 1: ")]
#[case("body.", "at character ")]
#[case("body.ready &&\n== 1", "line 2, character 1: ")]
#[case("body.?ready", "unsupported syntax '.?'")]
#[case(
    "bdy.ready",
    "there is no variable `bdy`; there is `status` and `body`"
)]
#[case("body.items.all(i, j.ok)", "there is no variable `j`")]
#[case("body.items.all(i, i.ok) && i.ok", "there is no variable `i`")]
#[case("now() > 1", "there is no function `now`; there are all, exists, ")]
#[case("body.name.matches('.*')", "there is no function `matches`")]
#[case(
    "timestamp('2026-01-01T00:00:00Z') == 1",
    "there is no function `timestamp`"
)]
#[case("optional.of(1) == 1", "there is no function `of`")]
#[case(
    "body.items.all(i)",
    "`all` takes a variable and a condition: write a.all(b, b > 0)"
)]
#[case("body.items.all(1, true)", "argument must be a simple name")]
#[case(
    "contains(body, 'a')",
    "`contains` is asked of a text: write a.contains(b)"
)]
#[case("body.int()", "`int` takes one value: write int(a)")]
#[case("has(body)", "invalid argument to has() macro")]
#[case(
    "Pod{name: 'a'} == 1",
    "there is no type `Pod`; write a map such as {'key': 1}"
)]
#[case("body[0.5]", "a place in a list is a whole number")]
#[case("1", "its value is a number, not true or false")]
#[case("'true'", "its value is a text, not true or false")]
#[case("null", "its value is null, not true or false")]
#[case("[body.ready]", "its value is a list, not true or false")]
#[case("body.items.filter(i, i.ok)", "its value is a list, not true or false")]
#[case("size(body.items)", "its value is a number, not true or false")]
#[case(
    "status + 1",
    "its value is a number, a text or a list, not true or false"
)]
fn mistakes_are_refused_before_anything_is_judged(#[case] text: &str, #[case] expected: &str) {
    let problem = parse(text).unwrap_err();
    assert!(problem.contains(expected), "{text}: {problem}");
    assert!(!problem.contains('\n'), "{problem}");
}

#[test]
fn an_expression_has_at_most_a_kibibyte() {
    let text = |length: usize| format!("'{}' == body", "x".repeat(length - 10));
    assert!(parse(&text(LONGEST)).is_ok());
    let problem = parse(&text(LONGEST + 1)).unwrap_err();
    assert_eq!(problem, "the expression is longer than 1024 characters");
}

#[test]
fn what_is_judged_has_limits() {
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let wide = |values: usize| Json::Array(vec![json!(0); values]);
    let long = |bytes: usize| json!({ "k": "x".repeat(bytes - 1) });
    for (body, problem) in [
        (deep(DEEPEST + 1), "more than 64 levels"),
        (wide(MOST_VALUES - 1), "more than 65536 values"),
        (long(MOST_TEXT + 1), "more than 1 MiB of text"),
    ] {
        let error = ask("status == 200", body).unwrap_err();
        assert_eq!(error, ExpressionError::TooMuchInput(problem));
    }
    for body in [deep(DEEPEST), wide(MOST_VALUES - 2), long(MOST_TEXT)] {
        assert_eq!(ask("status == 200", body), Ok(true));
    }
    for (text, unread) in [
        (deep(DEEPEST + 1).to_string(), "more than 64 levels"),
        (wide(MOST_VALUES).to_string(), "more than 65536 values"),
        (long(MOST_TEXT + 1).to_string(), "more than 1 MiB of text"),
    ] {
        let error = ExpressionError::TooMuchInput(unread);
        assert_eq!(input(text.as_bytes()), Err(Unread::TooLarge(error)));
    }
    for text in ["", "{", "1 2", "nope", "{\"a\":}", "\u{1}"] {
        assert_eq!(input(text.as_bytes()), Err(Unread::NotJson), "{text}");
    }
    let whole =
        r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "ü\u0041"], "a": {}, "b": "\n"}"#;
    let read: Json = serde_json::from_str(whole).unwrap();
    assert_eq!(input(whole.as_bytes()), Ok(read));
}

#[test]
fn a_map_is_gone_through_in_the_order_of_its_keys() {
    let keys: Vec<_> = (0..200).map(|n| format!("k{n:03}")).collect();
    let body = Json::Object(keys.iter().map(|key| (key.clone(), json!(1))).collect());
    let expression = parse("body.map(k, k)[0] == 'k000' && body.map(k, k)[199] == 'k199'").unwrap();
    for _ in 0..20 {
        let inputs = [("status", json!(200)), ("body", body.clone())];
        assert_eq!(expression.evaluate(&inputs), Ok(true));
    }
}

/// As large as a reply of 64 KiB may be, in values or in text.
fn large() -> [Json; 4] {
    let objects = json!({ "a": 1 });
    let entries = (0..7_000).map(|n| (format!("k{n}"), json!(0)));
    [
        Json::Array(vec![json!(0); 32_000]),
        Json::Array(vec![objects; 8_000]),
        Json::Object(entries.collect()),
        json!("x".repeat(64_000)),
    ]
}

/// Text that repeats `part` up to the limit.
fn filled(before: &str, part: &str, after: &str) -> String {
    let times = (LONGEST - before.len() - after.len()) / part.len();
    format!("{before}{}{after}", part.repeat(times))
}

/// Each of them would take minutes, or all memory.
#[rstest]
#[case("body.all(a, body.all(b, body.all(c, a == b || b == c || true)))")]
#[case("body.exists(a, body.exists(b, a != a))")]
#[case("body.all(a, !(body in body))")]
#[case("body.filter(a, body.filter(b, body.filter(c, true) == []) == []) == []")]
#[case("body.all(a, body.all(b, a in body || true))")]
#[case(&filled("body.all(a, true", "&& body == body", ")"))]
#[case(&filled("body.exists(a, false", "|| body - 1 == 1", ")"))]
#[case(&filled("body.exists(a, false", "|| body[a + 0.5] == 1", ")"))]
#[case(&filled("body.all(a, size([", "body, ", "body]) > 0)"))]
fn work_is_bounded(#[case] text: &str) {
    let expression = parse(text).unwrap();
    for body in large().into_iter().take(3) {
        let outcome = expression.evaluate(&[("status", json!(200)), ("body", body)]);
        assert_eq!(outcome, Err(ExpressionError::TooMuchWork), "{text}");
    }
}

#[rstest]
// Doubles thirty times.
#[case(&format!("[body]{} == []", ".map(a, [a, a])".repeat(30)))]
#[case(&format!("['x']{} == []", ".map(a, a + a)".repeat(30)))]
fn memory_is_bounded(#[case] text: &str) {
    for body in large() {
        let outcome = ask(text, body);
        assert_eq!(outcome, Err(ExpressionError::TooMuchWork), "{text}");
    }
}

/// Not more than a list of some thousand needs.
#[rstest]
#[case("body.all(a, a.a == 1)", true)]
#[case("body.filter(a, a.a > 0).map(a, a.a).exists(a, a == 2)", false)]
#[case(
    "body.exists(a, has(a.b) && a.b.startsWith('x') || a.a in [3, 4, 5])",
    false
)]
fn what_is_usual_fits(#[case] text: &str, #[case] expected: bool) {
    let [_, objects, _, _] = large();
    assert_eq!(ask(text, objects), Ok(expected), "{text}");
}

/// Everything that nests, nested as far as the text allows: read, judged and dropped on the stack of a
/// thread of two mebibytes, in a build without optimization.
#[rstest]
#[case("(", "true", ")")]
#[case("[", "1", "] == 1")]
#[case("!", "body", "")]
#[case("!(", "body", ")")]
#[case("-", "status", " > 0")]
#[case("{1: ", "1", "} == 1")]
#[case("size(", "body", ") > 0")]
#[case("string(string(size(", "body", "))) == ''")]
#[case("body.all(a, ", "a", ")")]
#[case("true ? ", "true", " : true")]
#[case("true ? true : ", "true", "")]
#[case("1 + ", "1", " == 1")]
#[case("1 + (", "1", ") == 1")]
#[case("body == ", "body", "")]
#[case("body", "", ".all(a, a)")]
#[case("body", "", "[0]")]
#[case("body", "", ".a")]
#[case("body", "", ".contains('a')")]
#[case("true && ", "true", "")]
#[case("true && (false || ", "true", ")")]
#[case("f(", "1", ")")]
fn what_is_nested_deeply_ends_well(
    #[case] before: &str,
    #[case] middle: &str,
    #[case] after: &str,
) {
    let judge = move |text: String| {
        if let Ok(expression) = parse(&text) {
            let inputs = [("status", json!(200)), ("body", json!([[[{ "a": "b" }]]]))];
            let _ = expression.evaluate(&inputs);
        }
    };
    for times in (0..72).chain([100, 150, 250, 500]) {
        let text = format!("{}{middle}{}", before.repeat(times), after.repeat(times));
        if text.len() > LONGEST {
            break;
        }
        judge(text);
    }
    judge(filled(before, before.trim(), ""));
}

/// A piece of an expression, or of what looks like one.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "body",
        "status",
        "a",
        ".a",
        ".all(a, ",
        ".exists(a, ",
        ".map(a, ",
        ".filter(",
        "has(",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "&&",
        "||",
        "!",
        "==",
        "!=",
        "<",
        " in ",
        "+",
        "-",
        "*",
        "/",
        "%",
        "1",
        "0",
        "1u",
        "0.5",
        "'x'",
        "b'x'",
        "true",
        "null",
        "size(",
        "int(",
        "string(",
        ".contains(",
        "type(",
        " ",
        "\n",
        "//",
        "@result",
        "`",
        "9223372036854775807",
        "\\",
        "'",
        "\"",
    ];
    prop_oneof![
        9 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn whatever_is_read_is_judged(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        if let Ok(expression) = parse(&text) {
            let inputs = [("status", json!(200)), ("body", body())];
            let outcome = expression.evaluate(&inputs);
            prop_assert_ne!(&outcome, &Err(ExpressionError::Defect), "{}", text);
            prop_assert_eq!(expression.evaluate(&inputs), outcome);
        }
    }
}

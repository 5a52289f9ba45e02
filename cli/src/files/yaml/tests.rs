use rstest::rstest;
use serde_json::json;

use super::*;

fn values(text: &str) -> Vec<Value> {
    let (documents, mistake) = documents(text);
    assert_eq!(mistake, None);
    documents.iter().map(Node::value).collect()
}

#[rstest]
#[case::documents("a: 1\n---\nb: 2\n", json!([{"a": 1}, {"b": 2}]))]
#[case::comments("# one\n---\n# two\n---\na: 1 # three\n", json!([null, {"a": 1}]))]
#[case::windows_lines("a: 1\r\n---\r\nb: on\r\n", json!([{"a": 1}, {"b": true}]))]
#[case::byte_order_mark("\u{feff}a: 1", json!([{"a": 1}]))]
#[case::quoted("a: 'on'\nb: \"1\"\nc: |\n  no\n", json!([{"a": "on", "b": "1", "c": "no\n"}]))]
#[case::tagged("a: !!str 1\nb: !mine 2\nc: !!int 3", json!([{"a": "1", "b": "2", "c": 3}]))]
#[case::anchors("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", json!([{"a": {"b": 1}, "c": {"b": 1}, "d": {"e": 2, "b": 1}}]))]
#[case::keys("on: 1\n2: 3\n", json!([{"true": 1, "2": 3}]))]
#[case::json("{\"a\": [1, {\"b\": null}]}", json!([{"a": [1, {"b": null}]}]))]
fn yaml_is_read_as_kubectl_reads_it(#[case] text: &str, #[case] expected: Value) {
    assert_eq!(Value::Array(values(text)), expected);
}

#[rstest]
#[case("", 0)]
#[case("\n# nothing\n", 0)]
#[case("---\n---\n", 2)]
fn nothing_is_no_object(#[case] text: &str, #[case] documents: usize) {
    let (found, mistake) = super::documents(text);
    assert_eq!((found.len(), mistake), (documents, None));
    assert!(found.iter().all(Node::is_empty));
}

#[rstest]
#[case("a: 1\nb: [1\nc: 2\n", 3, "it is not YAML")]
#[case("a: 1\nb:\n\t- c\n", 3, "it is not YAML")]
#[case("a: 1\nb: 2\na: 3\n", 3, "the key `a` is written twice")]
#[case("a: *b\n", 1, "it is not YAML")]
#[case(
    "a:\n- cron: * * * * *\n",
    2,
    "; put what begins with * or @ in quotes"
)]
#[case("cron: @daily\n", 1, "; put what begins with * or @ in quotes")]
#[case("? [1]\n: 2\n", 1, "a key is no plain text")]
#[case("~: 2\n", 1, "a key is empty")]
fn mistakes_name_their_line(#[case] text: &str, #[case] line: usize, #[case] problem: &str) {
    let mistake = documents(text).1.unwrap();
    assert!(mistake.problem.contains(problem), "{mistake:?}");
    assert_eq!(mistake.line, line, "{mistake:?}");
}

#[test]
fn aliases_do_not_unfold_without_bound() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let mistake = documents(&text).1.unwrap();
    assert!(
        mistake.problem.contains("more than 1000000 values"),
        "{mistake:?}"
    );
}

#[rstest]
#[case("spec.open[1].cron", 5)]
#[case("spec.open[1].duration", 4)]
#[case("spec.open[7]", 3)]
#[case("metadata.annotations[a.b/c]", 8)]
#[case("", 1)]
fn a_path_leads_to_its_line(#[case] path: &str, #[case] line: usize) {
    let text = "spec:\n  open:\n  - cron: a\n  - name: x\n    cron: b\nmetadata:\n  annotations:\n    a.b/c: d\n";
    let documents = documents(text).0;
    assert_eq!(documents[0].at(path).line, line);
}

/// A file may name thousands of anchors around each other that nobody uses.
#[test]
fn what_an_alias_stands_for_is_shared_and_not_copied() {
    let (documents, mistake) = documents("a: &x {b: [1, 2]}\nc: *x\nd: {<<: *x}\n");
    assert_eq!(mistake, None);
    let of = |path: &str| documents[0].at(path).content.clone();
    assert!(Rc::ptr_eq(&of("a"), &of("c")));
    assert!(Rc::ptr_eq(&of("a.b"), &of("d.b")));
}

//! What the worst replies cost while they are read.

use allocation_counter::measure;
use rstest::rstest;

use super::*;

/// As long as a reply may be.
const LONGEST: usize = 1 << 20;

/// A reply that is filled with `piece`, again and again, between `head` and `tail`.
fn filled(head: &str, piece: &str, tail: &str) -> Vec<u8> {
    let pieces = (LONGEST - head.len() - tail.len()) / piece.len();
    [head, &piece.repeat(pieces), tail].concat().into_bytes()
}

const VECTOR: &str = r#"{"status":"success","data":{"resultType":"vector","result":["#;

/// As a tree the worst of them would take 98 MiB.
#[rstest]
#[case::numbers(filled(VECTOR, "1,", "1]}}"))]
#[case::lists(filled(VECTOR, "[],", "[]]}}"))]
#[case::objects(filled(VECTOR, r#"{"a":1},"#, "{}]}}"))]
#[case::samples(filled(VECTOR, r#"{"value":[1,"1"]},"#, "{}]}}"))]
#[case::labels(filled(&format!(r#"{VECTOR}{{"metric":{{"#), r#""a":1,"#, r#""b":1}}]}}"#))]
#[case::warnings(filled(r#"{"status":"success","warnings":["#, "{},", "{}]}"))]
#[case::unknown(filled(r#"{"status":"success","x":["#, r#"{"a":1},"#, "{}]}"))]
#[case::deep(filled("", "[", ""))]
#[case::deep_where_it_is_skipped(filled(r#"{"x":"#, "[", ""))]
#[case::nested(filled(VECTOR, r#"{"value":["#, ""))]
#[case::long_text(filled(&format!(r#"{VECTOR}1,""#), "a", r#""]}}"#))]
#[case::escapes(filled(&format!(r#"{VECTOR}1,""#), r"\n", r#""]}}"#))]
#[case::error(filled(r#"{"status":"error","errorType":""#, r"\n", r#""}"#))]
fn no_reply_takes_more_than_its_own_length_again(#[case] body: Vec<u8>) {
    assert!(body.len() > LONGEST - 32);
    let reply = Reply::new(200, body);
    let taken = measure(|| drop(read(&reply, "http://prometheus.test", false)));
    assert!(
        taken.bytes_max <= 2 * LONGEST as u64,
        "{} bytes",
        taken.bytes_max
    );
}

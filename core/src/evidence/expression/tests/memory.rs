//! What the worst bodies cost, from the first byte that is read to the answer.

use allocation_counter::measure;

use super::*;
use crate::evidence::expression::input;

/// As long as a body may be.
const LONGEST: usize = 1 << 20;
/// The most that one body may take at once, in bytes, besides its own text.
const MOST: u64 = 48 << 20;

/// A body that is filled with `piece`, again and again.
fn filled(head: &str, piece: &str, tail: &str) -> Vec<u8> {
    let pieces = (LONGEST - head.len() - tail.len()) / piece.len();
    [head, &piece.repeat(pieces), tail].concat().into_bytes()
}

/// The same with as many pieces as may be: `values` in each.
fn most(head: &str, piece: &str, tail: &str, values: usize) -> Vec<u8> {
    let pieces = (MOST_VALUES - 4) / values;
    [head, &piece.repeat(pieces), tail].concat().into_bytes()
}

/// Bytes at once, and what came of it.
fn taken(body: &[u8], text: &str) -> (u64, String) {
    let expression = Expression::parse(text, &["status", "body"]).unwrap();
    let mut said = String::new();
    let taken = measure(|| {
        said = match input(body) {
            Err(error) => format!("{error:?}"),
            Ok(body) => {
                let inputs = [("status", json!(200)), ("body", body)];
                // On this thread, so that it is counted.
                format!("{:?}", expression.run(&inputs, &Meter::full(), truth))
            }
        };
    });
    (taken.bytes_max, said)
}

/// Objects in objects in objects.
fn chain(length: usize) -> String {
    format!("{}0{},", r#"{"":"#.repeat(length), "}".repeat(length))
}

/// As whole trees they would take up to 126 MiB, before anything is evaluated.
#[rstest]
#[case::numbers(filled("[", "1,", "1]"))]
#[case::lists(filled("[", "[],", "[]]"))]
#[case::objects(filled("[", r#"{"":0},"#, "{}]"))]
#[case::entries(filled("{", r#""a":0,"#, r#""a":0}"#))]
#[case::deep(filled("", "[", ""))]
#[case::most_numbers(most("[", "1,", "1]", 1))]
#[case::most_lists(most("[", "[],", "[]]", 1))]
#[case::most_lists_of_one(most("[", "[0],", "[]]", 2))]
#[case::most_objects(most("[", r#"{"":0},"#, "{}]", 3))]
#[case::most_objects_in_objects(most("[", &chain(60), "{}]", 121))]
#[case::long_texts(most("[", r#""aaaaaaaaaaaa","#, "1]", 1))]
fn no_body_takes_more_than_there_is_room_for(#[case] body: Vec<u8>) {
    for text in [
        "body == 1",
        "[[[body, body], [body, body]], [[body, body], [body, body]]] == []",
        "body.map(x, [x, x]).size() > 0",
    ] {
        let (bytes, said) = taken(&body, text);
        assert!(bytes <= MOST, "{bytes} bytes: {text}: {said}");
    }
}

/// None of them is more than there may be, so that it is evaluated.
#[test]
fn what_is_within_the_bounds_is_read() {
    for body in [
        most("[", "1,", "1]", 1),
        most("[", r#"{"":0},"#, "{}]", 3),
        most("[", &chain(60), "{}]", 121),
    ] {
        let read = serde_json::from_slice::<Json>(&body).unwrap();
        assert!(input(&body) == Ok(read));
    }
}

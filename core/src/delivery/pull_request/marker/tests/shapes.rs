//! Files of any shape: what is marked is known from how they were made.

use proptest::prelude::*;

use super::*;

/// What stands behind a value that is to change.
const MARKER: &str = " # {\"$promotion\": \"flux-system:podinfo:prod\"}";

/// What else stands behind values.
const COMMENTS: [&str; 5] = [
    "",
    "",
    " # {\"$imagepolicy\": \"flux-system:podinfo:tag\"}",
    "\t# {\"$promotion\": \"flux-system:podinfo:dev\"}",
    " # 'more\": [",
];

/// Values as they are written, in each style.
const VALUES: [&str; 16] = [
    "6.1.0",
    "1.10",
    "true",
    "main@sha1:4f2a",
    "a b  c",
    "x:y",
    "'6.1.0'",
    "'it''s'",
    "''",
    "'a # b'",
    "\"6.1.0\"",
    "\"a\\\"b # c\"",
    "\"\\u00e9ü\"",
    "\"\"",
    "&a 6.1.0",
    "!!str \"6\"",
];

#[derive(Clone, Debug)]
enum Node {
    /// One of the values, marked or with one of the comments behind it.
    Value {
        value: usize,
        comment: Option<usize>,
    },
    Map(Vec<Node>),
    List(Vec<Node>),
    /// In brackets, on several lines.
    Flow(Vec<Node>),
    Block,
    /// Lines that say nothing, before a value.
    Spaced(Box<Node>),
}

fn node() -> impl Strategy<Value = Node> {
    let comment = prop::option::weighted(0.5, 0..COMMENTS.len());
    let value = (0..VALUES.len(), comment)
        .prop_map(|(value, comment)| Node::Value { value, comment })
        .boxed();
    let leaf = prop_oneof![8 => value.clone(), 1 => Just(Node::Block)];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            4 => some().prop_map(Node::Map),
            2 => some().prop_map(Node::List),
            1 => prop::collection::vec(value.clone(), 0..4).prop_map(Node::Flow),
            1 => inner.prop_map(|node| Node::Spaced(Box::new(node))),
        ]
    })
}

/// What a file consists of.
#[derive(Debug)]
enum Piece {
    Fixed(String),
    /// A value with a marker behind it, as it is written.
    Marked(&'static str),
}

#[derive(Debug)]
struct File(Vec<Piece>);

impl File {
    fn of(documents: &[Node], is_dos: bool, has_bom: bool, ends: bool) -> Self {
        let mut file = Self(Vec::new());
        file.push(if has_bom { "\u{feff}" } else { "" });
        for document in documents {
            file.push("---");
            file.node(document, "");
        }
        if let Some(Piece::Fixed(last)) = file.0.last_mut().filter(|_| !ends) {
            last.pop();
        }
        if is_dos {
            for piece in &mut file.0 {
                if let Piece::Fixed(text) = piece {
                    *text = text.replace('\n', "\r\n");
                }
            }
        }
        file
    }

    fn text(&self) -> String {
        let texts = self.0.iter().map(|piece| match piece {
            Piece::Fixed(text) => text,
            Piece::Marked(value) => *value,
        });
        texts.collect()
    }

    fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Fixed(last)) => last.push_str(text),
            _ => self.0.push(Piece::Fixed(text.to_owned())),
        }
    }

    /// What comes after a key, a dash or the beginning of a document.
    fn node(&mut self, node: &Node, pad: &str) {
        let inner = format!("{pad}  ");
        match node {
            Node::Value { value, comment } => {
                self.push(" ");
                self.value(VALUES[*value], "", *comment);
            }
            Node::Map(nodes) => {
                self.push("\n");
                for (n, node) in nodes.iter().enumerate() {
                    self.push(&format!("{pad}k{n}:"));
                    self.node(node, &inner);
                }
            }
            Node::List(nodes) => {
                self.push("\n");
                for node in nodes {
                    self.push(&format!("{pad}-"));
                    self.node(node, &inner);
                }
            }
            Node::Flow(nodes) => {
                self.push(" [\n");
                for node in nodes {
                    if let Node::Value { value, comment } = node {
                        self.push(&inner);
                        self.value(VALUES[*value], ",", *comment);
                    }
                }
                self.push(&format!("{inner}]\n"));
            }
            Node::Block => self.push(&format!(" |\n{inner}  v: 6.1.0{MARKER}\n")),
            Node::Spaced(node) => {
                self.push(&format!(" # 6.1.0\n\n{inner}"));
                self.node(node, &inner);
            }
        }
    }

    fn value(&mut self, value: &'static str, comma: &str, comment: Option<usize>) {
        // An anchor or a tag is not part of what changes.
        let (before, scalar) = match value.split_once(' ') {
            Some((before, scalar)) if before.starts_with(['&', '!']) => (before, scalar),
            _ => ("", value),
        };
        self.push(&format!("{before} "));
        let comment = match comment {
            Some(comment) => {
                self.push(scalar);
                COMMENTS[comment]
            }
            None => {
                self.0.push(Piece::Marked(scalar));
                MARKER
            }
        };
        self.push(&format!("{comma}{comment}\n"));
    }
}

/// The text of one scalar that is written so, as another program reads it.
fn read(scalar: &str) -> serde_json::Value {
    serde_saphyr::from_str(scalar).unwrap()
}

/// Whether `edited` is the file with `revision` in what is marked, in its own quotes.
fn is_the_file_with(edited: &str, file: &File, revision: &str) {
    let mut rest = edited;
    for piece in &file.0 {
        match piece {
            Piece::Fixed(text) => {
                assert!(rest.starts_with(text.as_str()), "{rest:?} is not {text:?}");
                rest = &rest[text.len()..];
            }
            Piece::Marked(old) => {
                let end = [MARKER.to_owned(), format!(",{MARKER}")];
                let end = end.iter().filter_map(|end| rest.find(end)).min().unwrap();
                let (new, after) = rest.split_at(end);
                assert_eq!(read(new), serde_json::json!(revision), "{new}");
                match old.as_bytes()[0] {
                    quote @ (b'"' | b'\'') => assert_eq!(new.as_bytes()[0], quote, "{new}"),
                    _ => assert!(new == revision || new.starts_with('"'), "{new}"),
                }
                rest = after;
            }
        }
    }
    assert_eq!(rest, "");
}

fn revision() -> impl Strategy<Value = String> {
    let known = [
        "6.1.6",
        "1.10",
        "6.1.0",
        "true",
        "010",
        "0x1f",
        "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
    ];
    let digits = "[0-9._e+:-]{1,12}";
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        digits,
        "[!-~ü]{1,40}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Only marked bytes change, and what is then written there is read as the revision.
    #[test]
    fn marked_values_change_and_nothing_else(
        documents in prop::collection::vec(node(), 1..3),
        (is_dos, has_bom, ends) in any::<(bool, bool, bool)>(),
        revision in revision(),
    ) {
        let Ok(revision) = Revision::parse(&revision) else { return Ok(()) };
        let file = File::of(&documents, is_dos, has_bom, ends);
        let text = file.text();
        let marked = file.0.iter().filter(|piece| matches!(piece, Piece::Marked(_))).count();
        let made = edited(text.as_bytes(), &PROD, &revision);
        if marked == 0 {
            let mistake = Mistake::NoMarker(PROD.to_string());
            prop_assert_eq!(made, Err(mistake), "{}", text);
            return Ok(());
        }
        let new = match made {
            Ok(Edited::Changed(new)) => {
                prop_assert_ne!(&new, &text);
                new
            }
            Ok(Edited::AlreadyThere) => text,
            Err(mistake) => return Err(TestCaseError::fail(format!("{mistake}\n{text}"))),
        };
        is_the_file_with(&new, &file, revision.as_str());
        let again = edited(new.as_bytes(), &PROD, &revision);
        prop_assert_eq!(again, Ok(Edited::AlreadyThere));
    }
}

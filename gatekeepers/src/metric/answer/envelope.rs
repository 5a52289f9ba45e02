//! What is kept of a reply of the query API while it is parsed: a few short words and some counts, even
//! if the reply is long.
//!
//! What comes in: JSON that anybody may have written. What goes out: an [`Envelope`]. A reply of a
//! mebibyte may hold half a million values: only the one that is looked for is kept.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The longest text that is kept, in bytes: a number takes less.
const LONGEST: usize = 64;

/// A reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope {
    pub(super) status: Status,
    pub(super) data: Option<Data>,
    pub(super) error_type: Option<Word>,
    #[serde(default)]
    pub(super) warnings: Warnings,
}

/// Whether it is an answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Status {
    Success,
    Error,
}

/// The answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) result_type: Word,
    pub(super) result: Found,
}

/// A text. None: it is longer than any text that is used.
pub(super) struct Word(pub(super) Option<String>);

/// How many warnings there are.
#[derive(Default)]
pub(super) struct Warnings(pub(super) usize);

/// The result of the query: a list, as far as it is looked at, or something else.
#[derive(Default)]
pub(super) struct Found {
    /// How many values the list holds. None: it is no list.
    pub(super) count: Option<usize>,
    /// The first two of them.
    first: Item,
    second: Item,
}

/// A value in a list.
#[derive(Default)]
enum Item {
    Text(Word),
    Sample(Sample),
    #[default]
    Other,
}

/// A series and its value.
#[derive(Default)]
pub(super) struct Sample {
    /// The text in `[instant, text]`.
    pub(super) value: Option<Word>,
    /// Whether it has a histogram instead.
    pub(super) has_histogram: bool,
}

impl Word {
    fn of(text: &str) -> Self {
        Self((text.len() <= LONGEST).then(|| text.to_owned()))
    }

    /// The text.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Found {
    /// The text in `[instant, text]`, if it is such a pair.
    pub(super) fn into_pair(self) -> Option<Word> {
        match self.second {
            Item::Text(text) => Some(text),
            Item::Sample(_) | Item::Other => None,
        }
    }

    /// The first value, if it is a sample.
    pub(super) fn into_sample(self) -> Option<Sample> {
        match self.first {
            Item::Sample(sample) => Some(sample),
            Item::Text(_) | Item::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Word, E> {
                Ok(Word::of(text))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl<'de> Deserialize<'de> for Warnings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counted;
        impl<'de> Visitor<'de> for Counted {
            type Value = Warnings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Warnings, A::Error> {
                Ok(Warnings(rest(&mut list)?))
            }
        }
        deserializer.deserialize_seq(Counted)
    }
}

/// Reads the rest of a list. Returns how many values that was.
fn rest<'de, A: SeqAccess<'de>>(list: &mut A) -> Result<usize, A::Error> {
    let mut count = 0;
    while list.next_element::<IgnoredAny>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// A visitor that takes any value. Values that are not looked at become the default.
macro_rules! anything {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Found;

            anything!();

            fn visit_str<E>(self, _: &str) -> Result<Found, E> {
                Ok(Found::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Found::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
                let mut found = Found {
                    count: Some(0),
                    ..Found::default()
                };
                let Some(first) = list.next_element()? else {
                    return Ok(found);
                };
                found.first = first;
                found.count = Some(1);
                if let Some(second) = list.next_element()? {
                    found.second = second;
                    found.count = Some(2 + rest(&mut list)?);
                }
                Ok(found)
            }
        }
        deserializer.deserialize_any(List)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Item;

            anything!();

            fn visit_str<E>(self, text: &str) -> Result<Item, E> {
                Ok(Item::Text(Word::of(text)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Item, A::Error> {
                rest(&mut list)?;
                Ok(Item::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                let mut sample = Sample::default();
                while let Some(Word(key)) = map.next_key()? {
                    match key.as_deref() {
                        Some("value") => {
                            sample.value = map.next_value::<Found>()?.into_pair();
                        }
                        Some("histogram") => {
                            map.next_value::<IgnoredAny>()?;
                            sample.has_histogram = true;
                        }
                        Some(_) | None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Item::Sample(sample))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

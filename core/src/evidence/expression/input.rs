//! JSON that anybody may have written, read within the limits for what an expression may be asked about:
//! reading stops at the limit, before the rest takes any memory.
//!
//! What comes in: a text. What goes out: its value, of at most [`MOST_VALUES`] values, [`MOST_TEXT`]
//! bytes of text and [`DEEPEST`] levels.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

use super::{DEEPEST, ExpressionError, MOST_TEXT, MOST_VALUES};

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is no JSON.
    NotJson,
    /// It is larger than expressions may be asked about.
    TooLarge(ExpressionError),
}

/// Reads a text.
///
/// # Errors
/// It is no JSON, or beyond the bounds.
pub fn read(text: &[u8]) -> Result<Json, Unread> {
    let (mut size, mut beyond) = (Size::default(), None);
    let mut json = serde_json::Deserializer::from_slice(text);
    let seed = Bounded {
        size: &mut size,
        beyond: &mut beyond,
        depth: 0,
    };
    let read = seed
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value));
    match beyond {
        Some(error) => Err(Unread::TooLarge(error)),
        None => read.map_err(|_| Unread::NotJson),
    }
}

/// How much there is to judge.
#[derive(Default)]
pub(super) struct Size {
    values: usize,
    text: usize,
}

impl Size {
    /// Adds a value that is in memory already.
    pub(super) fn add(&mut self, json: &Json, depth: usize) -> Result<(), ExpressionError> {
        self.add_value(depth)?;
        match json {
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
            Json::String(text) => self.add_text(text),
            Json::Array(items) => items.iter().try_for_each(|item| self.add(item, depth + 1)),
            Json::Object(entries) => {
                self.add_object(depth)?;
                entries.iter().try_for_each(|(key, item)| {
                    self.add_text(key)?;
                    self.add(item, depth + 1)
                })
            }
        }
    }

    /// That a value is an object: with its first key it takes as much memory as twenty numbers.
    fn add_object(&mut self, depth: usize) -> Result<(), ExpressionError> {
        self.add_value(depth)
    }

    /// Adds a value without what is in it.
    fn add_value(&mut self, depth: usize) -> Result<(), ExpressionError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(ExpressionError::TooMuchInput("more than 65536 values"));
        }
        match depth > DEEPEST {
            true => Err(ExpressionError::TooMuchInput("more than 64 levels")),
            false => Ok(()),
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), ExpressionError> {
        self.text += text.len();
        match self.text > MOST_TEXT {
            true => Err(ExpressionError::TooMuchInput("more than 1 MiB of text")),
            false => Ok(()),
        }
    }
}

/// Reads a value, and counts it first.
struct Bounded<'a> {
    size: &'a mut Size,
    /// What is beyond the bounds: the parser's errors have no place for it.
    beyond: &'a mut Option<ExpressionError>,
    depth: usize,
}

impl Bounded<'_> {
    fn inner(&mut self) -> Bounded<'_> {
        Bounded {
            size: self.size,
            beyond: self.beyond,
            depth: self.depth + 1,
        }
    }

    fn count<E: Error>(
        &mut self,
        count: impl FnOnce(&mut Size) -> Result<(), ExpressionError>,
    ) -> Result<(), E> {
        count(self.size).map_err(|error| {
            let words = E::custom(&error);
            *self.beyond = Some(error);
            words
        })
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Json, D::Error> {
        let depth = self.depth;
        self.count(|size| size.add_value(depth))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<Json, E> {
        self.count(|size| size.add_text(text))?;
        Ok(Json::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Json, A::Error> {
        let depth = self.depth;
        self.count(|size| size.add_object(depth))?;
        let mut entries = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.count(|size| size.add_text(&key))?;
            let item = map.next_value_seed(self.inner())?;
            entries.insert(key, item);
        }
        Ok(Json::Object(entries))
    }
}

//! What came of reading a text somewhere in the cluster.

use std::sync::Arc;

/// A text, as it was read and understood.
#[derive(Debug)]
pub enum Reading<T> {
    /// Here is what it says.
    Read(Arc<T>),
    /// It cannot be read, and why.
    Unavailable(String),
    /// It was had and makes no sense, and why.
    Broken(String),
}

impl<T> Reading<T> {
    /// What `parse` makes of a text.
    pub fn of(bytes: &[u8], parse: impl FnOnce(&str) -> Result<T, String>) -> Self {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
        match text.and_then(parse) {
            Ok(read) => Reading::Read(Arc::new(read)),
            Err(why) => Reading::Broken(why),
        }
    }
}

/// Copies the reading, not the text.
impl<T> Clone for Reading<T> {
    fn clone(&self) -> Self {
        match self {
            Reading::Read(text) => Reading::Read(Arc::clone(text)),
            Reading::Unavailable(why) => Reading::Unavailable(why.clone()),
            Reading::Broken(why) => Reading::Broken(why.clone()),
        }
    }
}

/// The same reading, or one that says the same.
impl<T: PartialEq> PartialEq for Reading<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Reading::Read(a), Reading::Read(b)) => Arc::ptr_eq(a, b) || a == b,
            (Reading::Unavailable(a), Reading::Unavailable(b))
            | (Reading::Broken(a), Reading::Broken(b)) => a == b,
            (Reading::Read(_) | Reading::Unavailable(_) | Reading::Broken(_), _) => false,
        }
    }
}

//! Names of what is made for the branches of an object.

use std::collections::BTreeSet;

use sluice_core::delivery::pull_request::Key;

/// The most characters of a name of ours.
const LONGEST: usize = 63;
/// How many hexadecimal digits tell names apart that would be the same.
const DIGITS: usize = 8;

/// The names that were given. None is given twice.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name that says what it is for: the parts, as far as names may have such characters.
    pub(super) fn name(&mut self, parts: &[&str]) -> String {
        let lowered = parts.join("-").to_ascii_lowercase();
        let plain = lowered.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let plain = plain.trim_matches('-');
        let name = match plain.len() <= LONGEST && !self.0.contains(plain) {
            true => plain.to_owned(),
            false => {
                let key = Key::of(parts).to_string();
                // It is ASCII.
                let begin = &plain[..plain.len().min(LONGEST - DIGITS - 1)];
                format!("{}-{}", begin.trim_end_matches('-'), &key[..DIGITS])
            }
        };
        self.0.insert(name.clone());
        name
    }
}

//! Conditions, as kstatus reads them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition that an object can be relied on.
pub const READY: &str = "Ready";
/// The condition that a gate is open.
pub const OPENED: &str = "Opened";
/// The condition that work is under way; present only while it is.
pub const RECONCILING: &str = "Reconciling";
/// The condition that nothing goes on before somebody changes something; present only then.
pub const STALLED: &str = "Stalled";

/// The most bytes of a condition's message that the API takes.
const LONGEST_MESSAGE: usize = 32_768;

/// What a condition should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its type.
    pub type_: &'static str,
    /// True or False.
    pub holds: bool,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Wanted {
    /// What it should say.
    pub fn new(
        type_: &'static str,
        holds: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            holds,
            reason: reason.into(),
            message: message.into(),
        }
    }
}

/// The wanted conditions, each with the instant of its last change: the one it has among
/// `before`, unless it changes now.
pub fn settle(
    wanted: Vec<Wanted>,
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let settled = wanted.into_iter().map(
        |Wanted {
             type_,
             holds,
             reason,
             message,
         }| {
            let status = if holds { "True" } else { "False" }.to_owned();
            let unchanged = find(before, type_).filter(|old| old.status == status);
            Condition {
                type_: type_.to_owned(),
                reason,
                message: cut(message, LONGEST_MESSAGE),
                observed_generation: generation,
                last_transition_time: unchanged
                    .map_or_else(|| Time(now), |old| old.last_transition_time.clone()),
                status,
            }
        },
    );
    settled.collect()
}

/// The condition of a type.
pub fn find<'c>(conditions: &'c [Condition], type_: &str) -> Option<&'c Condition> {
    conditions.iter().find(|it| it.type_ == type_)
}

/// The condition of a type, if it is true.
pub fn find_true<'c>(conditions: &'c [Condition], type_: &str) -> Option<&'c Condition> {
    find(conditions, type_).filter(|it| it.status == "True")
}

/// At most so many of the names, and how many more there are.
pub(crate) fn listed(names: &[String], most: usize) -> String {
    let mut text = names[..names.len().min(most)].join(", ");
    if names.len() > most {
        text.push_str(&format!(" and {} more", names.len() - most));
    }
    text
}

/// `text`, or as much of its beginning as fits into `bytes`.
pub fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let mut end = bytes.saturating_sub('…'.len_utf8());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(holds: bool) -> Vec<Wanted> {
        vec![Wanted {
            type_: READY,
            holds,
            reason: "R".into(),
            message: "m".into(),
        }]
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = settle(wanted(true), &[], Some(1), at(10));
        let same = settle(wanted(true), &first, Some(2), at(20));
        assert_eq!(same[0].last_transition_time, Time(at(10)));
        assert_eq!(same[0].observed_generation, Some(2));
        let other = settle(wanted(false), &same, Some(2), at(30));
        assert_eq!(other[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(cut("ééééé".to_owned(), 8), "éé…");
        assert_eq!(cut("short".to_owned(), 8), "short");
    }
}

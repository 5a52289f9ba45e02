//! Whether the decision that a status has is still current.
//!
//! A consumer decides again at each look. Its status keeps the old decision as long as the new one says
//! nothing new to a reader: that something was measured again is no reason to write.

use sluice_crds::Decision;

use crate::gate::set::Gathered;
use crate::verdict::question::Question;

/// The decision that a status keeps: `before`, which it has, unless `now` says something new to a reader.
///
/// `gates` have made `now` as the answer to `question`. `is_requested`: somebody has asked for a look,
/// and is shown everything as it is now.
pub fn kept<'d>(
    gates: &Gathered,
    question: Question<'_>,
    before: Option<&'d Decision>,
    now: Option<&'d Decision>,
    is_requested: bool,
) -> Option<&'d Decision> {
    let is_current = |now: &Decision| {
        let same = |before| gates.tells_the_same(before, now, question);
        !is_requested && before.is_some_and(same)
    };
    now.filter(|now| !is_current(now)).or(before)
}

//! What a kind of gatekeeper is: the part of a spec that describes its rule ([`KindSpec`]), and that rule
//! together with its evidence, ready to be asked ([`Judge`]).
//!
//! Each kind implements both in its own module. All other code asks through these traits, so that a new
//! kind is one line in [`super::kind`].

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::{ConfigMapKeyReference, EvidenceStatus, PipelineRule};
use sluice_crds::{Gatekeeper, Pipeline, Setting};

use super::Evidence;
use super::approval::Ballot;
use super::given::{self, Given};
use super::named::Named;
use crate::evidence::reading::Reading;
use crate::text::refusal::Refusals;
use crate::time::clock::Now;
use crate::time::span::Span;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

/// The part of a spec that makes a gatekeeper one of a kind.
pub(crate) trait KindSpec {
    /// The rule with its evidence.
    ///
    /// # Errors
    /// Everything that is wrong with the spec, whether or not admission would have refused it.
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals>;

    /// Everything that is wrong with the spec.
    ///
    /// # Errors
    /// The mistakes.
    fn check(&self) -> Result<(), Refusals> {
        let setup = Setup {
            on_error: Setting::Closed,
            evidence: &Evidence::default(),
            period: Period::From(Timestamp::UNIX_EPOCH),
        };
        self.judge(&setup).map(drop)
    }

    /// The texts in ConfigMaps that it is judged from.
    fn texts(&self) -> Vec<Text<'_>> {
        Vec::new()
    }

    /// What can be observed without a controller, from these texts. Nothing where some of them were not
    /// looked at, and nothing for measurements.
    fn read(&self, _texts: &dyn Texts) -> Evidence {
        Evidence::default()
    }

    /// What it is judged from: what was observed for `object`, and what else is known.
    fn complete(&self, _object: &Gatekeeper, observed: Evidence, _known: &dyn Known) -> Evidence {
        observed
    }

    /// What it sees in a simulation, as somebody states it.
    ///
    /// # Errors
    /// It sees something else, or nothing.
    fn given(&self, _given: Given, _during: &given::Course<'_>) -> Result<Evidence, String> {
        Err(given::MEASURES_NOTHING.to_owned())
    }
}

/// What a rule is made ready with.
pub(crate) struct Setup<'a> {
    /// What it says where evidence is unavailable.
    pub on_error: Setting,
    /// What was observed.
    pub evidence: &'a Evidence,
    /// The instants that it is asked about.
    pub period: Period,
}

/// The instants that a gatekeeper is made ready for. It answers for every other instant too, at a higher
/// cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Period {
    /// This one, and some time after it.
    From(Timestamp),
    /// All of these, with as many changes as they hold.
    Within(Span),
}

/// A text in a ConfigMap, as a spec names it.
pub(crate) struct Text<'a> {
    /// Where it is, in the gatekeeper's namespace.
    pub reference: &'a ConfigMapKeyReference,
    /// The field of the spec that it belongs to.
    pub field: &'static str,
    /// What happens where it cannot be read, such as `onError decides`.
    pub without: &'static str,
    /// What is wrong with such a text, with the remedy behind the last `; `.
    pub check: Check<'a>,
}

/// What is wrong with a text.
pub(crate) type Check<'a> = Box<dyn Fn(&[u8]) -> Result<(), String> + 'a>;

/// Texts that gatekeepers in one namespace are judged from.
pub(crate) trait Texts {
    /// A text in a ConfigMap. Err: why it cannot be read. None: nothing was read here, because only the
    /// controller reads it.
    fn text(&self, reference: &ConfigMapKeyReference) -> Option<Result<&[u8], String>>;
    /// Why nothing is read from addresses. None: only the controller reads them.
    fn without_addresses(&self) -> Option<String>;
}

/// What is known in addition to what was observed for a gatekeeper.
pub trait Known {
    /// Whether it is verified who votes and who reports.
    fn is_verified(&self, gatekeeper: &Gatekeeper) -> bool;
    /// The Approvals that name a gatekeeper.
    fn ballot(&self, gatekeeper: &Gatekeeper) -> Arc<Ballot>;
    /// What is wrong with an Approval that may be for a gatekeeper, and that cannot be read.
    fn unreadable(&self, gatekeeper: &Gatekeeper) -> Option<Arc<str>>;
    /// The Pipeline that a gatekeeper names. None: nobody has looked.
    fn pipeline(
        &self,
        gatekeeper: &Gatekeeper,
        named: &PipelineRule,
    ) -> Option<Named<Arc<Pipeline>>>;
}

/// What answers are based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The clock, and what people write. It opens nothing while the clock cannot be relied on.
    Clock,
    /// Texts only.
    Texts,
    /// Evidence that has to be observed again and again. It is renewed before it expires, and its next
    /// value is not known.
    Measurements,
    /// What somebody reports until an instant. Reports are renewed before they expire. As with
    /// [`Basis::Clock`], they open nothing while the clock cannot be relied on.
    Reports,
    /// Other gates. Each of them handles all of this itself.
    Gates,
}

/// What a gatekeeper says at an instant, as a schedule's walk over its windows finds it.
pub(crate) type Walk<'a> = Box<dyn FnMut(Timestamp) -> Option<Opinion> + 'a>;

/// The rule of a gatekeeper with its evidence.
///
/// It is not asked while its gatekeeper is suspended.
pub(crate) trait Judge: fmt::Debug + Send + Sync {
    /// What it says. Evidence has to be good at [`Question::evidence_at`].
    fn opinion(&self, question: Question<'_>) -> Opinion;

    /// Why it says so, in a sentence. That the clock cannot be relied on is explained elsewhere.
    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String;

    /// The same without instants and values, which would make the words different each day or at each
    /// look.
    fn cause(&self, opinion: &Opinion, question: Question<'_>) -> String {
        self.explain(opinion, question)
    }

    /// What its answers are based on.
    fn basis(&self) -> Basis;

    /// Whether there is evidence that has not been read yet, so that the verdict in the status may be
    /// used instead. A verdict about no particular revision may be used only for such questions.
    fn is_unread(&self, question: Question<'_>) -> bool;

    /// Until when everything that was observed may be relied on. None: until a change is seen.
    fn good_until(&self) -> Option<Timestamp>;

    /// Whether its words may differ after each look although they mean the same: such a change is not
    /// reported.
    fn has_volatile_message(&self) -> bool {
        false
    }

    /// What the status shows of the evidence at `now`.
    fn status(&self, _now: Timestamp) -> EvidenceStatus {
        EvidenceStatus::default()
    }

    /// Removes from what a status shows what may differ after each look although it means the same.
    fn remove_measurements(&self, _shown: &mut EvidenceStatus) {}

    /// What the conditions are about, where its verdict has this reason.
    fn trouble(&self, reason: Reason) -> Reason {
        reason
    }

    /// Whether it was made ready for `at`.
    fn is_ready_for(&self, _at: Timestamp) -> bool {
        true
    }

    /// What it says at one instant after another, in ascending order, where that is cheaper than to ask
    /// for each opinion. None: it is not cheaper.
    fn walk(&self) -> Option<Walk<'_>> {
        None
    }

    /// How many other gatekeepers one answer has to ask: those behind the gates that it names.
    fn weight_behind(&self) -> usize {
        0
    }

    /// Until when the evidence that has not expired at `now` may be relied on.
    fn good_after(&self, _now: Timestamp) -> Option<Timestamp> {
        self.good_until()
    }

    /// Whether anything behind the gates that it names only repeats what its status reports.
    fn uses_status_fallback_behind(&self, _now: Now) -> bool {
        false
    }

    /// When time changes what the gates that it names say.
    fn next_change_behind(&self, _question: Question<'_>) -> Option<Timestamp> {
        None
    }
}

/// The lists that `references` name, read. None: some of them were not read.
pub(super) fn lists<'a, T>(
    texts: &dyn Texts,
    references: impl Iterator<Item = &'a ConfigMapKeyReference>,
    parse: fn(&str) -> Result<T, String>,
) -> Option<Vec<Reading<T>>> {
    let read = |reference| {
        Some(match texts.text(reference)? {
            Ok(bytes) => Reading::of(bytes, parse),
            Err(why) => Reading::Unavailable(why),
        })
    };
    references.map(read).collect()
}

/// A list with one entry per line, as a spec names it.
pub(super) fn list<'a, T: 'a>(
    reference: &'a ConfigMapKeyReference,
    (field, without): (&'static str, &'static str),
    parse: fn(&str) -> Result<T, String>,
) -> Text<'a> {
    let check = move |bytes: &[u8]| match Reading::of(bytes, parse) {
        Reading::Read(_) => Ok(()),
        Reading::Unavailable(why) | Reading::Broken(why) => Err(format!(
            "{why}; write one entry a line, and comments after a #"
        )),
    };
    Text {
        reference,
        field,
        without,
        check: Box::new(check),
    }
}

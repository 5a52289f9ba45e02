//! The claim of a Rollout on a workload: an annotation.
//!
//! It says who has the workload, what it was before, and what the Rollout has written. It is a hint and no
//! right: one that came along with a copy of its workload is none, and one that was forged holds a run at most, unless
//! it has the UID of the Rollout or the identity of what is rolled out. One that has these says what the workload was
//! before, and how many pods there are to be. Only people who may write the sizes can write it. From it a run is resumed
//! whose status is lost.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_crds::Rollout;
use sluice_crds::rollout::{Size, marks};

use super::identity;

/// The longest text of a claim, in bytes. Ours are shorter: what is longer was written by somebody else.
const LONGEST: usize = 2 << 10;

/// Whether a text may be a claim.
pub(super) fn is_short(text: &str) -> bool {
    text.len() <= LONGEST
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The name of the Rollout.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The namespace and the name of the workload. A claim on another one came along with a copy.
    pub workload: String,
    /// The number of the run.
    pub run: i64,
    /// What the run rolls out, as a hash.
    pub identity: String,
    /// The value of `sluice.dev/retry` by which it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// How many pods there are to be.
    pub of: i32,
    /// The replicas of the workload before the run.
    pub was: i32,
    /// Its replicas, or its partition, at the start of the run.
    pub start: i32,
    /// The ControllerRevision to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    /// The sizes that the Rollout has written, or found.
    pub wrote: Size,
    /// How the run has ended. None: it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// It has succeeded.
    Done,
    /// It has failed.
    Failed,
    /// Its Rollout was deleted before it had succeeded.
    Aborted,
}

impl Claim {
    /// The claim on a workload. None: there is none that can be read, or it is on another one.
    pub fn of(workload: &Value) -> Option<Self> {
        let metadata = |field: &str| workload.get("metadata")?.get(field)?.as_str();
        let its = (metadata("namespace")?, metadata("name")?);
        Self::within(workload).filter(|claim| claim.workload.split_once('/') == Some(its))
    }

    /// What a workload, or a patch of one, has as a claim.
    pub fn within(object: &Value) -> Option<Self> {
        let annotations = object.pointer("/metadata/annotations")?;
        let text = annotations.get(marks::CLAIM)?.as_str()?;
        is_short(text).then(|| serde_json::from_str(text).ok())?
    }

    /// What is written in the annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it is of a run of this Rollout, and of none before it that had its name.
    pub(super) fn is_by(&self, object: &Rollout) -> bool {
        object.metadata.uid.as_deref() == Some(&self.uid)
    }

    /// Whether a Rollout asks for the run of this claim, and for no other: it rolls out the same, and nobody has
    /// asked to try again since.
    pub(super) fn is_asked_for(&self, identity: &str, object: &Rollout) -> bool {
        let retry = identity::retry(object);
        self.identity == identity && (retry.is_none() || retry == self.retry)
    }

    /// Whether it is of this run, whose Rollout was deleted.
    pub fn is_aborted(&self, uid: &str, run: i64) -> bool {
        let is_of = (self.uid.as_str(), self.run) == (uid, run);
        is_of && self.ended == Some(Ended::Aborted)
    }

    /// Whether it is of this run, which goes on.
    pub fn is_of(&self, uid: &str, run: i64) -> bool {
        self.ended.is_none() && (self.uid.as_str(), self.run) == (uid, run)
    }
}

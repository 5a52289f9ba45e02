//! Something about an object that is visible only together with the other objects.

use crate::offline::simulate::{Key, World};
use crate::text::refusal::Refusal;

/// The object that a remark is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A Gate.
    Gate(Key),
    /// A Gatekeeper.
    Gatekeeper(Key),
    /// An Approval.
    Approval(Key),
    /// A GatePolicy, which is in no namespace.
    GatePolicy(String),
    /// A GatedSource.
    GatedSource(Key),
    /// A Pipeline.
    Pipeline(Key),
    /// A GitRepositoryAccess.
    GitRepositoryAccess(Key),
    /// A PromotionStrategy.
    PromotionStrategy(Key),
    /// A CommitStatus.
    CommitStatus(Key),
    /// A RevertCommit.
    RevertCommit(Key),
    /// A Rollout.
    Rollout(Key),
    /// A Namespace.
    Namespace(String),
    /// A ConfigMap.
    ConfigMap(Key),
}

/// Something about an object that is visible only together with the other objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The object.
    pub subject: Subject,
    /// What, where in it, and what to write instead.
    pub what: Refusal,
    /// Whether the controller would refuse it. If not, it may well be meant.
    pub refused: bool,
    /// The object that is missing, where that is what the remark says. One that is there and has a
    /// mistake of its own is not missing.
    pub missing: Option<Subject>,
}

/// The remarks so far, and the objects that they are about.
pub(super) struct Remarks<'a> {
    pub(super) world: &'a World,
    pub(super) remarks: &'a mut Vec<Remark>,
}

impl Remarks<'_> {
    pub(super) fn warn(&mut self, subject: Subject, what: Refusal) {
        self.remarks.push(Remark {
            subject,
            what,
            refused: false,
            missing: None,
        });
    }

    pub(super) fn refuse(&mut self, subject: Subject, what: Refusal) {
        self.remarks.push(Remark {
            subject,
            what,
            refused: true,
            missing: None,
        });
    }

    /// Warns that `missing` is not in the files.
    pub(super) fn warn_of(
        &mut self,
        missing: Subject,
        subject: Subject,
        field: String,
        problem: String,
    ) {
        self.remarks.push(Remark {
            subject,
            what: Refusal::new(field, problem, "add it, unless the cluster has it"),
            refused: false,
            missing: Some(missing),
        });
    }
}

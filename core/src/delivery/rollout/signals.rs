//! What is seen of a run, as the state machine wants to know it.
//!
//! Several signals may hold at once. The order in which they are looked at is that of [`Signal::ALL`]: what
//! makes everything else unsure comes first, and that nothing is left to do comes last.

/// Something that decides what a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// What is known is not up to date: a list is missing, an object is older than our own last write, or its
    /// controller has not observed its generation.
    Stale,
    /// The Rollout is being deleted.
    Deleted,
    /// It rolls out something else than the run does, or somebody has asked to try again.
    Modified,
    /// A workload of the run is missing, or is another object of the same name. While a run finalises, only
    /// the target counts. Wherever a run ends, one that is gone counts as one without pods.
    Gone,
    /// Somebody else writes to a workload, or has claimed it. While a Rollout is deleted, also: the kind of a
    /// workload is not served any more.
    Contested,
    /// There is a mistake that only another spec fixes, or a hook has said no.
    Refused,
    /// `paused`.
    Paused,
    /// Gates or policies hold the batch back, or it comes after the last one that may go out. Never of a
    /// batch whose goal is met already.
    Closed,
    /// A metric has no value that counts.
    Blind,
    /// A hook, pods or a metric are not there yet, or the value of a metric is outside its range.
    Waiting,
    /// There was no progress for too long. It counts only where there is something to wait for, and not while
    /// the clock is doubted.
    Overdue,
    /// Nothing is left to do in this state. It always holds when nothing before it does.
    Done,
}

impl Signal {
    /// Every signal, in the order in which they are looked at.
    pub const ALL: [Signal; 12] = [
        Signal::Stale,
        Signal::Deleted,
        Signal::Modified,
        Signal::Gone,
        Signal::Contested,
        Signal::Refused,
        Signal::Paused,
        Signal::Closed,
        Signal::Blind,
        Signal::Waiting,
        Signal::Overdue,
        Signal::Done,
    ];

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// The signals that hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals(u16);

impl Signals {
    /// The same, and this one if it holds.
    #[must_use]
    pub fn with(self, signal: Signal, holds: bool) -> Self {
        match holds {
            true => Self(self.0 | signal.bit()),
            false => self,
        }
    }

    /// The same, but for this one.
    #[must_use]
    pub fn without(self, signal: Signal) -> Self {
        Self(self.0 & !signal.bit())
    }

    /// Whether it holds.
    pub fn has(self, signal: Signal) -> bool {
        self.0 & signal.bit() != 0
    }
}

impl FromIterator<Signal> for Signals {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Self {
        let all = signals.into_iter();
        all.fold(Self::default(), |all, signal| all.with(signal, true))
    }
}

/// What else a step depends on, each in one or two states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Verifying: everything is of the new version already.
    pub nothing_to_roll: bool,
    /// A batch begins: its goal is met already.
    pub goal_met: bool,
    /// A batch is done: it is the last one.
    pub is_last: bool,
    /// At an end: something has still to be written to a workload.
    pub write_due: bool,
    /// Failed, and deleted: the old version has to come back, and nobody has tried that yet.
    pub revert_due: bool,
}

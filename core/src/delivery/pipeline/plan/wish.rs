//! A promotion that an environment is to have, and its record.

use jiff::Timestamp;
use sluice_crds::pipeline::{GateAt, MergeGate, Phase, Promotion, PromotionRecord, StrategyKind};

use super::super::reasons::is_recalled;
use super::super::run::Wanted;
use crate::time::stamp::time;

/// A promotion that an environment is to have.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) promotion: &'a Promotion,
    pub(super) strategy: StrategyKind<'a>,
    pub(super) key: &'a str,
}

impl Wish<'_> {
    /// The first record of this promotion.
    pub(super) fn fresh(&self, phase: Phase, now: Timestamp) -> PromotionRecord {
        PromotionRecord {
            run: self.wanted.run,
            revision: self.wanted.revision.as_str().to_owned(),
            key: self.key.to_owned(),
            phase,
            reason: None,
            message: None,
            at: time(now),
            attempts: 0,
            repeats: 0,
            next_attempt_at: None,
            pull_request: None,
            gate: None,
            order: None,
        }
    }

    /// The record in another phase, or a first one.
    pub(super) fn record(
        &self,
        before: Option<PromotionRecord>,
        phase: Phase,
        now: Timestamp,
    ) -> PromotionRecord {
        match before {
            Some(before) => moved(before, phase, now),
            None => self.fresh(phase, now),
        }
    }

    /// Whether the environment's own gates are asked before it begins.
    pub(super) fn asks_at_begin(&self, gate_at: GateAt) -> bool {
        match (self.strategy, gate_at) {
            (StrategyKind::PullRequest(_), GateAt::Merge) => false,
            (StrategyKind::PullRequest(_), GateAt::Create | GateAt::Both)
            | (StrategyKind::Notification(_) | StrategyKind::Admission(_), _) => true,
        }
    }

    pub(super) fn is_pull_request(&self) -> bool {
        matches!(self.strategy, StrategyKind::PullRequest(_))
    }
}

/// Whether it is the record of this promotion.
pub(super) fn is_of(record: &PromotionRecord, wish: Option<Wish<'_>>) -> bool {
    let is_it = |wish: Wish<'_>| (record.run, record.key.as_str()) == (wish.wanted.run, wish.key);
    wish.is_some_and(is_it) && !is_recalled(record)
}

/// The same record, with nothing that lets anything be merged. Only what gates have held back stays
/// pending: a merge of it went past them.
pub(in super::super) fn frozen(record: PromotionRecord) -> PromotionRecord {
    PromotionRecord {
        gate: record.gate.filter(|gate| *gate == MergeGate::Pending),
        order: None,
        ..record
    }
}

/// The same record in another phase. If it was in that phase already, it keeps since when.
pub(super) fn moved(record: PromotionRecord, phase: Phase, now: Timestamp) -> PromotionRecord {
    let at = match record.phase == phase {
        true => record.at,
        false => time(now),
    };
    PromotionRecord {
        phase,
        at,
        reason: None,
        message: None,
        next_attempt_at: None,
        order: None,
        ..record
    }
}

//! What the runs before have left: for those that begin, and for those that go on without their status.
//!
//! What comes in: the history, and the claims on the workloads that the spec names. What goes out: which run is lost and
//! goes on, how many pods each workload had, and how many there are to be.

use std::ops::RangeInclusive;

use sluice_crds::rollout::{PastRun, RollingState};

use super::batch::give_back;
use super::claim::{Claim, Ended};
use super::course::{is_reached, pods, present};
use super::given::{Given, Member};
use super::workload::Workload;

/// How far the number of a run may be ahead of the clock, in milliseconds: a year.
const AHEAD: i64 = 365 * 86_400_000;

/// What is known of the runs before.
pub(super) struct Past<'a> {
    given: &'a Given,
    history: &'a [PastRun],
    /// The claims on the workloads, in their order.
    claims: Vec<Option<Claim>>,
    /// The number of the run of the same that was not ended, and of which the status is lost.
    pub(super) lost: Option<i64>,
    /// That of a run of something else, which nobody has settled: its status is lost, too, and its sizes are still as it
    /// has written them.
    unsettled: Option<i64>,
}

impl<'a> Past<'a> {
    pub(super) fn of(
        given: &'a Given,
        history: &'a [PastRun],
        identity: &str,
        members: &[Member<'_>],
    ) -> Self {
        let claims = members.iter().map(|(_, it)| Claim::of(it.object));
        let mut past = Self {
            given,
            history,
            claims: claims.collect(),
            lost: None,
            unsettled: None,
        };
        let newest = history.iter().map(|run| run.id).max().unwrap_or(0);
        let goes_on = |claim: &&Claim| claim.ended.is_none() && claim.run > newest;
        let goes_on = past.own().filter(goes_on).filter(|it| !past.is_forged(it));
        let goes_on: Vec<&Claim> = goes_on.collect();
        let same = goes_on
            .iter()
            .filter(|it| it.is_asked_for(identity, &given.object));
        let lost = same.map(|claim| claim.run).max();
        let other = goes_on.iter().map(|claim| claim.run);
        let unsettled = other.filter(|run| past.is_untouched(*run, members)).max();
        let unsettled = unsettled.filter(|_| lost.is_none());
        (past.lost, past.unsettled) = (lost, unsettled);
        past
    }

    /// The claims of runs of this Rollout.
    fn own(&self) -> impl Iterator<Item = &Claim> {
        let claims = self.claims.iter().flatten();
        claims.filter(|claim| claim.is_by(&self.given.object))
    }

    /// Whether the workloads that have the claim of a run also have the sizes that it has written last. A source is among
    /// them: a claim on the target alone says nothing.
    fn is_untouched(&self, run: i64, members: &[Member<'_>]) -> bool {
        let is_of = |claim: &&Claim| self.is_of(Some(run), claim);
        let mut sources = self.claims.iter().skip(1).flatten();
        if !sources.any(|claim| is_of(&claim)) {
            return false;
        }
        let all = self.claims.iter().zip(members);
        let mut of_run = all.filter_map(|(claim, (_, workload))| {
            let claim = claim.as_ref().filter(is_of)?;
            Some((claim.wrote, workload))
        });
        of_run.all(|(wrote, workload): (_, &Workload<'_>)| {
            wrote.replicas.is_some() && is_reached(wrote, present(Some(workload)))
        })
    }

    /// Anybody may have written a claim. No run of ours has so great a number, whatever the clock was.
    fn is_forged(&self, claim: &Claim) -> bool {
        claim.run >= self.given.now.at.as_millisecond().saturating_add(AHEAD)
    }

    /// The claim on a workload, by its place, of the run that is lost. That of another run says nothing of what was before
    /// this one.
    pub(super) fn lost_claim(&self, place: usize) -> Option<&Claim> {
        let claim = self.claims.get(place)?.as_ref()?;
        self.is_of(self.lost, claim).then_some(claim)
    }

    fn is_of(&self, run: Option<i64>, claim: &Claim) -> bool {
        claim.is_by(&self.given.object) && run == Some(claim.run)
    }

    /// The number of a run that begins: more than that of every run before it.
    pub(super) fn next_id(&self) -> i64 {
        let history = self.history.iter().map(|run| run.id);
        let claims = self.claims.iter().flatten();
        let claims = claims.filter(|it| !self.is_forged(it)).map(|it| it.run);
        let newest = history.chain(claims).max().unwrap_or(0);
        let now = self.given.now.at.as_millisecond();
        now.max(newest.saturating_add(1))
    }

    /// The pods that each workload had before this run. A run that is not settled may have taken pods from the sources
    /// and not given them to its target yet. These count for the sources, but never more than that run was to have.
    pub(super) fn pods(&self, members: &[Member<'_>]) -> Vec<u32> {
        let now = members.iter().map(|(_, it)| it.seen().wanted);
        let lost = self.were(self.lost);
        let mut all: Vec<u32> = lost.zip(now).map(|(was, now)| was.unwrap_or(now)).collect();
        let were: Vec<Option<u32>> = self.were(self.unsettled).collect();
        let taken = were.iter().zip(&all).map(|(was, now)| {
            let was = was.unwrap_or(*now);
            i64::from(was) - i64::from(*now)
        });
        let of = self.own().filter(|claim| self.is_of(self.unsettled, claim));
        let of = of.map(|claim| i64::from(claim.of)).max().unwrap_or(0);
        let short = of - all.iter().map(|now| i64::from(*now)).sum::<i64>();
        let missing = u32::try_from(taken.sum::<i64>().min(short)).unwrap_or(0);
        if let (Some((_, sources)), Some((_, had))) = (all.split_first_mut(), were.split_first()) {
            let had: Vec<u32> = had.iter().map(|had| had.unwrap_or(0)).collect();
            give_back(sources, &had, missing);
        }
        all
    }

    /// The pods that each workload had before another run, where it has its claim.
    fn were(&self, run: Option<i64>) -> impl Iterator<Item = Option<u32>> {
        let of_run = move |claim: &&Claim| self.is_of(run, claim);
        let claims = self.claims.iter().map(Option::as_ref);
        claims.map(move |claim| claim.filter(of_run).map(|claim| pods(claim.was)))
    }

    /// How many pods there are to be, where a run before says it. `there`: the pods of the sources, and those of all.
    pub(super) fn total(&self, identity: &str, there: &RangeInclusive<u64>) -> Option<u32> {
        let claims = self.claims.iter().flatten();
        let counting = claims.filter(|claim| self.counts(claim, identity, there));
        let newest = counting.max_by_key(|claim| claim.run);
        newest.map(|claim| pods(claim.of))
    }

    /// Whether the total of a claim counts: of the run that is lost, of one that is not settled or gave way to this one,
    /// or of the same after it has ended. Also of any other that was left halfway, while the target has the pods that the
    /// sources lack. Never one below the pods of the sources, which somebody has scaled since.
    fn counts(&self, claim: &Claim, identity: &str, there: &RangeInclusive<u64>) -> bool {
        let is_same = claim.identity == identity;
        let of = u64::from(pods(claim.of));
        if of == 0 || of < *there.start() || self.is_forged(claim) {
            return false;
        }
        let is_former = || self.is_of(self.unsettled, claim) || self.gave_way(claim);
        match claim.ended {
            None if self.is_of(self.lost, claim) || is_former() => true,
            Some(Ended::Done) => is_same,
            None | Some(Ended::Failed | Ended::Aborted) => is_same || there.contains(&of),
        }
    }

    /// Whether a claim is of one of the runs that gave way, one after another, to this one. What is left of an older run
    /// says nothing.
    fn gave_way(&self, claim: &Claim) -> bool {
        let newest = self.history.iter();
        let mut gave_way = newest.take_while(|it| it.state == RollingState::RolloutAbandoned);
        claim.is_by(&self.given.object) && gave_way.any(|it| it.id == claim.run)
    }
}

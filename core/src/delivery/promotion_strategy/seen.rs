//! Step 3: everything that is seen of an environment.

use std::sync::Arc;

use sluice_crds::PullRequest;
use sluice_crds::promotion_strategy::{Arrival, CheckOf, ForeignCommits, Held, RevertStatus};

use super::arrival::{self, Arrived, Traces};
use super::checks::{self, About, Check};
use super::evidence::Sight;
use super::pulls::{self, Pull};
use super::reverting::Current;
use super::tips::{Asker, Env, Tip};
use super::{Given, KIND, child, reverts};

/// An environment with everything that was seen of it.
pub(super) struct Seen<'g> {
    pub(super) env: Env<'g>,
    /// None: it is not known yet, or its branch is not there.
    pub(super) arrived: Option<Arrived>,
    pub(super) active_checks: Vec<Check>,
    pub(super) proposed_checks: Vec<Check>,
    pub(super) pull: Pull<'g>,
    pub(super) held: Vec<Held>,
    /// The RevertCommit that is bringing it back now.
    pub(super) reverting: Option<Current<'g>>,
    /// How far each of its RevertCommits is.
    pub(super) reverts: Vec<RevertStatus>,
}

impl Seen<'_> {
    pub(super) fn is_foreign(&self) -> bool {
        let by = self.arrived.as_ref().map(|it| it.by);
        by == Some(Arrival::Foreign) && self.env.spec.foreign_commits == ForeignCommits::Hold
    }
}

/// The PullRequests that this strategy has made.
pub(super) fn own(given: &Given) -> Vec<&Arc<PullRequest>> {
    let metadata = &given.object.metadata;
    let all = given.pull_requests.iter().filter(|it| {
        let about = &it.spec.about;
        about.kind == KIND
            && Some(&about.name) == metadata.name.as_ref()
            && it.metadata.namespace == metadata.namespace
            && it.metadata.deletion_timestamp.is_none()
            && child::is_whole(it)
    });
    all.collect()
}

pub(super) fn see<'g>(
    given: &'g Given,
    asker: &Asker<'_>,
    own: &[&'g Arc<PullRequest>],
    env: Env<'g>,
    is_quiet: bool,
) -> Seen<'g> {
    let candidates = reverts::candidates(given, asker, &env);
    let reverting = reverts::current(given, &env, &candidates);
    let pull = pulls::of(given, asker, &env, own, reverting.as_ref());
    let mut trees = reverts::trees(&candidates);
    trees.extend(pulls::reverts(asker, &env, own).map(|it| it.of.clone()));
    let written = reverts::written(asker, &env, own);
    let traces = Traces {
        object: &given.object,
        asker,
        pull_requests: pulls::newest_first(own, env.branch())
            .into_iter()
            .map(Arc::as_ref)
            .collect(),
        reverts: &trees,
        are_reverts_known: reverts::are_known(&candidates)
            && matches!(written, Sight::Known(_) | Sight::Absent),
        now: given.now.at,
    };
    let arrived = arrival::arrived(&env, &traces);
    let held = reverts::held(
        (given, asker),
        &env,
        &candidates,
        reverting.as_ref(),
        arrived.as_ref(),
        written.known().unwrap_or_default(),
    );
    let current = reverting.as_ref().map(|current| (current, &pull));
    let statuses = reverts::statuses(given, &candidates, &held, current);
    let is_proposed = env.proposes != Sight::Known(false);
    let proposed = env.proposed.as_ref().filter(|_| is_proposed);
    Seen {
        arrived,
        active_checks: checked(
            given,
            asker,
            &env,
            CheckOf::Active,
            env.active.as_ref(),
            is_quiet,
        ),
        proposed_checks: checked(given, asker, &env, CheckOf::Proposed, proposed, is_quiet),
        pull,
        held,
        reverting,
        reverts: statuses,
        env,
    }
}

/// What the checks of an environment say of a tip.
fn checked(
    given: &Given,
    asker: &Asker<'_>,
    env: &Env<'_>,
    of: CheckOf,
    tip: Option<&Tip>,
    is_quiet: bool,
) -> Vec<checks::Check> {
    let Some(tip) = tip else {
        return Vec::new();
    };
    let before = env.record.and_then(|record| match of {
        CheckOf::Active => record.active.as_ref(),
        CheckOf::Proposed => record.proposed.as_ref(),
    });
    let before = before.filter(|before| before.hydrated_sha == tip.sha);
    let recorded = env.record.filter(|_| is_quiet && before.is_some());
    let recorded = recorded.map_or(&[][..], |it| &it.checks).iter();
    let recorded: Vec<_> = recorded.filter(|it| it.of == of).cloned().collect();
    let about = About {
        sha: &tip.sha,
        since: before.map(|before| before.since.0),
        same: tip.joined.as_deref(),
        recorded: &recorded,
    };
    checks::of(given, asker, env.spec, of, about)
}

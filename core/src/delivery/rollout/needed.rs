//! What has to be known before a look: which objects are read from memory, which cost requests, and whether all that
//! concerns a run is known.

use std::collections::BTreeSet;

use sluice_crds::Rollout;
use sluice_crds::rollout::Mode;

use super::app::{self, NotFound};
use super::applied::unknown_applier;
use super::given::{Applier, Appliers, Given, Name, references};
use super::workload::{Kind, Workload};

/// The Kustomizations and HelmReleases that a spec names.
pub fn apps(object: &Rollout) -> BTreeSet<Applier> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let all = references(object);
    all.filter_map(|(_, it)| Applier::of(namespace, it))
        .collect()
}

/// The workloads that a look has to know: those of the run, those that the spec names, and those among which one
/// of an application is chosen.
pub fn wanted(object: &Rollout, apps: &Appliers) -> BTreeSet<Name> {
    let run = object.status.as_ref().and_then(|it| it.run.as_ref());
    let of_run = run.into_iter().flat_map(|run| &run.workloads);
    let references = references(object).map(|(_, it)| it);
    let named = references.chain(of_run.map(|it| &it.r#ref));
    let named: BTreeSet<Name> = named.filter_map(Name::of).collect();
    let all = self::apps(object).into_iter().filter_map(|app| {
        let inventory = apps.get(&app)?.object()?;
        Some(app::workloads(inventory, &app.namespace).own)
    });
    named.into_iter().chain(all.flatten()).collect()
}

/// The workload that goes back in place, and the ControllerRevision with its old template. Its templates have to be
/// known, which cost requests.
pub fn former(object: &Rollout) -> Option<(Name, Option<&str>)> {
    use sluice_crds::rollout::RollingState as State;
    let status = object.status.as_ref().filter(|it| it.reverted)?;
    let run = status.run.as_ref().filter(|it| it.mode == Mode::Update)?;
    let is_ending = match status.rolling_state? {
        State::RolloutFailing | State::RolloutDeleting => true,
        State::VerifyingSpec
        | State::Initializing
        | State::RollingInBatches
        | State::Finalising
        | State::RolloutSucceed
        | State::RolloutAbandoned
        | State::RolloutFailed => false,
    };
    let target = run.workloads.first().filter(|_| is_ending)?;
    Some((Name::of(&target.r#ref)?, target.former.as_deref()))
}

/// Whether a look has to know the pods of the target, which cost a request: see [`target_of_run`]. They are counted
/// while a batch goes out, and where the old version comes back. Between batches, where a run may be held for days,
/// they are not.
pub fn needs_pods(object: &Rollout) -> bool {
    let counts = goes_out(object) || former(object).is_some();
    counts && target_of_run(object).is_some_and(|it| it.kind == Kind::StatefulSet)
}

/// Whether the pods of the present batch are counted. Of one that begins too: it may be there already.
fn goes_out(object: &Rollout) -> bool {
    use sluice_crds::rollout::{BatchRollingState as State, RollingState};
    let status = object.status.as_ref();
    let status = status.filter(|it| it.rolling_state == Some(RollingState::RollingInBatches));
    let state = status.and_then(|it| it.batch_rolling_state);
    state.is_some_and(|state| match state {
        State::BatchInitializing | State::BatchInRolling | State::BatchVerifying => true,
        State::BatchFinalizing | State::BatchReady | State::BatchVerifyFailed => false,
    })
}

/// The target of the run.
pub fn target_of_run(object: &Rollout) -> Option<Name> {
    let run = object.status.as_ref()?.run.as_ref()?;
    Name::of(&run.workloads.first()?.r#ref)
}

/// Whether something that a look may wait for is not known, or not up to date: the workloads of the run, those to which
/// the spec leads, and what writes to them. What else is in an application concerns no run.
pub fn is_unsure(given: &Given) -> bool {
    let named = references(&given.object);
    let mut named = named.map(|(field, it)| app::workload(given, &field, it));
    let target = named.next();
    let is_unknown = |it| matches!(it, Err(NotFound::Unsure(_)));
    if given.autoscalers.is_err() || target.clone().into_iter().chain(named).any(is_unknown) {
        return true;
    }
    let targets = [target.and_then(Result::ok), target_of_run(&given.object)];
    let mut workloads = app::of_look(given).into_iter();
    workloads.any(|name| {
        let (sight, kind) = (given.sight(&name), name.kind);
        let is_target = targets.iter().flatten().any(|it| *it == name);
        sight.is_unsure(&name)
            || sight.object().is_some_and(|object| {
                let member = (name, Workload { kind, object });
                unknown_applier(given, &member, is_target).is_some()
            })
    })
}

//! What has to be done: only what an accepted status intends.
//!
//! What comes in: the accepted status, and what was seen in a look that has not changed it. What goes out:
//! patches, calls and the finalizer. All of it is absolute and can be done twice: each patch is onto the version
//! that was seen, and says in the claim what it has written.

use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Mode, Run, Size, marks};

use super::batch::{ARMED, Due};
use super::calls::{self, Calling, Hooks};
use super::chain::Chain;
use super::claim::{Claim, Ended};
use super::course::{Course, count, is_reached, pods, present};
use super::desk::{Desk, OfRun};
use super::ending::{ended, releases};
use super::given::{Name, Pod};
use super::look::{is_started, keeps_from_pods, waits_for_news};
use super::signals::Signal;
use super::state::State;
use super::step::Step;
use super::workload::Workload;
use crate::delivery::act;

/// Something to be done, only after the status was accepted that intends it.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Add the finalizer to the Rollout, or remove it. Its removal waits for no other act: where one before it
    /// is refused, it goes all the same.
    Finalize(bool),
    /// Write to a workload.
    Write(Box<Write>),
    /// Delete a pod: this one, and no other of its name. It is broken, and keeps the old version from coming
    /// back.
    DeletePod(Pod),
    /// Call a hook.
    Call(Box<Calling>),
}

impl act::Act for Act {
    fn writes(&self) -> Option<String> {
        match self {
            Act::Finalize(_) => Some("the Rollout itself".to_owned()),
            Act::Write(write) => Some(format!("the {}", write.name)),
            Act::DeletePod(pod) => Some(format!("the Pod {}", pod.name)),
            Act::Call(_) => None,
        }
    }
}

/// What a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It claims the workload for the run.
    Claim,
    /// It scales it, or makes it start.
    Scale,
    /// It lowers its partition, or arms it.
    Partition,
    /// It brings its old template back.
    Restore,
    /// It takes the claim away, or writes into it how the run has ended.
    Release,
}

/// A write to a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it is for.
    pub what: What,
    /// The workload.
    pub name: Name,
    /// A merge patch. The API server refuses it for any other object, and any other version.
    pub patch: Value,
}

/// What has to be done. The look has not gone on: what it has seen is what `status` intends.
pub(super) fn acts(desk: &Desk<'_>, status: &RolloutStatus, chain: &Chain) -> Vec<Act> {
    let Some(run) = &status.run else {
        return without_run(desk, chain);
    };
    let carries_on = [Signal::Paused, Signal::Closed, Signal::Blind].map(Some);
    let writes = match chain.step {
        Step::Wait | Step::Rest | Step::LetGo => true,
        // What was let out is carried to its end.
        Step::Hold => carries_on.contains(&chain.decides),
        Step::Go(_)
        | Step::GoTold(_)
        | Step::NextBatch
        | Step::FailBatch
        | Step::End
        | Step::EndTold => false,
    };
    if !writes {
        return Vec::new();
    }
    let scene = Scene {
        desk,
        status,
        run,
        members: &desk.of_run(run),
    };
    let mut acts = match chain.state {
        State::Initializing => scene.start(chain.step == Step::Wait),
        State::BatchInRolling => scene.batch(),
        State::Finalising | State::Failing | State::Abandoned | State::Deleting => scene.end(chain),
        State::Succeeded | State::Failed => scene.over(chain),
        State::VerifyingSpec
        | State::BatchInitializing
        | State::BatchVerifying
        | State::BatchFinalizing
        | State::BatchReady => Vec::new(),
    };
    let call = chain.look.call.clone().filter(|_| chain.step == Step::Wait);
    acts.extend(call.map(Act::Call));
    acts
}

/// Whether nothing is done of what a run that is over has left, before more is known of its workloads. A replica that has
/// just become leader may not know them yet, and what has to be released.
pub(super) fn is_withheld(desk: &Desk<'_>, status: &RolloutStatus, chain: &Chain) -> bool {
    let run = status.run.iter().filter(|_| chain.state.is_over());
    let names = run.flat_map(|it| &it.workloads);
    let mut names = names.filter_map(|it| Name::of(&it.r#ref));
    names.any(|name| desk.unsure(&name).is_some()) && waits_for_news(desk)
}

/// Nothing was claimed.
fn without_run(desk: &Desk<'_>, chain: &Chain) -> Vec<Act> {
    let is_over = chain.state.is_over() && desk.has_finalizer();
    is_over
        .then_some(Act::Finalize(false))
        .into_iter()
        .collect()
}

/// A run whose status was accepted.
struct Scene<'a> {
    desk: &'a Desk<'a>,
    status: &'a RolloutStatus,
    run: &'a Run,
    members: &'a [OfRun<'a>],
}

impl Scene<'_> {
    /// The finalizer first, then the claims, then the hooks, then the sizes.
    fn start(&self, may_start: bool) -> Vec<Act> {
        if !self.desk.has_finalizer() {
            return vec![Act::Finalize(true)];
        }
        let places = 0..self.members.len();
        let is_claimed = |place: &usize| {
            let member = self.members[*place].1.as_ref();
            member.is_none_or(|(_, it)| self.desk.is_claimed(self.run, it))
        };
        let unclaimed: Vec<usize> = places.clone().filter(|place| !is_claimed(place)).collect();
        if !unclaimed.is_empty() {
            let claims = unclaimed.into_iter().filter_map(|place| self.claim(place));
            return claims.collect();
        }
        let hooks = calls::hooks(self.desk, self.status, self.run, State::Initializing);
        if !may_start || !matches!(hooks, Hooks::Passed) || is_started(self.status, self.members) {
            return Vec::new();
        }
        let starts = places.filter_map(|place| {
            let wanted = *self.status.intent.as_ref()?.sizes.get(place)?;
            let (_, workload) = self.members[place].1.as_ref()?;
            let is_paused = place == 0 && keeps_from_pods(self.status, workload);
            let is_due = is_paused || !is_reached(wanted, present(Some(workload)));
            is_due.then(|| self.size(place, wanted))?
        });
        starts.collect()
    }

    /// Claimed with the sizes that were latched: what somebody has written since then is found out, and not written
    /// over.
    fn claim(&self, place: usize) -> Option<Act> {
        let intent = self.status.intent.as_ref();
        let start = intent.and_then(|it| it.sizes.get(place));
        let record = self.run.workloads.get(place)?;
        // The target may begin with more than was found. A source may have had more before.
        let found = if place == 0 { record.was } else { record.start };
        let latched = Size {
            replicas: Some(found),
            partition: start.and_then(|it| it.partition),
        };
        let claim = self.claimed(place, latched, None)?;
        self.write(place, What::Claim, &json!(null), Some(&claim))
    }

    /// The half of the batch that is due.
    fn batch(&self) -> Vec<Act> {
        let (Some(intent), Ok(course)) = (
            &self.status.intent,
            Course::of(self.desk.plan, self.run, self.status),
        ) else {
            return Vec::new();
        };
        let index = calls::batch(self.status);
        let goal = course.goal(self.desk.plan, index);
        let unavailable = self
            .desk
            .plan
            .batch(index)
            .max_unavailable
            .of(course.total());
        let here: Option<Vec<Workload<'_>>> = self
            .members
            .iter()
            .map(|(_, member)| member.as_ref().map(|(_, workload)| *workload))
            .collect();
        let Some(here) = here else {
            return Vec::new();
        };
        let available = here.first().and_then(|target| self.desk.available(target));
        let places = match course.due(&intent.sizes, goal, unavailable, &here, available) {
            Due::Target => 0..1,
            Due::Sources => 1..self.members.len(),
            Due::Pods | Due::Nothing => 0..0,
        };
        let due = places.filter_map(|place| {
            let wanted = *intent.sizes.get(place)?;
            let is_due = !is_reached(wanted, present(here.get(place)));
            is_due.then(|| self.size(place, wanted))?
        });
        due.collect()
    }

    /// What is settled, brought back and released, each when its turn comes.
    fn end(&self, chain: &Chain) -> Vec<Act> {
        let ending = &chain.look.ending;
        let mut acts: Vec<Act> = ending
            .scale
            .iter()
            .filter_map(|(place, size)| self.size(*place, *size))
            .collect();
        if let Some(patch) = &ending.restore {
            acts.extend(self.restore(patch));
        }
        acts.extend(ending.delete.clone().map(Act::DeletePod));
        if ending.waits.is_none() && chain.look.call.is_none() {
            acts.extend(self.releases(chain.state));
        }
        acts
    }

    /// A run that is over keeps nothing but the mark of how it has ended.
    fn over(&self, chain: &Chain) -> Vec<Act> {
        if is_withheld(self.desk, self.status, chain) {
            return Vec::new();
        }
        let mut acts = self.releases(chain.state);
        let may_revert = chain.state == State::Failed
            && self.desk.plan.revert_on_delete
            && !self.status.reverted;
        let lets_go = chain.step == Step::LetGo;
        let goes = lets_go || (acts.is_empty() && !may_revert);
        if self.desk.has_finalizer() && goes {
            acts.push(Act::Finalize(false));
        } else if !self.desk.has_finalizer() && may_revert && !self.desk.is_deleted() {
            acts.push(Act::Finalize(true));
        }
        acts
    }

    fn releases(&self, state: State) -> Vec<Act> {
        let places = releases(self.desk, self.run, self.members, state);
        let sure = places.into_iter().filter(|place| {
            let member = self.members[*place].1.as_ref();
            member.is_some_and(|(name, _)| self.desk.unsure(name).is_none())
        });
        sure.filter_map(|place| self.release(place, state))
            .collect()
    }

    fn release(&self, place: usize, state: State) -> Option<Act> {
        let (_, workload) = self.members.get(place)?.1.as_ref()?;
        // What a run before it has left says nothing of this one.
        if state != State::Succeeded && !self.desk.is_claimed(self.run, workload) {
            return self.write(place, What::Release, &json!(null), None);
        }
        // Of a run that has failed each workload says so: a revert has to know that nobody has come since.
        let ended = ended(state).filter(|_| place == 0 || state == State::Failed);
        // The partition that it had before: one that was armed, so that nothing goes out by itself.
        let gives_back = place == 0 && self.run.mode == Mode::Update && state != State::Succeeded;
        let spec = match gives_back {
            true => workload.part(ARMED)?["spec"].clone(),
            false => json!(null),
        };
        let mut wrote = present(Some(workload));
        if gives_back {
            wrote.partition = Some(count(ARMED));
        }
        let mut claim = match ended {
            Some(ended) => Some(self.claimed(place, wrote, Some(ended))?),
            None => None,
        };
        // A total is said by the target alone: a source may be one of other runs.
        if let Some(claim) = claim.as_mut().filter(|_| place > 0) {
            claim.of = 0;
        }
        self.write(place, What::Release, &spec, claim.as_ref())
    }

    fn restore(&self, patch: &Value) -> Option<Act> {
        let (_, workload) = self.members.first()?.1.as_ref()?;
        let wrote = Size {
            partition: Some(0),
            ..present(Some(workload))
        };
        let claim = self.claimed(0, wrote, None)?;
        self.write(0, What::Restore, &patch["spec"], Some(&claim))
    }

    /// Writes a size.
    fn size(&self, place: usize, wanted: Size) -> Option<Act> {
        let (_, workload) = self.members.get(place)?.1.as_ref()?;
        let now = present(Some(workload));
        let wrote = Size {
            replicas: wanted.replicas.or(now.replicas),
            partition: wanted.partition.or(now.partition),
        };
        let claim = self.claimed(place, wrote, None)?;
        let (what, patch) = match (self.run.mode, wanted.partition, wanted.replicas) {
            (Mode::Update, Some(partition), _) => {
                (What::Partition, workload.part(pods(partition))?)
            }
            (_, _, Some(replicas)) if place == 0 => (What::Scale, workload.start(pods(replicas))),
            (_, _, Some(replicas)) => (What::Scale, workload.scale(pods(replicas))),
            (_, Some(partition), None) => (What::Partition, workload.part(pods(partition))?),
            (_, None, None) => return None,
        };
        self.write(place, what, &patch["spec"], Some(&claim))
    }

    fn claimed(&self, place: usize, wrote: Size, ended: Option<Ended>) -> Option<Claim> {
        let record = self.run.workloads.get(place)?;
        let claim = self.desk.claim(self.status, self.run, record, wrote, ended);
        Some(claim)
    }

    /// A patch of the claim, and of the spec unless there is nothing to write in it. Without a claim, what is
    /// there is taken away.
    fn write(&self, place: usize, what: What, spec: &Value, claim: Option<&Claim>) -> Option<Act> {
        let (name, workload) = self.members.get(place)?.1.as_ref()?;
        let mut patch = workload.respec(spec);
        if spec.is_null() {
            patch.as_object_mut()?.remove("spec");
        }
        patch["metadata"]["annotations"] = json!({ marks::CLAIM: claim.map(Claim::text) });
        Some(Act::Write(Box::new(Write {
            what,
            name: name.clone(),
            patch,
        })))
    }
}

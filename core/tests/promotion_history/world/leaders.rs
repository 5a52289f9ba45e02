//! The two leaders: what each of them knows, decides and does.

use std::sync::Arc;

use jiff::SignedDuration;
use sluice_core::Now;
use sluice_core::delivery::commit_status;
use sluice_core::delivery::promotion_strategy::{
    Access, Act, Given, Surroundings, check, consider, report,
};
use sluice_core::delivery::pull_request::{self, Errand, Failure, Outcome, Says, Task, Word};
use sluice_crds::pipeline::Order;
use sluice_crds::{Decision, PromotionStrategyStatus, PullRequest, PullRequestStatus};

use super::setup::{NAMES, NO_GATES, Opening};
use super::{Discipline, Objects, World};
use crate::events::{Fault, Finding, News, Of, Reply};

impl World {
    /// It does everything that there is to do, so often, some seconds apart. `fault`: with its looks at the
    /// strategy.
    pub(super) fn work(&mut self, leader: usize, often: u8, fault: Fault) -> Result<(), String> {
        for _ in 0..often {
            self.now += SignedDuration::from_secs(7);
            self.hear(leader, News::All);
            self.list(leader);
            for _ in 0..8 {
                self.look(leader, fault)?;
                if self.leaders[leader].known.wanted.is_empty() {
                    break;
                }
                self.learn(leader);
            }
            let all = self.leaders[leader].cache.pull_requests.keys();
            for name in all.cloned().collect::<Vec<_>>() {
                self.look_at(leader, &name, Fault::No)?;
                while let Some(task) = self.under_way(leader, &name) {
                    if fault == Fault::Slow && matches!(task, Task::Merge { .. }) {
                        self.now += SignedDuration::from_secs(61);
                    }
                    self.act(leader, &name, Reply::Right)?;
                    self.look_at(leader, &name, Fault::No)?;
                }
            }
        }
        Ok(())
    }

    /// What is under way at the forge for a PullRequest.
    fn under_way(&self, leader: usize, name: &str) -> Option<&Task> {
        match &self.leaders[leader].desks.get(name)?.errand {
            Errand::UnderWay { task, .. } => Some(task),
            Errand::None | Errand::Over(_) => None,
        }
    }

    /// The same, while everything is found to be well.
    pub(super) fn flow(&mut self, leader: usize) -> Result<(), String> {
        for _ in 0..3 {
            for place in 0..NAMES.len() {
                self.check(place, Of::Both, Finding::Success);
            }
            self.work(leader, 1, Fault::No)?;
        }
        Ok(())
    }

    pub(super) fn list(&mut self, leader: usize) {
        let listed = Some(Arc::clone(&self.git));
        let known = &mut self.leaders[leader].known;
        known.listed = listed.filter(|_| !self.forge.is_down);
        known.listed_at = known.listed.as_ref().map(|_| self.now);
    }

    pub(super) fn learn(&mut self, leader: usize) {
        let answers = !self.forge.is_down;
        self.leaders[leader].known.learn(&self.git, answers);
    }

    pub(super) fn hear(&mut self, leader: usize, news: News) {
        let it = &mut self.leaders[leader];
        let strategy = match news {
            News::All | News::Strategy => &self.api.strategy,
            News::Others => &it.cache.strategy,
        };
        let strategy = Arc::clone(strategy);
        if news != News::Strategy {
            it.cache = self.api.clone();
            let names = &self.api.pull_requests;
            it.desks.retain(|name, _| names.contains_key(name));
        }
        it.cache.strategy = strategy;
    }

    /// It knows nothing any more, and reads everything that the API server has.
    pub(super) fn crash(&mut self, leader: usize) {
        let it = &mut self.leaders[leader];
        (it.known, it.has_decided) = (crate::git::Known::default(), false);
        it.desks.clear();
        self.hear(leader, News::All);
    }

    fn given(&self, leader: usize) -> Given {
        let it = &self.leaders[leader];
        let Objects {
            gates,
            active_gates,
            kustomizations,
            ..
        } = &it.cache;
        let of_active = |gate: Opening| self.setup.proves.then(|| gate.gathered(self.now));
        let gates = gates.iter().zip(active_gates);
        let surroundings = gates.map(|(gate, active)| Surroundings {
            gates: gate.gathered(self.now),
            active_gates: of_active(*active),
            revert_gates: NO_GATES.clone(),
            owned_by: None,
        });
        let kustomizations = kustomizations.iter().zip(NAMES);
        Given {
            object: Arc::clone(&it.cache.strategy),
            checked: check(&it.cache.strategy),
            access: Access::Ready,
            evidence: Arc::new(it.known.clone()),
            surroundings: surroundings.collect(),
            pull_requests: it.cache.pull_requests.values().cloned().collect(),
            commit_statuses: it.cache.checks.values().cloned().collect(),
            reverts: it.cache.reverts.clone(),
            reverts_verified: true,
            dry_errand: commit_status::report::Errand::None,
            kustomizations: kustomizations.map(|(it, branch)| it.seen(branch)).collect(),
            now: Now::given(self.now),
        }
    }

    /// A look at the strategy.
    pub(super) fn look(&mut self, leader: usize, fault: Fault) -> Result<(), String> {
        let considered = consider(self.given(leader));
        self.leaders[leader].known.wanted = considered.wanted().clone();
        let is_decided = considered.is_decided();
        let asked = considered.asked().iter();
        let told: Vec<Decision> = asked.map(|asked| asked.decision.clone()).collect();
        let report = report(considered, &told);
        if report.changed && !self.write(leader, &report.status, fault)? {
            if self.discipline != Discipline::ActsFirst {
                return Ok(());
            }
            Arc::make_mut(&mut self.leaders[leader].cache.strategy).status = Some(report.status);
        }
        for (place, act) in report.acts.into_iter().enumerate() {
            if fault == Fault::Killed(u8::try_from(place).unwrap()) {
                break;
            }
            if !self.carry_out(leader, act) {
                return Ok(());
            }
        }
        match fault {
            Fault::Killed(_) => self.crash(leader),
            Fault::No | Fault::Conflict | Fault::Lost | Fault::Slow => {
                self.leaders[leader].has_decided |= is_decided;
            }
        }
        Ok(())
    }

    /// Another look, to which nothing is new, has nothing to say.
    pub(super) fn look_again(&self, leader: usize) -> Result<(), String> {
        let it = &self.leaders[leader].cache.strategy;
        if it.metadata.resource_version != self.api.strategy.metadata.resource_version {
            return Ok(());
        }
        let considered = consider(self.given(leader));
        let asked = considered.asked().iter();
        let told: Vec<Decision> = asked.map(|asked| asked.decision.clone()).collect();
        let (before, after) = (it.status.as_ref(), report(considered, &told).status);
        match before {
            Some(before) if *before != after => Err(format!(
                "a second look changes the status from {before:#?} to {after:#?}"
            )),
            _ => Ok(()),
        }
    }

    /// Writes the status of the strategy. Returns whether the leader knows that it was accepted.
    fn write(
        &mut self,
        leader: usize,
        status: &PromotionStrategyStatus,
        fault: Fault,
    ) -> Result<bool, String> {
        let version = &self.leaders[leader]
            .cache
            .strategy
            .metadata
            .resource_version;
        let is_current = *version == self.api.strategy.metadata.resource_version;
        if !is_current || fault == Fault::Conflict {
            return Ok(false);
        }
        if self.api.strategy.status.as_ref() != Some(status) {
            self.accepts(leader, status)?;
            self.writes += 1;
            let version = self.next_version();
            let object = Arc::make_mut(&mut self.api.strategy);
            object.metadata.resource_version = version;
            object.status = Some(status.clone());
        }
        if fault != Fault::Lost {
            self.leaders[leader].cache.strategy = Arc::clone(&self.api.strategy);
        }
        Ok(fault != Fault::Lost)
    }

    /// Does what follows from the status. Returns whether it goes on.
    fn carry_out(&mut self, leader: usize, act: Act) -> bool {
        let name = |object: &PullRequest| object.metadata.name.clone().unwrap();
        match act {
            Act::Create(object) => {
                let name = name(&object);
                if !self.api.pull_requests.contains_key(&name) {
                    let mut object = *object;
                    object.metadata.resource_version = self.next_version();
                    object.metadata.uid = object.metadata.resource_version.clone();
                    object.metadata.generation = Some(1);
                    self.put(leader, &name, object);
                }
            }
            Act::Change {
                before,
                title,
                description,
                close,
            } => {
                let name = name(&before);
                let Some(mut object) = self.unchanged(&before) else {
                    return false;
                };
                let spec = &mut object.spec;
                (spec.title, spec.description, spec.close) = (title, description, close);
                object.metadata.generation = object.metadata.generation.map(|it| it + 1);
                object.metadata.resource_version = self.next_version();
                self.put(leader, &name, object);
            }
            Act::Delete(before) => {
                if self.unchanged(&before).is_some() {
                    self.api.pull_requests.remove(&name(&before));
                }
            }
            Act::LookAt(name) => {
                let desk = self.leaders[leader].desks.entry(name).or_default();
                desk.recent.is_asked_for = true;
            }
            Act::List | Act::Freshen => self.list(leader),
            // The strategy wants none.
            Act::Told | Act::Tell(_) => {}
        }
        true
    }

    /// What the API server has of an object, if that is what was seen.
    fn unchanged(&self, before: &PullRequest) -> Option<PullRequest> {
        let present = self.api.pull_requests.get(before.metadata.name.as_ref()?)?;
        let is_same = present.metadata.resource_version == before.metadata.resource_version;
        is_same.then(|| (**present).clone())
    }

    /// A leader has written it, and knows it at once.
    fn put(&mut self, leader: usize, name: &str, object: PullRequest) {
        let object = Arc::new(object);
        let known = &mut self.leaders[leader].cache.pull_requests;
        known.insert(name.to_owned(), Arc::clone(&object));
        self.api.pull_requests.insert(name.to_owned(), object);
    }

    /// A look at a PullRequest.
    pub(super) fn look_at(
        &mut self,
        leader: usize,
        name: &str,
        fault: Fault,
    ) -> Result<(), String> {
        let it = &self.leaders[leader];
        let Some(object) = it.cache.pull_requests.get(name).cloned() else {
            return Ok(());
        };
        let desk = it.desks.get(name).cloned().unwrap_or_default();
        let given = pull_request::Given {
            owner: Says::of(&object, it.cache.strategy.as_ref()),
            is_owner_current: it.has_decided,
            recent: desk.recent,
            errand: desk.errand.clone(),
            now: self.now,
            object: Arc::clone(&object),
        };
        let pull_request::Looked { report, recent } = pull_request::report(given);
        if report.changed && !self.write_pull_request(leader, &object, report.status, fault) {
            return Ok(());
        }
        let desk = self.leaders[leader].desks.entry(name.to_owned());
        let desk = desk.or_default();
        desk.recent = recent;
        if let Errand::Over(_) = desk.errand {
            desk.errand = Errand::None;
        }
        if let Some(task) = report.acts.into_iter().next() {
            // It may have changed something as soon as it is begun.
            let is_sent = !task.only_looks();
            desk.errand = Errand::UnderWay { task, is_sent };
        }
        if let Fault::Killed(_) = fault {
            self.crash(leader);
        }
        Ok(())
    }

    fn write_pull_request(
        &mut self,
        leader: usize,
        before: &PullRequest,
        status: PullRequestStatus,
        fault: Fault,
    ) -> bool {
        let Some(mut object) = self.unchanged(before).filter(|_| fault != Fault::Conflict) else {
            return false;
        };
        let name = before.metadata.name.clone().unwrap();
        let cached = self.leaders[leader].cache.pull_requests[&name].clone();
        if object.status.as_ref() != Some(&status) {
            self.writes += 1;
            object.metadata.resource_version = self.next_version();
            object.status = Some(status);
        }
        self.put(leader, &name, object);
        if fault == Fault::Lost {
            let known = &mut self.leaders[leader].cache.pull_requests;
            known.insert(name, cached);
        }
        fault != Fault::Lost
    }

    /// What was begun at the forge for a PullRequest ends.
    pub(super) fn act(&mut self, leader: usize, name: &str, reply: Reply) -> Result<(), String> {
        let it = &self.leaders[leader];
        let errand = it.desks.get(name).map(|desk| desk.errand.clone());
        let object = it.cache.pull_requests.get(name).cloned();
        let (Some(Errand::UnderWay { task, .. }), Some(object)) = (errand, object) else {
            return Ok(());
        };
        let failed = |word| Outcome::Failed(Failure::new(word, "as it happens"));
        let outcome = match reply {
            _ if self.forge.is_down => failed(Word::Unanswered),
            Reply::Refused => match task {
                Task::Merge { .. } => {
                    Outcome::Held(Failure::new(Word::NotMergeable, "as it happens"))
                }
                _ => failed(Word::Refused),
            },
            _ if !self.may_begin(leader, &object, &task) => match task {
                Task::Merge { .. } => Outcome::Held(Failure::new(Word::Changed, "it has ended")),
                _ => failed(Word::Changed),
            },
            Reply::Late => {
                self.delay(&object, &task);
                failed(Word::Unanswered)
            }
            Reply::Lost => {
                self.perform(&object, &task)?;
                failed(Word::Unanswered)
            }
            Reply::Right => self.perform(&object, &task)?,
        };
        let over = Errand::Over(Box::new((task, outcome)));
        let desk = self.leaders[leader].desks.entry(name.to_owned());
        desk.or_default().errand = over;
        Ok(())
    }

    /// Whether a merge or a join is still ordered, as far as the leader knows, just before it is sent.
    fn may_begin(&self, leader: usize, object: &PullRequest, task: &Task) -> bool {
        let says = || Says::of(object, self.leaders[leader].cache.strategy.as_ref());
        match task {
            Task::Merge { .. } if self.discipline == Discipline::StaleOrders => true,
            Task::Merge {
                commit, not_after, ..
            } => {
                let order = says().and_then(|says| says.order);
                let is_it = |it: &Order| {
                    it.key == object.spec.about.key
                        && it.head_sha == *commit
                        && it.not_after.0 >= *not_after
                };
                self.now <= *not_after && order.as_ref().is_some_and(is_it)
            }
            Task::Join(joining) => says().is_some_and(|says| says.join.as_ref() == Some(joining)),
            _ => true,
        }
    }
}

//! What hydrators, testers and other people do.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::promotion_strategy::marks;

use super::World;
use super::setup::{HEALTH, LINT, NAMES, Opening, commit_status, revert_commit};
use crate::events::{Deed, Finding, Made, Of};

impl World {
    fn new_name(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what}{}", self.count)
    }

    /// Somebody commits to the dry branch, and hydrators make something of it.
    pub(super) fn commit(&mut self) {
        self.commit_dry();
        for place in 0..NAMES.len() {
            self.hydrate(place, Made::New);
        }
    }

    fn commit_dry(&mut self) {
        let name = self.new_name("dry");
        self.git().commit_dry(&name);
    }

    /// All is well from now on: gates are open, the forge answers, and what was broken is repaired.
    pub(super) fn repair(&mut self) -> Result<(), String> {
        self.api.gates = [Opening::Open; 3];
        self.api.active_gates = [Opening::Open; 3];
        self.forge.is_down = false;
        for pull in &mut self.forge.pulls {
            (pull.draft, pull.is_held) = (false, false);
        }
        self.respecify(|it| it.spec.suspend = false);
        // What was forced away comes back by a merge.
        for lost in std::mem::take(&mut self.lost) {
            self.git().merge("main", &lost);
        }
        let newest = self.git.head("main");
        for (place, branch) in NAMES.into_iter().enumerate() {
            let has = crate::git::dry(&self.git, &self.git.head(branch));
            if has.is_some_and(|it| !self.git.contains(&newest, &it)) {
                // A person has merged what was made of nothing, and goes on from what there is.
                self.person(place, Deed::Push(true))?;
            }
            self.person(place, Deed::Accept)?;
        }
        Ok(())
    }

    /// Somebody forces the dry branch back, and commits something else.
    pub(super) fn rewind(&mut self, back: u8) {
        self.lost.push(self.git.head("main"));
        for _ in 0..back {
            let head = self.git.head("main");
            if let Some(before) = self.git.parents(&head).first().cloned() {
                self.git().set("main", &before);
            }
        }
        self.commit_dry();
    }

    /// A hydrator works for an environment.
    pub(super) fn hydrate(&mut self, place: usize, made: Made) {
        let (branch, next) = (NAMES[place], format!("{}-next", NAMES[place]));
        let newest = self.git.head("main");
        let name = self.new_name("files");
        match made {
            Made::New => drop(self.git().push(&next, &newest, "files")),
            Made::Older => {
                let before = self.git.parents(&newest).first().cloned();
                let dry = before.unwrap_or(newest);
                self.git().push(&next, &dry, "files");
            }
            Made::Again => {
                let head = self.git.head(&next);
                if let Some(dry) = crate::git::dry(&self.git, &head) {
                    self.git().push(&next, &dry, "files");
                }
            }
            Made::Fresh => {
                self.git().branch(&next, branch);
                self.git().push(&next, &newest, "files");
            }
            Made::Nothing => self.git().note(&next, &newest),
            Made::Forged => drop(self.git().push(&next, &"f".repeat(40), &name)),
            Made::Bare => drop(self.git().push_bare(&next, &name)),
            Made::Undone => {
                // That proposes it.
                self.takes(&self.git.head(branch));
                self.git().branch(&next, branch);
            }
        }
    }

    /// A person does something to an environment, or to its newest pull request.
    pub(super) fn person(&mut self, place: usize, deed: Deed) -> Result<(), String> {
        let branch = NAMES[place];
        let open = self.open_into(branch).last();
        match (deed, open) {
            (Deed::Merge, Some(pull)) => {
                let number = pull.number;
                self.merge_pull(number, "alice");
            }
            (Deed::Close, Some(pull)) => pull.state = crate::forge::State::Closed,
            (Deed::Label(is_held), Some(pull)) => pull.is_held = is_held,
            (Deed::Draft(draft), Some(pull)) => pull.draft = draft,
            (Deed::Push(says), _) => {
                let (newest, name) = (self.git.head("main"), self.new_name("pushed"));
                let pushed = match says {
                    true => self.git().push(branch, &newest, &name),
                    false => self.git().push_bare(branch, &name),
                };
                self.pushes(place, &pushed);
            }
            (Deed::Force, _) => {
                let before = self.git.parents(&self.git.head(branch)).first().cloned();
                if let Some(before) = before {
                    self.git().set(branch, &before);
                    self.takes_away(branch);
                }
            }
            (Deed::Accept, _) => {
                let head = self.git.head(branch);
                self.takes(&head);
                let mut accepted = NAMES.map(|it| format!("{it}={}", self.git.head(it)));
                accepted.rotate_left(place);
                let accepted = accepted[0].clone();
                self.respecify(|it| {
                    let all = it.metadata.annotations.get_or_insert_default();
                    let all = all.entry(marks::ACCEPT.to_owned()).or_default();
                    *all = format!("{all},{accepted}");
                });
            }
            (Deed::Merge | Deed::Close | Deed::Label(_) | Deed::Draft(_), None) => {}
        }
        Ok(())
    }

    /// Something is found out about the newest commits of an environment.
    pub(super) fn check(&mut self, place: usize, of: Of, finding: Finding) {
        let branch = NAMES[place];
        let is_by_flux = self.setup.flux;
        if is_by_flux && of != Of::Proposed {
            let head = self.git.head(branch);
            self.api.kustomizations[place].find(&head, finding);
        }
        let is_active = of != Of::Proposed && !is_by_flux;
        let active = is_active.then(|| (HEALTH, self.git.head(branch)));
        let proposed = (of != Of::Active).then(|| (LINT, self.git.head(&format!("{branch}-next"))));
        for (key, sha) in active.into_iter().chain(proposed) {
            let name = format!("{key}-{}", &sha[..8]);
            let (name, phase) = match finding {
                Finding::Success | Finding::Short => (name, "success"),
                Finding::Failure => (name, "failure"),
                Finding::Pending => (name, "pending"),
                Finding::Impostor => (format!("{name}-too"), "success"),
                Finding::Gone => {
                    let is_other = |it: &String| !it.starts_with(&name);
                    self.api.checks.retain(|name, _| is_other(name));
                    continue;
                }
            };
            let mut found = commit_status(&name, &sha, key, phase);
            if finding == Finding::Short {
                found.spec.expires_at = Some(Time(self.now + SignedDuration::from_secs(30)));
            }
            self.api.checks.insert(name, Arc::new(found));
        }
    }

    /// Somebody brings an environment back.
    pub(super) fn revert(&mut self, place: usize, to: usize, by_hand: bool) {
        let (branch, status) = (NAMES[place], self.api.strategy.status.as_ref());
        let record = status.and_then(|status| status.environments.get(place));
        let healthy = record.and_then(|record| record.last_healthy.get(to));
        let Some(to) = healthy.map(|it| it.dry_sha.clone()) else {
            return;
        };
        let name = self.new_name("r");
        let (from, at) = (self.git.head(branch), i64::try_from(self.count).unwrap());
        let made = revert_commit(&name, branch, (&from, &to), (by_hand, at));
        self.api.reverts.push(Arc::new(made));
    }

    pub(super) fn unrevert(&mut self, pick: usize) {
        let all = &mut self.api.reverts;
        if !all.is_empty() {
            all.remove(pick % all.len());
        }
    }

    pub(super) fn fix(&mut self, pick: usize) {
        let newest = self.git.head("main");
        let all = &mut self.api.reverts;
        let of = pick % all.len().max(1);
        if let Some(found) = all.get_mut(of) {
            let found = Arc::make_mut(found);
            found.spec.fixed_by = Some(newest);
            found.metadata.generation = found.metadata.generation.map(|it| it + 1);
        }
    }
}

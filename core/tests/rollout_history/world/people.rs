//! What people do, and what happens by itself.

use sluice_core::delivery::rollout::claim::Claim;
use sluice_core::delivery::rollout::given::Name;
use sluice_crds::rollout::WorkloadRecord;

use super::World;
use super::leaders::is_over;
use crate::cluster::image_of;
use crate::setup::{Others, armed, rollout, target};

impl World {
    /// From now on hooks answer this.
    pub(super) fn answer(&mut self, code: u16) {
        self.hook = code;
        self.ledger.is_vetoed |= code == 403;
    }

    /// Pods of the new version do not come up, or do again.
    pub(super) fn breaks(&mut self, breaks: bool) {
        let target = target(self.setup);
        let Some(object) = self.api.workloads.get(&target) else {
            return;
        };
        let image = image_of(object);
        if !breaks || image != self.setup.image() {
            return self.api.broken.clear();
        }
        let pods = self.api.pods[&target].iter();
        let break_now = pods.filter(|pod| pod.available && pod.image == image);
        let break_now = break_now.map(|pod| pod.uid.clone());
        self.ledger.failed.extend(break_now);
        self.api.broken.insert(image);
    }

    /// A pod fails by itself.
    pub(super) fn fail(&mut self, pick: usize) {
        let mut pods: Vec<_> = self.api.pods.values_mut().flatten().collect();
        let count = pods.len().max(1);
        if let Some(pod) = pods.get_mut(pick % count).filter(|pod| pod.available) {
            self.ledger.failed.insert(pod.uid.clone());
            pod.available = false;
        }
    }

    pub(super) fn foreign(&mut self, place: usize, size: u8) {
        let all = self.setup.workloads();
        let of = &all[place % all.len()];
        if self.api.workloads.contains_key(of) && self.setup.others != Others::Nobody {
            self.meddle(of, size.into());
        }
    }

    fn meddle(&mut self, of: &Name, size: u64) {
        let by = self.api.replicas(of).abs_diff(size);
        self.ledger.meddled(by);
        self.api
            .foreign(of, "/spec/replicas", size.into(), "kubectl");
    }

    /// Every size is again what the rollout has written or found.
    pub(super) fn repair(&mut self) {
        for (of, object) in self.api.workloads.clone() {
            let wrote = Claim::of(&object).and_then(|claim| claim.wrote.replicas);
            let wrote = wrote.filter(|wrote| object["spec"]["replicas"] != *wrote);
            if let Some(wrote) = wrote {
                self.meddle(&of, wrote.try_into().unwrap());
            }
        }
    }

    /// The target is gone, with its pods.
    pub(super) fn prune(&mut self) {
        if self.setup.is_in_place() && (self.setup.reverts || self.setup.takes_back) {
            // The model knows the old template by the object that has it.
            return self.replace();
        }
        self.removes(&target(self.setup));
    }

    /// A source is gone, with its pods.
    pub(super) fn prune_source(&mut self, place: usize) {
        let sources = self.setup.sources();
        let source = sources.get(place % sources.len().max(1));
        if let Some((of, _)) = source.filter(|(of, _)| self.api.workloads.contains_key(of)) {
            self.removes(of);
        }
    }

    /// Another object has its name.
    pub(super) fn replace(&mut self) {
        let target = target(self.setup);
        self.removes(&target);
        let size = match (self.setup.is_in_place(), self.setup.is_alone()) {
            (false, false) => 0,
            _ => self.setup.was(),
        };
        let (image, armed) = (self.setup.image(), armed(self.setup));
        // Whatever is in its place, its pods are there.
        self.api.broken.clear();
        self.api
            .add(self.setup.kind, &target.name, size, image, &armed);
        self.ledger.replaced();
    }

    /// Somebody takes a workload away. A run that goes on makes up for its pods, by sources that had some.
    fn removes(&mut self, of: &Name) {
        self.api.workloads.remove(of);
        self.api.pods.remove(of);
        self.ledger.removed(self.setup, &self.api);
        self.ledger.is_left_short |= !self.goes_on() || self.has_no_source();
    }

    /// Whether no source is here that had pods when the run began.
    fn has_no_source(&self) -> bool {
        let status = self.api.rollout.as_ref().and_then(|it| it.status.as_ref());
        let workloads = status
            .and_then(|it| it.run.as_ref())
            .map(|run| &run.workloads);
        let mut sources = workloads.into_iter().flatten().skip(1);
        let is_here = |it: &WorkloadRecord| {
            let mut all = self.api.workloads.keys();
            all.any(|of| of.name == it.r#ref.name)
        };
        self.setup.sources > 0 && sources.all(|it| it.was == 0 || !is_here(it))
    }

    /// Whether there is a run that is not over.
    fn goes_on(&self) -> bool {
        let object = self.api.rollout.as_ref();
        let status = object.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| it.run.is_some() && !is_over(it))
    }

    /// A Rollout that goes without its status undoes nothing. A run of which only claims are left makes up for no workload
    /// that has gone.
    pub(super) fn wipe(&mut self) {
        let goes = self
            .api
            .rollout
            .as_ref()
            .map(|it| &it.metadata.deletion_timestamp);
        let goes = goes.is_some_and(Option::is_some);
        self.ledger.is_left_short |= goes || self.ledger.has_removed();
        self.ledger.is_lost |= self.goes_on();
        self.api.respecify(|it| it.status = None);
    }

    pub(super) fn retry(&mut self) {
        self.count += 1;
        let value = self.count.to_string();
        self.api.respecify(|it| {
            let all = it.metadata.annotations.get_or_insert_default();
            all.insert("sluice.dev/retry".to_owned(), value);
        });
    }

    pub(super) fn another(&mut self) {
        self.count += 1;
        let revision = Some(format!("2.{}", self.count));
        self.api.respecify(|it| it.spec.revision = revision);
    }

    /// A Rollout that is gone comes back as it was in the beginning, but for its UID.
    pub(super) fn come_back(&mut self) {
        if self.api.rollout.is_some() {
            return;
        }
        self.count += 1;
        let mut object = rollout(self.setup);
        object.metadata.uid = Some(format!("r-{}", self.count));
        self.api.rollout = Some(object);
        // It is another version.
        self.api.respecify(|_| ());
    }
}

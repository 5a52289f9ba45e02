//! The Pipeline is deleted and created again, and the garbage collector comes later.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use sluice_crds::PullRequest;

use super::World;
use super::setup::pipeline;

impl World {
    /// There is another Pipeline of the same name at once. `keeps`: its PullRequests were to be kept, so that
    /// they have no owner any more.
    pub(super) fn recreate(&mut self, keeps: bool) {
        self.version += 1;
        let before = self.present.object.metadata.uid.clone();
        let mut object = pipeline(&self.setup);
        let uid = Some(format!("u{}", self.version));
        object.metadata.resource_version = Some(self.version.to_string());
        object.metadata.uid.clone_from(&uid);
        let forge = &mut self.forge;
        let mut present = self.present.clone();
        for it in &mut present.pull_requests {
            if keeps && owner(it) == before.as_ref() {
                let mut kept = (**it).clone();
                kept.metadata.owner_references = None;
                *it = Arc::new(kept);
            }
            // What has no owner is taken over.
            if owner(it).is_none()
                && let Some(opened) = forge.find(&it.spec.about.key)
            {
                opened.by.clone_from(&uid);
            }
        }
        present.object = Arc::new(object);
        self.change(|it| *it = present);
    }

    /// The garbage collector deletes a PullRequest whose Pipeline is gone.
    pub(super) fn collect(&mut self, pick: usize) {
        let uid = self.present.object.metadata.uid.clone();
        let all = self.present.pull_requests.iter().enumerate();
        let left = all.filter(|(_, it)| owner(it).is_some() && owner(it) != uid.as_ref());
        let left: Vec<usize> = left.map(|(place, _)| place).collect();
        if let Some(place) = left.get(pick % left.len().max(1)).copied() {
            self.change(|present| drop(present.pull_requests.remove(place)));
        }
    }
}

fn owner(object: &PullRequest) -> Option<&String> {
    let owners: &Vec<OwnerReference> = object.metadata.owner_references.as_ref()?;
    owners.first().map(|owner| &owner.uid)
}

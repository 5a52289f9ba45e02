//! Whether somebody makes sure that a force is by whom it says, and that children of GatedSources are
//! written by the controller alone.
//!
//! The chart installs ValidatingAdmissionPolicies that verify this. If they are missing, or check
//! something different from those that this version ships, forces do not count, unless the operator
//! accepts that; children are written back after somebody has changed them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use sluice_core::gate::Identity;
use sluice_core::operation::policies::{self, Stands};
pub use sluice_core::operation::policies::{CHILDREN, IDENTITY as POLICIES};
use sluice_watching::{Guard, Pulse};
use tokio::time::Instant;

use crate::cluster::key::KeyRef;
use crate::observe::cache::Cache;
use crate::observe::clock::Jumps;

/// The policies and their bindings, as they are installed.
#[derive(Default)]
pub struct Policies {
    /// In the order of [`POLICIES`].
    identity: [Installed; POLICIES.len()],
    /// In the order of [`CHILDREN`].
    children: [Installed; CHILDREN.len()],
}

/// What the policies ensure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Whether it is verified who forces, approves and reports.
    pub identity: Identity,
    /// The policies among [`CHILDREN`] that are not.
    pub without: Vec<&'static str>,
    /// Those that are installed and check something else than this version ships: each with where.
    pub drifted: Vec<String>,
}

/// A policy and its binding, as far as they are installed.
#[derive(Default)]
struct Installed {
    policy: Cache<ValidatingAdmissionPolicy>,
    binding: Cache<ValidatingAdmissionPolicyBinding>,
}

impl Policies {
    /// Waits until it is known whether they are installed, or the API server has refused to say.
    pub async fn answered(&self) {
        for (_, installed) in self.each() {
            installed.policy.answered().await;
            installed.binding.answered().await;
        }
    }

    /// From now on only what was listed since the clock jumped last is relied on.
    pub(crate) fn heed(&self, jumps: &Arc<Jumps>) {
        for (_, installed) in self.each() {
            for (_, pulse) in installed.pulses() {
                pulse.heed(jumps.clone());
            }
        }
    }

    /// Why it is not known any more whether identities are verified, if too little is heard of a watch:
    /// the policies may have been deleted since then. If there were none when they were listed, nothing
    /// depends on it.
    pub fn silence(&self, now: Instant) -> Option<String> {
        let mut pulses = self.identity.iter().flat_map(Installed::pulses);
        pulses.find_map(|(plural, pulse)| {
            pulse.age(now)?;
            let why = pulse.silence(now)?;
            Some(format!("changes of {plural} are not seen any more: {why}"))
        })
    }

    /// For how long nothing was heard of the watches of those that make sure of identities, by their
    /// plurals.
    pub fn ages(&self, now: Instant) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        let oldest = move |index: usize| {
            let pulses = self.identity.iter().map(move |it| it.pulses()[index]);
            let ages = pulses.filter_map(|(plural, pulse)| Some((plural, pulse.age(now)?)));
            ages.max()
        };
        [0, 1].into_iter().filter_map(oldest)
    }

    /// Watches them, and tells what is in force.
    pub async fn follow(&self, client: Client, trusted: bool, tell: impl Fn(InForce)) {
        let told = || tell(self.in_force(trusted));
        let follow = |(name, installed)| Installed::follow(installed, name, &client, &told);
        join_all(self.each().map(follow)).await;
    }

    /// What is in force, as far as is known.
    pub fn in_force(&self, trusted: bool) -> InForce {
        let stands = self
            .each()
            .map(|(name, installed)| (name, installed.stands(name)));
        let mut verified = true;
        let (mut without, mut drifted) = (Vec::new(), Vec::new());
        for (name, stands) in stands {
            if !matches!(stands, Stands::InForce) {
                verified &= !POLICIES.contains(&name);
                without.extend(CHILDREN.into_iter().filter(|child| *child == name));
            }
            if let Stands::Drifted(place) = stands {
                drifted.push(format!("{name} ({place})"));
            }
        }
        InForce {
            identity: identity(verified, trusted),
            without,
            drifted,
        }
    }

    /// Each with its name.
    fn each(&self) -> impl Iterator<Item = (&'static str, &Installed)> {
        let identity = POLICIES.into_iter().zip(&self.identity);
        identity.chain(CHILDREN.into_iter().zip(&self.children))
    }
}

impl Installed {
    fn pulses(&self) -> [(&'static str, &Pulse); 2] {
        [
            ("validatingadmissionpolicies", self.policy.pulse()),
            ("validatingadmissionpolicybindings", self.binding.pulse()),
        ]
    }

    async fn follow(&self, name: &str, client: &Client, told: &impl Fn()) {
        let config = || Config::default().fields(&format!("metadata.name={name}"));
        let policy = self.policy.follow(
            Api::<Guard<ValidatingAdmissionPolicy>>::all(client.clone()),
            config(),
            |_| told(),
        );
        let binding = self.binding.follow(
            Api::<Guard<ValidatingAdmissionPolicyBinding>>::all(client.clone()),
            config(),
            |_| told(),
        );
        tokio::join!(policy, binding);
    }

    fn stands(&self, name: &str) -> Stands {
        let key = KeyRef {
            namespace: "",
            name,
        };
        let (policy, binding) = (self.policy.get(key), self.binding.get(key));
        let policy = policy.as_ref().and_then(|policy| policy.object());
        let binding = binding.as_ref().and_then(|binding| binding.object());
        policies::stands(name, policy.map(Arc::as_ref), binding.map(Arc::as_ref))
    }
}

/// What holds before the policies have been looked for.
pub fn at_start(trusted: bool) -> Identity {
    identity(false, trusted)
}

fn identity(in_force: bool, trusted: bool) -> Identity {
    match (in_force, trusted) {
        (true, _) => Identity::Verified,
        (false, true) => Identity::Trusted,
        (false, false) => Identity::Unverified,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::{Value, json};
    use sluice_core::time::clock::Trust;
    use sluice_watching::SILENCE;

    use super::*;
    use crate::observe::clock::SetClock;
    use crate::observe::world::{Standing, World};

    fn install(policies: &Policies, wanted: &str) {
        let found = policies.each().find(|(name, _)| *name == wanted);
        let (_, installed) = found.expect("it is looked for");
        let object = |spec: Value| {
            let metadata = json!({"name": wanted, "resourceVersion": "1"});
            json!({"metadata": metadata, "spec": spec})
        };
        let shipped = &policies::shipped()[wanted];
        let policy = object(serde_json::to_value(&shipped.policy).unwrap());
        let policy = serde_json::from_value(policy).unwrap();
        installed.policy.put(Arc::new(policy));
        let binding = object(serde_json::to_value(&shipped.binding).unwrap());
        let binding = serde_json::from_value(binding).unwrap();
        installed.binding.put(Arc::new(binding));
    }

    #[test]
    fn the_policies_of_children_are_looked_for_and_no_identity_depends_on_them() {
        let policies = Policies::default();
        for policy in POLICIES {
            let before = policies.in_force(false);
            assert_eq!(before.identity, Identity::Unverified, "without {policy}");
            install(&policies, policy);
        }
        let expected = |without: &[&'static str]| InForce {
            identity: Identity::Verified,
            without: without.to_vec(),
            drifted: Vec::new(),
        };
        for (installed, policy) in CHILDREN.into_iter().enumerate() {
            assert_eq!(policies.in_force(false), expected(&CHILDREN[installed..]));
            install(&policies, policy);
        }
        assert_eq!(policies.in_force(false), expected(&[]));
    }

    /// A policy of the right name that checks nothing verifies nothing, and that is reported.
    #[rstest]
    #[case::of_an_identity("sluice-approvals", Identity::Unverified, &[])]
    #[case::of_children("sluice-children", Identity::Verified, &["sluice-children"])]
    fn a_policy_that_checks_something_else_counts_as_missing(
        #[case] name: &str,
        #[case] identity: Identity,
        #[case] without: &[&str],
    ) {
        let policies = Policies::default();
        for policy in POLICIES.into_iter().chain(CHILDREN) {
            install(&policies, policy);
        }
        let mut spec = policies::shipped()[name].policy.clone();
        spec.validations = None;
        let mut weaker = ValidatingAdmissionPolicy {
            spec: Some(spec),
            ..ValidatingAdmissionPolicy::default()
        };
        weaker.metadata.name = Some(name.to_owned());
        weaker.metadata.resource_version = Some("2".to_owned());
        let found = policies.each().find(|(policy, _)| *policy == name);
        found.unwrap().1.policy.put(Arc::new(weaker));
        let expected = InForce {
            identity,
            without: without
                .iter()
                .map(|name| CHILDREN.into_iter().find(|it| it == name).unwrap())
                .collect(),
            drifted: vec![format!("{name} (spec.validations is another)")],
        };
        assert_eq!(policies.in_force(false), expected);
        // It is reported to an operator who trusts everybody, too.
        assert_eq!(policies.in_force(true).drifted, expected.drifted);
    }

    /// What it asks for its parameters belongs to it.
    #[test]
    fn a_binding_that_checks_nothing_counts_as_missing() {
        let policies = Policies::default();
        for policy in POLICIES.into_iter().chain(CHILDREN) {
            install(&policies, policy);
        }
        let name = "sluice-child-names";
        let mut binding = ValidatingAdmissionPolicyBinding {
            spec: policies::shipped()[name].binding.clone(),
            ..ValidatingAdmissionPolicyBinding::default()
        };
        binding.metadata.name = Some(name.to_owned());
        binding.metadata.resource_version = Some("2".to_owned());
        let parameters = json!({
            "selector": {"matchLabels": {"no": "such"}}, "parameterNotFoundAction": "Allow",
        });
        binding.spec.param_ref = serde_json::from_value(parameters).unwrap();
        let found = policies.each().find(|(policy, _)| *policy == name);
        found.unwrap().1.binding.put(Arc::new(binding));
        let found = policies.in_force(false);
        assert_eq!(
            (found.identity, found.without),
            (Identity::Verified, vec![name])
        );
        let place = "of its binding, spec.paramRef.selector.matchLabels is another";
        assert_eq!(found.drifted, [format!("{name} ({place})")]);
    }

    /// Those that are listed, and the world that believes identities by them.
    fn listed(identity: Identity) -> (World, Arc<SetClock>) {
        let clock = Arc::new(SetClock::new(Timestamp::UNIX_EPOCH));
        let jumps = Arc::new(Jumps::new(clock.clone()));
        let trust = Trust::Good;
        let world = World::new(Standing { trust, identity }, true).with_jumps(jumps);
        for (_, pulse) in world.pulses() {
            pulse.listed(Instant::now(), 0);
        }
        (world, clock)
    }

    /// A right that is taken away leaves what was listed once, for ever.
    #[tokio::test(start_paused = true)]
    async fn every_gate_is_closed_while_it_is_not_seen_who_makes_sure_of_identities() {
        let hear = |world: &World, now| {
            for (_, installed) in world.verifiers.each() {
                for (_, pulse) in installed.pulses() {
                    pulse.listed(now, pulse.jumps());
                }
            }
        };
        let (world, clock) = listed(Identity::Verified);
        let now = Instant::now();
        let silence = || world.verifiers.silence(now + SILENCE * 2);
        // Nobody may list them: nothing was believed by them.
        assert_eq!((silence(), world.silence()), (None, None));
        hear(&world, now);
        let refused = &world.verifiers.identity[0].binding;
        refused.pulse().fails("no right to");
        let expected = "changes of validatingadmissionpolicies are not seen any more: the API server \
                        says nothing";
        assert_eq!(silence().as_deref(), Some(expected));
        assert_eq!(world.ages(now).len(), 8);

        clock.step(Timestamp::from_second(3600).unwrap());
        for (_, pulse) in world.pulses() {
            pulse.listed(now, pulse.jumps());
        }
        let why = world.silence().unwrap();
        assert!(
            why.starts_with("changes of validatingadmissionpol"),
            "{why}"
        );
        hear(&world, now);
        assert_eq!(world.silence(), None);
        // Who asks for a force does not matter, or counts for nothing.
        for identity in [Identity::Trusted, Identity::Unverified] {
            let (world, clock) = listed(identity);
            hear(&world, now);
            clock.step(Timestamp::from_second(3600).unwrap());
            for (_, pulse) in world.pulses() {
                pulse.listed(now, pulse.jumps());
            }
            assert_eq!(world.silence(), None);
            world.stand(|standing| standing.identity = Identity::Verified);
            assert_eq!(world.silence().is_none(), identity == Identity::Trusted);
        }
    }
}

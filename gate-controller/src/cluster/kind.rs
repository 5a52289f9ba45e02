//! The kinds of objects that the controller names, in one table.
//!
//! To add a kind, add a line here: the compiler names the rest.

use sluice_crds::GROUP;
use sluice_crds::flux::FluxKind;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A gate.
    Gate,
    /// A gatekeeper.
    Gatekeeper,
    /// A gate policy.
    GatePolicy,
    /// A gated source.
    GatedSource,
    /// A pipeline.
    Pipeline,
    /// A pull request.
    PullRequest,
    /// The access to a repository.
    GitRepositoryAccess,
    /// A promotion by branches.
    PromotionStrategy,
    /// What was found out about a commit.
    CommitStatus,
    /// A way back.
    RevertCommit,
    /// A rollout in batches.
    Rollout,
    /// What tests add.
    #[cfg(test)]
    Probe,
    /// A namespace.
    Namespace,
    /// A kind of Flux.
    Flux(FluxKind),
}

impl From<FluxKind> for Kind {
    fn from(kind: FluxKind) -> Self {
        Kind::Flux(kind)
    }
}

/// How urgent a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// A person waits for it.
    Person,
    /// Something goes out.
    Delivery,
    /// Decisions depend on it.
    Gate,
    /// It is a report.
    Report,
    /// The last look has taken long, and failed.
    Hung,
}

/// How objects of a kind are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// How urgent a look is that nobody has asked for.
    pub urgency: Urgency,
    /// Whether a look writes to the object itself, and not only to its status.
    pub writes_itself: bool,
    /// Whether a look decides something: by the clock, and by how far clock, watches and authors can be
    /// relied on. When that changes, all objects of the kind are looked at again.
    pub decides: bool,
    /// Whether others decide by these objects themselves, not by their status: then what concerns such
    /// an object concerns those others, too.
    pub is_decided_by: bool,
}

/// A line of the table.
struct Row {
    /// The kind, as objects name it.
    word: &'static str,
    /// The same, as paths and rights name it.
    plural: &'static str,
    group: &'static str,
    version: &'static str,
    look: Option<Look>,
}

/// A look that most kinds have.
const LOOK: Look = Look {
    urgency: Urgency::Report,
    writes_itself: false,
    decides: true,
    is_decided_by: false,
};

impl Kind {
    /// Those that are looked at by themselves.
    pub const LOOKED_AT: [Kind; 11] = [
        Kind::Gate,
        Kind::Gatekeeper,
        Kind::GatePolicy,
        Kind::GatedSource,
        Kind::Pipeline,
        Kind::PullRequest,
        Kind::GitRepositoryAccess,
        Kind::PromotionStrategy,
        Kind::CommitStatus,
        Kind::RevertCommit,
        Kind::Rollout,
    ];

    /// The table.
    #[rustfmt::skip] // A kind is a line.
    fn row(self) -> Row {
        let row = |word, plural, group, version, look| Row { word, plural, group, version, look };
        let ours = |word, plural, look| row(word, plural, GROUP, "v1alpha1", Some(look));
        let others = |word, plural, group, version| row(word, plural, group, version, None);
        let (gate, delivery) = (Urgency::Gate, Urgency::Delivery);
        match self {
            Kind::Gate => ours("Gate", "gates", Look { urgency: gate, writes_itself: true, is_decided_by: true, ..LOOK }),
            Kind::Gatekeeper => ours("Gatekeeper", "gatekeepers", Look { is_decided_by: true, ..LOOK }),
            Kind::GatePolicy => ours("GatePolicy", "gatepolicies", Look { is_decided_by: true, decides: false, ..LOOK }),
            Kind::GatedSource => ours("GatedSource", "gatedsources", Look { urgency: delivery, writes_itself: true, ..LOOK }),
            #[cfg(test)]
            Kind::Probe => ours("Probe", "probes", Look { urgency: delivery, ..LOOK }),
            Kind::Pipeline => ours("Pipeline", "pipelines", Look { urgency: delivery, ..LOOK }),
            Kind::PullRequest => ours("PullRequest", "pullrequests", Look { urgency: delivery, ..LOOK }),
            Kind::GitRepositoryAccess => ours("GitRepositoryAccess", "gitrepositoryaccesses", Look { urgency: delivery, decides: false, ..LOOK }),
            Kind::PromotionStrategy => ours("PromotionStrategy", "promotionstrategies", Look { urgency: delivery, ..LOOK }),
            Kind::CommitStatus => ours("CommitStatus", "commitstatuses", LOOK),
            Kind::RevertCommit => ours("RevertCommit", "revertcommits", Look { urgency: Urgency::Person, ..LOOK }),
            Kind::Rollout => ours("Rollout", "rollouts", Look { urgency: delivery, writes_itself: true, ..LOOK }),
            Kind::Namespace => others("Namespace", "namespaces", "", "v1"),
            Kind::Flux(kind) => others(kind.as_str(), kind.plural(), kind.group(), kind.version()),
        }
    }

    /// The kind, as objects name it.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// Its group.
    pub fn group(self) -> &'static str {
        self.row().group
    }

    /// Its group and version, as objects name them.
    pub fn api_version(self) -> String {
        let Row { group, version, .. } = self.row();
        match group {
            "" => version.to_owned(),
            _ => format!("{group}/{version}"),
        }
    }

    /// The path of its objects at an API server: those of one namespace, if it has any.
    pub fn path(self, namespace: &str) -> String {
        let (root, plural) = (self.api_version(), self.row().plural);
        let root = match self.row().group {
            "" => format!("/api/{root}"),
            _ => format!("/apis/{root}"),
        };
        match namespace {
            "" => format!("{root}/{plural}"),
            _ => format!("{root}/namespaces/{namespace}/{plural}"),
        }
    }

    /// How its objects are looked at. None: they are not looked at by themselves; when one changes, the
    /// objects that are interested in it are looked at.
    pub fn look(self) -> Option<Look> {
        self.row().look
    }

    /// What a look writes, in the words of rights.
    pub fn writes(self) -> String {
        let plural = self.row().plural;
        match self.look() {
            Some(look) if look.writes_itself => format!("{plural} and {plural}/status"),
            _ => format!("{plural}/status"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use sluice_crds::flux::FluxObject;
    use sluice_crds::{
        CommitStatus, Gate, GatePolicy, GatedSource, Gatekeeper, GitRepositoryAccess, Pipeline,
        PromotionStrategy, PullRequest, RevertCommit, Rollout,
    };

    use super::*;

    #[test]
    fn the_table_says_what_the_api_says() {
        fn of<K: Resource>(kind: Kind, of: &K::DynamicType, namespace: &str) {
            assert_eq!(kind.as_str(), K::kind(of));
            assert_eq!(kind.group(), K::group(of));
            assert_eq!(kind.api_version(), K::api_version(of));
            let within = Some(namespace).filter(|namespace| !namespace.is_empty());
            assert_eq!(kind.path(namespace), K::url_path(of, within));
        }
        of::<Gate>(Kind::Gate, &(), "apps");
        of::<Gatekeeper>(Kind::Gatekeeper, &(), "apps");
        of::<GatePolicy>(Kind::GatePolicy, &(), "");
        of::<GatedSource>(Kind::GatedSource, &(), "apps");
        of::<Pipeline>(Kind::Pipeline, &(), "apps");
        of::<PullRequest>(Kind::PullRequest, &(), "apps");
        of::<GitRepositoryAccess>(Kind::GitRepositoryAccess, &(), "apps");
        of::<PromotionStrategy>(Kind::PromotionStrategy, &(), "apps");
        of::<CommitStatus>(Kind::CommitStatus, &(), "apps");
        of::<RevertCommit>(Kind::RevertCommit, &(), "apps");
        of::<Rollout>(Kind::Rollout, &(), "apps");
        of::<k8s_openapi::api::core::v1::Namespace>(Kind::Namespace, &(), "");
        for kind in FluxKind::ALL {
            of::<FluxObject>(Kind::Flux(kind), &kind, "apps");
        }
    }

    #[test]
    fn rights_are_named_as_they_are_granted() {
        assert_eq!(Kind::Gate.writes(), "gates and gates/status");
        assert_eq!(Kind::GatePolicy.writes(), "gatepolicies/status");
    }
}

//! Step 3: the PullRequest of a promotion: what it has to be, and how far it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use sluice_crds::pipeline::{PromotionRecord, PullRequestRecord, PullRequestStrategy};
use sluice_crds::pull_request::{About, Change, Markers, PullRequestState, Repository, marks};
use sluice_crds::{Pipeline, PullRequest, PullRequestSpec, PullRequestStatus};

use super::key::{Way, key};
use super::whose::Whose;
use super::{Act, KIND};
use crate::delivery::pull_request::words;

/// How far a PullRequest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// There is no such object.
    Missing,
    /// It is not open yet.
    Waiting,
    /// It is not open yet, and the last try failed.
    Failing {
        why: String,
        attempts: u32,
        next: Option<Timestamp>,
    },
    /// It is open.
    Open,
    Merged,
    AlreadyInBase,
    Closed,
    /// It was open, and the forge does not know it any more.
    Vanished,
}

/// The name of the PullRequest of a promotion.
pub(super) fn name(whose: Whose<'_>, key: &str) -> String {
    format!("{}-{key}", whose.name)
}

impl Child {
    pub(super) fn of(object: Option<&Arc<PullRequest>>) -> Self {
        let Some(object) = object else {
            return Self::Missing;
        };
        let nothing = PullRequestStatus::default();
        let status = object.status.as_ref().unwrap_or(&nothing);
        let attempts = status.attempts.unwrap_or_default();
        match status.state.unwrap_or(PullRequestState::Pending) {
            // It is suspended only after it has failed, which its status may have forgotten.
            PullRequestState::Pending if attempts > 0 || object.spec.suspend => Self::Failing {
                why: (status.message.clone()).unwrap_or_else(|| "it is suspended".to_owned()),
                attempts,
                next: status.next_attempt_at.as_ref().map(|at| at.0),
            },
            PullRequestState::Pending => Self::Waiting,
            PullRequestState::Open => Self::Open,
            PullRequestState::Merged => Self::Merged,
            PullRequestState::AlreadyInBase => Self::AlreadyInBase,
            PullRequestState::Closed => Self::Closed,
            PullRequestState::Missing => Self::Vanished,
        }
    }
}

/// Whether the forge is not asked about it again.
pub(super) fn is_final(object: &PullRequest) -> bool {
    let state = object.status.as_ref().and_then(|status| status.state);
    state.is_some_and(PullRequestState::is_final)
}

/// What a record says of its PullRequest, which is as it is now. A state that was final stays.
pub(super) fn mirrored(before: &PullRequestRecord, object: &PullRequest) -> PullRequestRecord {
    let is_final = |state: &PullRequestState| state.is_final();
    let status = object.status.clone().unwrap_or_default();
    PullRequestRecord {
        name: before.name.clone(),
        url: status.url.or_else(|| before.url.clone()),
        state: before.state.filter(is_final).or(status.state),
        commit_sha: status.commit_sha.or_else(|| before.commit_sha.clone()),
        merge_commit: status.merged_sha.or_else(|| before.merge_commit.clone()),
        merged_onto: status.merged_onto.or_else(|| before.merged_onto.clone()),
    }
}

/// Whether its pull request may still be opened, or be merged.
pub(super) fn is_outstanding(record: &PromotionRecord) -> bool {
    let state = |it: &PullRequestRecord| !it.state.is_some_and(PullRequestState::is_final);
    record.pull_request.as_ref().is_some_and(state)
}

/// The PullRequest of a promotion, as it is created.
pub(super) fn make(
    object: &Pipeline,
    environment: &str,
    record: &PromotionRecord,
    strategy: &PullRequestStrategy,
    close: Option<String>,
) -> PullRequest {
    let whose = Whose::of(object);
    let PullRequestStrategy {
        type_,
        url,
        base_branch,
        secret_ref,
        paths,
        merge: _,
        method: _,
    } = strategy;
    let promotion = whose.to(environment);
    let about = words::About {
        promotion,
        kind: &object.spec.app_ref.kind,
        name: &object.spec.app_ref.name,
        revision: &record.revision,
        run: record.run,
        versions: &[],
    };
    let spec = PullRequestSpec {
        repository: Repository::at(*type_, url.as_str(), secret_ref.clone()),
        source_branch: words::branch(&promotion, &record.key),
        target_branch: base_branch.clone(),
        title: words::title(&about),
        description: words::description(&about),
        change: Some(Change::Markers(Markers {
            name: promotion.to_string(),
            revision: record.revision.clone(),
            paths: paths.clone(),
        })),
        about: About {
            kind: KIND.to_owned(),
            name: whose.name.to_owned(),
            environment: environment.to_owned(),
            revision: Some(record.revision.clone()),
            run: Some(record.run),
            key: record.key.clone(),
        },
        suspend: false,
        close,
    };
    let mut made = PullRequest::new(&name(whose, &record.key), spec);
    made.metadata = ObjectMeta {
        namespace: object.metadata.namespace.clone(),
        owner_references: owner(object).map(|owner| vec![owner]),
        labels: object.metadata.labels.clone(),
        annotations: mark(object).map(|mark| BTreeMap::from([(marks::LABELS.to_owned(), mark)])),
        ..made.metadata
    };
    made
}

/// Which Pipeline a PullRequest was made for, by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This one.
    Ours,
    /// None is its owner: it was restored, or it was kept when its Pipeline was deleted. It is taken over.
    Nobody,
    /// An earlier one of the same name. It is deleted with that, at any moment. What it says may be gone
    /// with the next look, so nothing is read back from it: the forge says the same. As long as it is there,
    /// its pull request may be open and is closed, and the number of its run is taken.
    Earlier,
}

/// Which Pipeline a PullRequest was made for, which names this one.
pub(super) fn origin(object: &Pipeline, child: &PullRequest) -> Origin {
    let mut owners = child.metadata.owner_references.iter().flatten();
    let group = Pipeline::group(&());
    let is_pipeline =
        |it: &&OwnerReference| it.kind == KIND && it.api_version.split('/').next() == Some(&*group);
    match owners.find(is_pipeline) {
        None => Origin::Nobody,
        Some(owner) if object.metadata.uid.as_ref() == Some(&owner.uid) => Origin::Ours,
        Some(_) => Origin::Earlier,
    }
}

/// What a PullRequest has to get from its Pipeline: the labels, so that those who look at the Pipeline look at
/// it, too, and the owner, if it has none. None: it has them. Labels that others have given it stay.
pub(super) fn belongs(object: &Pipeline, child: &Arc<PullRequest>) -> Option<Act> {
    let owned = object.metadata.labels.iter().flatten();
    let present = child.metadata.labels.as_ref();
    let is_right = |(key, value): &(&String, &String)| {
        present.and_then(|all| all.get(key.as_str())) == Some(value)
    };
    let lacking = owned.clone().filter(|label| !is_right(label));
    let lacking = lacking.map(|(key, value)| (key.clone(), Some(value.clone())));
    let annotations = child.metadata.annotations.as_ref();
    let said = annotations.and_then(|all| all.get(marks::LABELS));
    let former = said.iter().flat_map(|keys| keys.split(','));
    let is_left = |key: &&str| owned.clone().all(|(owned, _)| owned != key);
    let left = former.filter(is_left).map(|key| (key.to_owned(), None));
    let labels: BTreeMap<_, _> = left.chain(lacking).collect();
    let mark = mark(object);
    let owners = match origin(object, child) {
        Origin::Ours | Origin::Earlier => None,
        Origin::Nobody => owner(object).map(|owner| {
            let others = child.metadata.owner_references.iter().flatten();
            others.cloned().chain([owner]).collect()
        }),
    };
    let is_right = labels.is_empty() && mark.as_ref() == said && owners.is_none();
    (!is_right).then(|| Act::Belong {
        before: Arc::clone(child),
        labels,
        mark,
        owners,
    })
}

/// The keys of the labels that a PullRequest has from its Pipeline. None: it has none.
fn mark(object: &Pipeline) -> Option<String> {
    let keys = object.metadata.labels.iter().flatten();
    let keys: Vec<_> = keys.map(|(key, _)| key.as_str()).collect();
    (!keys.is_empty()).then(|| keys.join(","))
}

/// Whether a PullRequest is what is made for the promotion that it names: its name, its branch and its marks
/// follow from that, and so does its key, from everything else that it changes and where. Another one was
/// made by somebody else.
pub(in crate::delivery) fn is_whole(object: &PullRequest) -> bool {
    let spec = &object.spec;
    let About {
        kind,
        name: pipeline,
        environment,
        revision,
        run,
        key: said,
    } = &spec.about;
    let (Some(revision), Some(run)) = (revision.as_deref(), *run) else {
        return false;
    };
    let whose = Whose {
        namespace: object.metadata.namespace.as_deref().unwrap_or_default(),
        name: pipeline,
    };
    let promotion = whose.to(environment);
    let (Some(Change::Markers(markers)), Some(way)) = (&spec.change, Way::of_pull_request(spec))
    else {
        return false;
    };
    kind == KIND
        && *said == key(whose, environment, run, revision, way)
        && object.metadata.name.as_deref() == Some(&name(whose, said))
        && spec.source_branch == words::branch(&promotion, said)
        && (&markers.name, markers.revision.as_str()) == (&promotion.to_string(), revision)
}

/// Whether both change the same in the same place for the same promotion.
pub fn is_same(one: &PullRequest, other: &PullRequest) -> bool {
    let fixed = |object: &PullRequest| {
        let PullRequestSpec {
            repository,
            source_branch,
            target_branch,
            change,
            about,
            title: _,
            description: _,
            suspend: _,
            close: _,
        } = object.spec.clone();
        (repository, source_branch, target_branch, change, about)
    };
    fixed(one) == fixed(other)
}

/// None: it was never created, as in a file.
pub(super) fn owner(object: &Pipeline) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: Pipeline::api_version(&()).into_owned(),
        kind: KIND.to_owned(),
        name: object.metadata.name.clone()?,
        uid: object.metadata.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: None,
    })
}

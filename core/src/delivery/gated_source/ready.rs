//! `Ready`, and what goes with it: `Reconciling` or `Stalled`.

use sluice_crds::GatedSourceStatus;

use super::Given;
use super::baseline::BASELINE_MISMATCH;
use super::child::Standing;
use super::conditions::{NAMED, Scene};
use super::considered::Step;
use super::objects::{Children, Objects};
use super::observed::{NOT_PINNABLE, Trouble};
use super::suspended::{self, Sources};
use crate::verdict::Reason;
use crate::verdict::condition::{READY, RECONCILING, STALLED, Wanted, listed};

/// `Ready`, with `Reconciling` or `Stalled` where one of them holds.
pub(super) fn ready(scene: &Scene<'_>, status: &GatedSourceStatus) -> Vec<Wanted> {
    match &scene.considered.step {
        Step::Refused(refusals) => {
            let message = format!("the spec is refused: {refusals}");
            return stalled(Reason::InvalidSpec.as_str(), &message);
        }
        Step::Paused => {
            let message = "suspended: nothing is admitted and nothing is changed";
            return vec![Wanted::new(
                READY,
                true,
                Reason::Suspended.as_str(),
                message,
            )];
        }
        _ => {}
    }
    if let Some(refused) = &scene.refused {
        return refused.clone();
    }
    let of_children = match scene.objects {
        Objects::Sources(sources) => return of_sources(scene.given, sources),
        Objects::Children(children) => of_children(children),
        Objects::Untouched => None,
    };
    let trouble = scene.considered.trouble.as_ref();
    of_children.unwrap_or_else(|| serving(scene.given, status, trouble))
}

fn stalled(reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(STALLED, true, reason, message),
    ]
}

fn progressing(message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, "Progressing", message),
        Wanted::new(RECONCILING, true, "Progressing", message),
    ]
}

/// The worst that there is to say of the children. None: all of them serve.
fn of_children(children: &Children) -> Option<Vec<Wanted>> {
    let standings = || children.standings.iter();
    let taken = standings().find_map(|standing| match standing {
        Standing::Taken(message) => Some(stalled("TargetTaken", message)),
        _ => None,
    });
    let fails = || {
        standings().find_map(|standing| match standing {
            Standing::Fails(reason, message) => {
                Some(vec![Wanted::new(READY, false, reason, message)])
            }
            _ => None,
        })
    };
    let fetching = || {
        standings().find_map(|standing| match standing {
            Standing::Fetching(message) => Some(progressing(message)),
            _ => None,
        })
    };
    taken.or_else(fails).or_else(fetching)
}

/// The children serve what was admitted, or nothing was.
fn serving(
    given: &Given<'_>,
    status: &GatedSourceStatus,
    trouble: Option<&Trouble>,
) -> Vec<Wanted> {
    let out = status.admitted.as_ref();
    match trouble.filter(|trouble| out.is_none() || !trouble.passes) {
        Some(trouble) if [BASELINE_MISMATCH, NOT_PINNABLE].contains(&trouble.reason) => {
            stalled(trouble.reason, &trouble.message)
        }
        // With nothing out yet it is the first fetch, as of each new app: nothing is wrong.
        Some(trouble) if trouble.passes => progressing(&trouble.message),
        Some(trouble) if out.is_none() || trouble.reason != "SourceNotReady" => {
            vec![Wanted::new(
                READY,
                false,
                trouble.reason,
                trouble.message.as_str(),
            )]
        }
        trouble => {
            let (reason, said) = match out {
                Some(admitted) => ("Serving", format!("serves {}", admitted.revision)),
                None => ("NothingAdmitted", "nothing has gone out yet".to_owned()),
            };
            let message = match trouble {
                None => said,
                Some(trouble) => format!("{said}; nothing newer is seen: {}", trouble.message),
            };
            let message = message + &suspended::still_held(given);
            vec![Wanted::new(READY, true, reason, message)]
        }
    }
}

fn of_sources(given: &Given<'_>, sources: &Sources) -> Vec<Wanted> {
    if !sources.choosy.is_empty() {
        let message = format!(
            "the answer of {} depends on the revision, which a suspended source does not show: \
             write strategy: pin, or name other gates",
            listed(&sources.choosy, NAMED)
        );
        return stalled(Reason::DependsOnRevision.as_str(), &message);
    }
    if !sources.troubles.is_empty() {
        let message = listed(&sources.troubles, NAMED);
        return vec![Wanted::new(READY, false, "CannotSuspend", message)];
    }
    let (reason, mut message) = match sources.held {
        0 => (
            "Released",
            format!("of {} sources none is suspended", sources.all),
        ),
        some => (
            "Holding",
            format!("{some} of {} sources are suspended", sources.all),
        ),
    };
    if sources.others > 0 {
        message.push_str(&format!("; {} are suspended by others", sources.others));
    }
    message.push_str(&suspended::still_held(given));
    vec![Wanted::new(READY, true, reason, message)]
}

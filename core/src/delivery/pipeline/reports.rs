//! Admissions that are reported to gatekeepers of the kind `external`: what such a gatekeeper says, and what
//! is written to it.
//!
//! What comes in: the gatekeeper as its API server has it, with `spec.external` and `status.report`. What
//! goes out: the revision that it has a report of, and the report to write. A report counts where the
//! gatekeeper would let it count: see [`gatekeeper::external`](crate::gatekeeper).

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::Setting;
use sluice_crds::gatekeeper::{External, ExternalReport};

use super::ReportSight;
use crate::time::stamp::time;

/// Until when a report holds, in seconds since 1970: until 9999-01-01. An admission does not age.
const NEVER: i64 = 253_370_764_800;

/// A gatekeeper that reports can be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desk {
    /// The generation of its spec.
    pub generation: i64,
    /// Who may write the report.
    pub writers: Vec<String>,
}

/// How a report can be written to a gatekeeper.
///
/// # Errors
/// It is of another kind.
pub fn desk(object: &Value) -> Result<Desk, String> {
    let external = serde_json::from_value::<External>(object["spec"]["external"].clone());
    let Ok(External { writers }) = external else {
        return Err(format!(
            "Gatekeeper {} is not of the kind external; write spec.external with the user of the \
             kubeconfig in writers, or name another one in gatekeeperRef",
            named(object)
        ));
    };
    let generation = object["metadata"]["generation"].as_i64();
    Ok(Desk {
        generation: generation.unwrap_or_default(),
        writers,
    })
}

fn named(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// What a gatekeeper says of admissions.
pub fn said(object: &Value) -> ReportSight {
    let desk = match desk(object) {
        Ok(desk) => desk,
        Err(why) => return ReportSight::Unreadable(why),
    };
    let report = serde_json::from_value::<ExternalReport>(object["status"]["report"].clone());
    let counts = |report: &ExternalReport| {
        report.state == Setting::Open
            && report.for_generation == desk.generation
            && report.expires_at == time(never())
            && desk.writers.contains(&report.by)
    };
    match report.ok().filter(counts).map(|report| report.revisions) {
        Some(revisions) if revisions.len() == 1 => {
            revisions.into_iter().map(ReportSight::Says).next()
        }
        Some(_) | None => None,
    }
    .unwrap_or(ReportSight::Nothing)
}

/// The report of a revision. `by`: the user that writes it.
pub fn report_of(revision: &str, desk: &Desk, by: &str) -> ExternalReport {
    ExternalReport {
        state: Setting::Open,
        revisions: vec![revision.to_owned()],
        reason: None,
        expires_at: time(never()),
        for_generation: desk.generation,
        by: by.to_owned(),
    }
}

fn never() -> Timestamp {
    Timestamp::from_second(NEVER).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn gatekeeper(change: &Value) -> Value {
        let desk = Desk {
            generation: 3,
            writers: vec!["bob".to_owned()],
        };
        let mut report = json!(report_of("6.1.6", &desk, "bob"));
        let fields = change.as_object().unwrap().clone();
        report.as_object_mut().unwrap().extend(fields);
        json!({
            "metadata": {"namespace": "apps", "name": "promoted", "generation": 3},
            "spec": {"external": {"writers": ["alice", "bob"]}},
            "status": {"report": report},
        })
    }

    #[rstest]
    #[case::as_it_was_written(json!({}), true)]
    #[case::closed(json!({"state": "closed"}), false)]
    #[case::for_an_older_generation(json!({"forGeneration": 2}), false)]
    #[case::by_somebody_else(json!({"by": "mallory"}), false)]
    #[case::that_expires(json!({"expiresAt": "2026-11-23T09:00:00Z"}), false)]
    #[case::of_all_revisions(json!({"revisions": []}), false)]
    #[case::of_two(json!({"revisions": ["6.1.6", "6.1.7"]}), false)]
    #[case::that_is_none(json!({"expiresAt": 5}), false)]
    fn a_report_says_its_revision_where_it_counts(#[case] change: Value, #[case] says: bool) {
        let expected = match says {
            true => ReportSight::Says("6.1.6".to_owned()),
            false => ReportSight::Nothing,
        };
        assert_eq!(said(&gatekeeper(&change)), expected);
    }

    #[test]
    fn without_a_report_it_says_nothing_and_of_another_kind_that_is_told() {
        let mut object = gatekeeper(&json!({}));
        object["status"] = Value::Null;
        assert_eq!(said(&object), ReportSight::Nothing);
        object["spec"] = json!({"manual": {}});
        let ReportSight::Unreadable(why) = said(&object) else {
            panic!("it is read")
        };
        let words = "Gatekeeper apps/promoted is not of the kind external; write spec.external";
        assert!(why.starts_with(words), "{why}");
    }

    #[test]
    fn a_report_never_expires() {
        let desk = Desk {
            generation: 1,
            writers: Vec::new(),
        };
        let report = json!(report_of("6.1.6", &desk, "bob"));
        assert_eq!(report["expiresAt"], "9999-01-01T00:00:00Z");
    }
}

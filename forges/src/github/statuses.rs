//! What is known of a commit: statuses, which anybody may set, and checks, which Apps report.

use serde::Deserialize;
use serde_json::json;
use sluice_egress::Method;

use super::{GitHub, NO_RIGHT};
use crate::call::{Call, May, says};
use crate::names::Sha;
use crate::outcome::{Act, ForgeError, Missing, Trouble};
use crate::pulls::{Said, Status, StatusState, cut};

/// The most characters of a status's description.
const LONGEST_DESCRIPTION: usize = 140;

impl GitHub {
    pub(crate) async fn set_status(
        &self,
        commit: &Sha,
        status: &Status<'_>,
        may: May<'_>,
    ) -> Act<()> {
        let call = self.0.call("set a commit status");
        let body = json!({
            "state": match status.state {
                StatusState::Pending => "pending",
                StatusState::Success => "success",
                StatusState::Failure => "failure",
            },
            "context": status.context,
            "description": cut(status.description, LONGEST_DESCRIPTION),
            "target_url": status.url,
        });
        let path = format!("/statuses/{commit}");
        let reply = call.send_while(Method::Post, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(NO_RIGHT).await),
            422 if says(&reply.body, "No commit found") => {
                call.undone(Trouble::Absent(Missing::Commit))
            }
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn statuses(&self, commit: &Sha) -> Result<Vec<Said>, ForgeError> {
        let call = self.0.call("read the statuses of a commit");
        let path = format!("/commits/{commit}/status");
        let set = call.statuses::<Combined, StatusShape>(&path, &[]).await;
        let set = set.map_err(|error| unknown(&call, error))?;
        let path = format!("/commits/{commit}/check-runs");
        let query = [("filter", "latest")];
        let runs = call.statuses::<CheckRuns, CheckRun>(&path, &query).await?;
        let set = set.into_iter().map(StatusShape::read);
        Ok(set.chain(runs.into_iter().map(CheckRun::read)).collect())
    }
}

/// GitHub refuses to look for a commit that is not there.
fn unknown(call: &Call<'_>, error: ForgeError) -> ForgeError {
    match error.trouble {
        Trouble::Refused(422, _) => call.error(Trouble::Absent(Missing::Commit)),
        _ => error,
    }
}

/// The newest status of each context.
#[derive(Deserialize)]
struct Combined {
    statuses: Vec<StatusShape>,
}

#[derive(Deserialize)]
struct StatusShape {
    context: String,
    state: String,
    description: Option<String>,
    target_url: Option<String>,
}

#[derive(Deserialize)]
struct CheckRuns {
    check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
struct CheckRun {
    name: String,
    status: String,
    conclusion: Option<String>,
    html_url: Option<String>,
    output: Option<Output>,
}

#[derive(Deserialize)]
struct Output {
    title: Option<String>,
}

impl From<Combined> for Vec<StatusShape> {
    fn from(page: Combined) -> Self {
        page.statuses
    }
}

impl From<CheckRuns> for Vec<CheckRun> {
    fn from(page: CheckRuns) -> Self {
        page.check_runs
    }
}

impl StatusShape {
    fn read(self) -> Said {
        Said {
            state: match self.state.as_str() {
                "success" => StatusState::Success,
                "failure" | "error" => StatusState::Failure,
                _ => StatusState::Pending,
            },
            context: self.context,
            description: self.description,
            url: self.target_url,
        }
    }
}

impl CheckRun {
    fn read(self) -> Said {
        let conclusion = self.conclusion.filter(|_| self.status == "completed");
        Said {
            state: match conclusion.as_deref() {
                Some("success" | "neutral" | "skipped") => StatusState::Success,
                Some("failure" | "cancelled" | "timed_out" | "action_required") => {
                    StatusState::Failure
                }
                Some(_) | None => StatusState::Pending,
            },
            context: self.name,
            description: self.output.and_then(|output| output.title),
            url: self.html_url,
        }
    }
}

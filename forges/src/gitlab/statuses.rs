//! Commit statuses: jobs of pipelines, and what others have set beside them.

use serde::Deserialize;
use serde_json::json;
use sluice_egress::Method;

use super::GitLab;
use crate::call::{May, says};
use crate::names::Sha;
use crate::outcome::{Act, ForgeError, Missing, Trouble};
use crate::pulls::{Said, Status, StatusState, cut};

/// The most characters of a status's description.
const LONGEST_DESCRIPTION: usize = 255;

impl GitLab {
    /// GitLab refuses to set a status to pending that is pending already: then it is done.
    pub(crate) async fn set_status(
        &self,
        commit: &Sha,
        status: &Status<'_>,
        may: May<'_>,
    ) -> Act<()> {
        let call = self.0.call("set a commit status");
        let state = match status.state {
            StatusState::Pending => "pending",
            StatusState::Success => "success",
            StatusState::Failure => "failed",
        };
        let body = json!({
            "state": state,
            "name": status.context,
            "description": cut(status.description, LONGEST_DESCRIPTION),
            "target_url": status.url,
        });
        let path = format!("/statuses/{commit}");
        let reply = call.send_while(Method::Post, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Commit)).await),
            400 if is_in_state(&reply.body, state) => Ok(()),
            _ => call.done(&reply),
        }
    }

    /// Without `all`, the newest of each name.
    pub(crate) async fn statuses(&self, commit: &Sha) -> Result<Vec<Said>, ForgeError> {
        let call = self.0.call("read the statuses of a commit");
        let path = format!("/repository/commits/{commit}/statuses");
        let seen = call.statuses::<Vec<_>, StatusShape>(&path, &[]).await?;
        Ok(seen.into_iter().map(StatusShape::read).collect())
    }
}

/// Whether a status was refused because it is in this state already.
fn is_in_state(body: &[u8], state: &str) -> bool {
    says(body, "Cannot transition status via") && says(body, &format!(" from :{state}"))
}

#[derive(Deserialize)]
struct StatusShape {
    name: String,
    status: String,
    description: Option<String>,
    target_url: Option<String>,
}

impl StatusShape {
    /// A job that is skipped has waited for one that failed, so that it says nothing yet.
    fn read(self) -> Said {
        Said {
            state: match self.status.as_str() {
                "success" => StatusState::Success,
                "failed" | "canceled" => StatusState::Failure,
                _ => StatusState::Pending,
            },
            context: self.name,
            description: self.description,
            url: self.target_url,
        }
    }
}

//! Commit statuses.

use serde::Deserialize;
use serde_json::json;
use sluice_egress::Method;

use super::{Gitea, has_commit};
use crate::call::May;
use crate::names::Sha;
use crate::outcome::{Act, ForgeError, Missing, Trouble};
use crate::pulls::{Said, Status, StatusState};

impl Gitea {
    /// Gitea fails with 500 where the commit is not there.
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
            "description": status.description,
            "target_url": status.url,
        });
        let path = format!("/statuses/{commit}");
        let reply = call.send_while(Method::Post, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Commit)).await),
            500 => match has_commit(&call, commit).await {
                Ok(false) => call.undone(Trouble::Absent(Missing::Commit)),
                Ok(true) | Err(_) => call.done(&reply),
            },
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn statuses(&self, commit: &Sha) -> Result<Vec<Said>, ForgeError> {
        let call = self.0.call("read the statuses of a commit");
        let path = format!("/commits/{commit}/status");
        let seen = call.statuses::<Combined, StatusShape>(&path, &[]).await?;
        Ok(seen.into_iter().map(StatusShape::read).collect())
    }
}

/// The newest status of each context: null, if there is none.
#[derive(Deserialize)]
struct Combined {
    statuses: Option<Vec<StatusShape>>,
}

#[derive(Deserialize)]
struct StatusShape {
    context: String,
    status: String,
    description: Option<String>,
    target_url: Option<String>,
}

impl From<Combined> for Vec<StatusShape> {
    fn from(page: Combined) -> Self {
        page.statuses.unwrap_or_default()
    }
}

impl StatusShape {
    /// As Gitea itself counts them where it requires one.
    fn read(self) -> Said {
        Said {
            state: match self.status.as_str() {
                "success" | "skipped" => StatusState::Success,
                "failure" | "error" | "warning" => StatusState::Failure,
                _ => StatusState::Pending,
            },
            context: self.context,
            description: self.description,
            url: self.target_url,
        }
    }
}

//! Build statuses, as Bitbucket calls commit statuses.

use serde::Deserialize;
use serde_json::json;
use sluice_egress::Method;

use super::BitbucketServer;
use crate::call::May;
use crate::names::Sha;
use crate::outcome::{Act, ForgeError, Missing, Trouble};
use crate::pulls::{Said, Status, StatusState, cut};

/// The most characters of a build's name and of its description.
const LONGEST_DESCRIPTION: usize = 255;

impl BitbucketServer {
    /// A build status, which has a key and an address.
    pub(crate) async fn set_status(
        &self,
        commit: &Sha,
        status: &Status<'_>,
        may: May<'_>,
    ) -> Act<()> {
        let call = self.0.call("set a commit status");
        let body = json!({
            "key": cut(status.context, LONGEST_DESCRIPTION),
            "name": cut(status.context, LONGEST_DESCRIPTION),
            "state": match status.state {
                StatusState::Pending => "INPROGRESS",
                StatusState::Success => "SUCCESSFUL",
                StatusState::Failure => "FAILED",
            },
            "description": cut(status.description, LONGEST_DESCRIPTION),
            "url": status.url,
        });
        let path = format!("/commits/{commit}/builds");
        let reply = call.send_while(Method::Post, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Commit)).await),
            _ => call.done(&reply),
        }
    }

    /// They are asked of the server: a commit has the same ones in each repository.
    pub(crate) async fn statuses(&self, commit: &Sha) -> Result<Vec<Said>, ForgeError> {
        let root = format!("{}/build-status/1.0", self.0.address.api());
        let builds = self.0.clone().at(root);
        let call = builds.call("read the statuses of a commit");
        let path = format!("/commits/{commit}");
        let seen = call.statuses::<Vec<_>, Build>(&path, &[]).await?;
        Ok(seen.into_iter().map(Build::read).collect())
    }
}

#[derive(Deserialize)]
struct Build {
    key: String,
    state: String,
    description: Option<String>,
    url: Option<String>,
}

impl Build {
    fn read(self) -> Said {
        Said {
            state: match self.state.as_str() {
                "SUCCESSFUL" => StatusState::Success,
                "FAILED" | "CANCELLED" => StatusState::Failure,
                _ => StatusState::Pending,
            },
            context: self.key,
            description: self.description,
            url: self.url,
        }
    }
}

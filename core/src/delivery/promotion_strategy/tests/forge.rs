//! The forge that is played.

use sluice_crds::pull_request::Change;

use super::*;

impl Play {
    /// What the forge and the looks at PullRequests do: open, follow, close, merge by an order.
    pub(super) fn forge(&mut self) -> bool {
        let mut moved = false;
        for place in 0..self.pull_requests.len() {
            let object = self.pull_requests[place].clone();
            let mut status = object.status.clone().unwrap_or_default();
            let head = self.repository.find(&object.spec.source_branch);
            match status.state.unwrap_or(PullRequestState::Pending) {
                PullRequestState::Pending => {
                    let mut head = head;
                    if let Some(Change::Tree(tree)) = &object.spec.change {
                        let branch = &object.spec.source_branch;
                        let made = self.repository.of_tree(branch, tree);
                        status.commit_sha = Some(made.clone());
                        head = Some(made);
                    }
                    status.state = Some(PullRequestState::Open);
                    status.id = Some(i64::try_from(place).unwrap() + 1);
                    status.head_sha = head;
                    self.events
                        .push(format!("opens {}", object.spec.source_branch));
                }
                PullRequestState::Open if object.spec.close.is_some() => {
                    self.events
                        .push(format!("closes {}", object.spec.source_branch));
                    status.state = Some(PullRequestState::Closed);
                }
                PullRequestState::Open => {
                    status.head_sha = self.joined(&object).or(head);
                    if let Some(order) = self.order(&object) {
                        assert_eq!(Some(&order), status.head_sha.as_ref());
                        status.merge_sent = Some(self.sent(&order));
                        let base = &object.spec.target_branch;
                        let merged = match self.squashes {
                            true => self.repository.squash(base, &order),
                            false => self.repository.merge(base, &order),
                        };
                        self.events
                            .push(format!("merges {}", object.spec.source_branch));
                        self.merges.push((base.clone(), order));
                        status.state = Some(PullRequestState::Merged);
                        status.merged_sha = Some(merged);
                        status.merged_at = Some(time(self.now));
                    }
                }
                _ => {}
            }
            moved |= object.status.as_ref() != Some(&status);
            self.pull_requests[place].status = Some(status);
        }
        moved
    }

    /// What is proposed is joined to the history of its environment, if that is ordered.
    fn joined(&mut self, object: &PullRequest) -> Option<String> {
        let environment = self.find(&object.spec.about.environment)?;
        let join = environment
            .join
            .clone()
            .filter(|_| object.spec.change.is_none())?;
        let branch = &object.spec.source_branch;
        let is_due = self.repository.find(branch).as_ref() == Some(&join.head_sha);
        is_due.then(|| {
            self.events.push(format!("joins {branch}"));
            self.repository.join(branch, &join)
        })
    }

    /// The head that may be merged now.
    fn order(&self, object: &PullRequest) -> Option<String> {
        let environment = self.find(&object.spec.about.environment)?;
        let order = environment.order.as_ref()?;
        let is_it = Some(&order.pull_request) == object.metadata.name.as_ref()
            && order.key == object.spec.about.key
            && order.not_after.0 >= self.now
            && Some(&order.head_sha) == self.repository.find(&object.spec.source_branch).as_ref();
        is_it.then(|| order.head_sha.clone())
    }

    /// A person merges the pull request of an environment.
    pub(super) fn merge_by_person(&mut self, branch: &str) {
        let head = self.repository.head(&format!("{branch}-next"));
        let merged = self.repository.merge(branch, &head);
        let status = self.pull_request(branch).status.as_mut().unwrap();
        status.state = Some(PullRequestState::Merged);
        status.merged_sha = Some(merged);
        status.merged_by = Some("alice".to_owned());
        self.events.push(format!("merges {branch}-next for alice"));
    }
}

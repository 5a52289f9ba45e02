//! What Prometheus reads of promotion by branches: what the statuses of strategies, accesses and reverts say.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::{GitRepositoryAccess, PromotionStrategy, RevertCommit};

use super::sample::{Sample, family, truth};

/// Writes every gauge of these. Of states, reasons and phases only the present ones.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    strategies: &[Arc<PromotionStrategy>],
    accesses: &[Arc<GitRepositoryAccess>],
    reverts: &[Arc<RevertCommit>],
) -> Result<(), Error> {
    let environments = || {
        strategies.iter().flat_map(|strategy| {
            let all = strategy.status.iter().flat_map(|it| &it.environments);
            all.map(|it| {
                let sample = Sample::of(strategy.as_ref(), 1.0);
                (sample.with("environment", &it.branch), it)
            })
        })
    };
    family(
        encoder,
        "sluice_branch_environment_state",
        "1 for the state that an environment that is a branch is in",
        environments().map(|(sample, it)| sample.with("state", it.state.as_str())),
    )?;
    family(
        encoder,
        "sluice_branch_waiting",
        "1 for the reason why what is proposed for an environment that is a branch waits",
        environments().filter_map(|(sample, it)| Some(sample.with("reason", it.reason.as_ref()?))),
    )?;
    family(
        encoder,
        "sluice_repository_access_ready",
        "1 while a repository can be read, or nobody needs it, 0 while it cannot",
        accesses.iter().filter_map(|access| {
            let ready = find(&access.status.as_ref()?.conditions, READY)?;
            Some(Sample::of(access.as_ref(), truth(ready.status == "True")))
        }),
    )?;
    family(
        encoder,
        "sluice_revert_phase",
        "1 for the phase that a RevertCommit is in",
        reverts.iter().filter_map(|revert| {
            let phase = revert.status.as_ref()?.phase?;
            let sample = Sample::of(revert.as_ref(), 1.0);
            let sample = sample.with("environment", &revert.spec.active_branch);
            Some(sample.with("phase", phase.as_str()))
        }),
    )
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::super::sample::tests::page;
    use super::*;

    fn object<K: DeserializeOwned>(kind: &str, spec: &Value, status: &Value) -> Arc<K> {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind,
            "metadata": {"namespace": "apps", "name": "shop"}, "spec": spec, "status": status,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    /// Every line of a metric that three objects lead to.
    fn lines(metric: &str) -> Vec<String> {
        let strategy = object(
            "PromotionStrategy",
            &json!({"repoRef": {"name": "shop"}, "environments": [{"branch": "env/dev"}]}),
            &json!({"environments": [
                {"branch": "env/dev", "state": "UpToDate"},
                {"branch": "env/prod", "state": "Waiting", "reason": "CheckFailed"},
            ]}),
        );
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "Unauthorized", "message": "no",
            "lastTransitionTime": "2026-11-20T12:00:00Z",
        });
        let access = object(
            "GitRepositoryAccess",
            &json!({"provider": "gitea", "url": "https://a/b", "secretRef": {"name": "a"}}),
            &json!({"conditions": [condition]}),
        );
        let sha = "a".repeat(40);
        let revert = object(
            "RevertCommit",
            &json!({
                "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": sha,
                "drySHA": sha, "reason": "INC-4711", "by": "alice",
            }),
            &json!({"phase": "Stalled"}),
        );
        page(metric, move |encoder| {
            encode(
                encoder,
                std::slice::from_ref(&strategy),
                std::slice::from_ref(&access),
                std::slice::from_ref(&revert),
            )
        })
    }

    #[test]
    fn statuses_are_told_as_they_are() {
        let of = r#"namespace="apps",name="shop""#;
        assert_eq!(
            lines("sluice_branch_environment_state"),
            [
                format!(r#"{{{of},environment="env/dev",state="UpToDate"}} 1.0"#),
                format!(r#"{{{of},environment="env/prod",state="Waiting"}} 1.0"#),
            ]
        );
        assert_eq!(
            lines("sluice_branch_waiting"),
            [format!(
                r#"{{{of},environment="env/prod",reason="CheckFailed"}} 1.0"#
            )]
        );
        assert_eq!(
            lines("sluice_repository_access_ready"),
            [format!("{{{of}}} 0.0")]
        );
        assert_eq!(
            lines("sluice_revert_phase"),
            [format!(
                r#"{{{of},environment="env/prod",phase="Stalled"}} 1.0"#
            )]
        );
    }
}

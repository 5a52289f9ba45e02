//! What Prometheus reads of pipelines: what their statuses say of each environment.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_crds::Pipeline;

use super::sample::{Sample, family};

/// Writes every gauge of these pipelines. There are many states, so that only the present one of each
/// environment is written.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    pipelines: &[Arc<Pipeline>],
) -> Result<(), Error> {
    family(
        encoder,
        "sluice_pipeline_environment_state",
        "1 for the state that the environment of a pipeline is in",
        pipelines.iter().flat_map(|pipeline| {
            let environments = pipeline.status.iter().flat_map(|it| &it.environments);
            environments.map(|(name, environment)| {
                Sample::of(pipeline.as_ref(), 1.0)
                    .with("environment", name)
                    .with("state", environment.state.as_str())
            })
        }),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::sample::tests::page;
    use super::*;

    #[test]
    fn each_environment_has_the_state_that_its_status_says() {
        let pipeline = |name: &str, status: &Value| -> Arc<Pipeline> {
            let pipeline = json!({
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "Pipeline",
                "metadata": {"namespace": "apps", "name": name},
                "spec": {
                    "appRef": {"kind": "HelmRelease", "name": name},
                    "environments": [{"name": "dev", "targets": [{"namespace": "dev"}]}],
                },
                "status": status,
            });
            Arc::new(serde_json::from_value(pipeline).unwrap())
        };
        let shop = json!({"environments": {
            "dev": {"state": "Passed"}, "prod": {"state": "Abandoned"},
        }});
        let pipelines = [pipeline("new", &Value::Null), pipeline("shop", &shop)];
        let lines = page("sluice_pipeline_environment_state", move |encoder| {
            encode(encoder, &pipelines)
        });
        assert_eq!(
            lines,
            [
                r#"{namespace="apps",name="shop",environment="dev",state="Passed"} 1.0"#,
                r#"{namespace="apps",name="shop",environment="prod",state="Abandoned"} 1.0"#,
            ]
        );
    }
}

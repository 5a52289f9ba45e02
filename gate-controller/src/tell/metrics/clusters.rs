//! What Prometheus reads of other clusters: what the statuses of pipelines say.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_crds::Pipeline;

use super::sample::{Sample, family, truth};

/// Writes whether the clusters of these pipelines can be read.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    pipelines: &[Arc<Pipeline>],
) -> Result<(), Error> {
    let samples = pipelines.iter().flat_map(|pipeline| {
        let status = pipeline.status.iter();
        let clusters = status.flat_map(|status| &status.clusters);
        clusters.map(move |it| {
            Sample::of(pipeline.as_ref(), truth(it.reachable)).with("cluster", &it.cluster)
        })
    });
    family(
        encoder,
        "sluice_cluster_reachable",
        "1 while a pipeline's other cluster can be read, 0 while it cannot",
        samples,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::tests::page;
    use super::*;

    #[test]
    fn each_cluster_of_a_pipeline_can_be_read_or_not_as_its_status_says() {
        let cluster = |name: &str, reachable: bool| {
            json!({"cluster": format!("Secret {name}"), "reachable": reachable,
                   "since": "2026-11-20T12:00:00Z"})
        };
        let pipeline = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"namespace": "apps", "name": "podinfo"},
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": "podinfo"},
                "environments": [{"name": "dev", "targets": [{"namespace": "apps"}]}],
            },
            "status": {"clusters": [cluster("eu", true), cluster("us", false)]},
        });
        let pipelines = [Arc::new(serde_json::from_value(pipeline).unwrap())];
        let lines = page("sluice_cluster_reachable", move |encoder| {
            encode(encoder, &pipelines)
        });
        assert_eq!(
            lines,
            [
                r#"{namespace="apps",name="podinfo",cluster="Secret eu"} 1.0"#,
                r#"{namespace="apps",name="podinfo",cluster="Secret us"} 0.0"#,
            ]
        );
    }
}

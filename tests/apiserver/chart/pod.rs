//! The controller's pod.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::installed;

async fn template() -> Result<PodSpec> {
    let client = installed().await?.client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client, "sluice-system");
    let deployment = deployments.get("gate-controller").await?;
    deployment.spec.template.spec.context("no pod spec")
}

/// Asks the API server whether the pod may run, without running it.
async fn admit(spec: PodSpec) -> Result<kube::Result<Pod>> {
    let client = installed().await?.client().await?;
    let pods: Api<Pod> = Api::namespaced(client, "sluice-system");
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let pod = Pod {
        metadata: ObjectMeta {
            generate_name: Some("gate-controller-".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    };
    Ok(pods.create(&parameters, &pod).await)
}

#[tokio::test]
async fn it_may_run_where_pods_are_restricted() -> Result<()> {
    let spec = template().await?;
    admit(spec.clone()).await??;

    // The check is alive: the same pod with one wish more is refused.
    let mut greedy = spec;
    let context = greedy.containers[0].security_context.as_mut();
    context
        .context("no security context")?
        .allow_privilege_escalation = Some(true);
    let refused = admit(greedy)
        .await?
        .err()
        .context("a greedy pod was admitted")?;
    assert!(
        refused
            .to_string()
            .contains("violates PodSecurity \"restricted"),
        "{refused}"
    );
    Ok(())
}

/// What the standard does not ask for, and we do.
#[tokio::test]
async fn it_writes_nothing_and_is_a_known_user() -> Result<()> {
    let spec = template().await?;
    let context = spec.security_context.context("no security context")?;
    assert_eq!(
        (context.run_as_user, context.run_as_group),
        (Some(65532), Some(65532))
    );
    let [container] = &spec.containers[..] else {
        anyhow::bail!("more than one container");
    };
    let context = container
        .security_context
        .as_ref()
        .context("no security context")?;
    assert_eq!(context.read_only_root_filesystem, Some(true));
    let dropped = context
        .capabilities
        .as_ref()
        .and_then(|own| own.drop.clone());
    assert_eq!(dropped, Some(vec!["ALL".to_owned()]));
    assert_eq!(spec.volumes.unwrap_or_default(), []);
    assert!(!spec.host_network.unwrap_or_default());
    assert_eq!(spec.automount_service_account_token, Some(true));
    Ok(())
}

#[tokio::test]
async fn it_is_probed_measured_and_told_where_it_runs() -> Result<()> {
    let spec = template().await?;
    let container = &spec.containers[0];
    let mut ports: Vec<_> = container.ports.iter().flatten().collect();
    ports.sort_by_key(|port| port.container_port);
    let ports: Vec<_> = ports
        .iter()
        .map(|port| (port.name.as_deref(), port.container_port))
        .collect();
    assert_eq!(ports, [(Some("http-prom"), 8080), (Some("healthz"), 9440)]);
    assert_eq!(
        probed(container),
        [Some("/healthz".to_owned()), Some("/readyz".to_owned())]
    );
    let fields = container.env.iter().flatten().filter_map(|variable| {
        let source = variable.value_from.as_ref()?.field_ref.as_ref()?;
        Some((variable.name.as_str(), source.field_path.as_str()))
    });
    let fields: Vec<_> = fields.collect();
    assert_eq!(
        fields,
        [
            ("RUNTIME_NAMESPACE", "metadata.namespace"),
            ("POD_NAME", "metadata.name")
        ]
    );
    let limits = container
        .resources
        .as_ref()
        .and_then(|resources| resources.limits.as_ref());
    assert!(limits.is_some_and(|limits| limits.contains_key("memory")));
    assert_eq!(
        spec.topology_spread_constraints.map(|rules| rules.len()),
        Some(1)
    );
    Ok(())
}

fn probed(container: &Container) -> [Option<String>; 2] {
    [&container.liveness_probe, &container.readiness_probe].map(|probe| {
        let get = probe.as_ref()?.http_get.as_ref()?;
        get.path.clone()
    })
}

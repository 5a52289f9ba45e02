//! A kind that is defined and withdrawn while a controller runs. Its objects have the condition
//! that is asked for by default.

use anyhow::Result;
use jiff::SignedDuration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use serde_json::json;
use sluice_crds::State;
use sluice_tests::Writes;

use super::{NOON, READ, grant, keeper, says};
use crate::stage::Stage;

/// A kind of the test's own, by its group: definitions are in no namespace.
struct Widgets<'a> {
    stage: &'a Stage,
    group: String,
}

impl Widgets<'_> {
    async fn define(&self) -> Result<()> {
        let Self { stage, group } = self;
        let definition = format!(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}, labels: {{sluice.dev/test: 'true'}}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Widget, plural: widgets, singular: widget}}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
        );
        stage.apply(&definition).await
    }

    async fn withdraw(&self) -> Result<()> {
        let all: Api<CustomResourceDefinition> = Api::all(self.stage.client());
        let name = format!("widgets.{}", self.group);
        all.delete(&name, &DeleteParams::background()).await?;
        Ok(())
    }

    async fn put(&self, size: u8) -> Result<()> {
        let group = &self.group;
        let widget = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Widget",
            "metadata": {"name": "one"}, "size": size,
        });
        self.stage.apply(&widget.to_string()).await
    }

    async fn is_ready(&self, generation: i64) -> Result<()> {
        let resource = ApiResource {
            group: self.group.clone(),
            version: "v1".to_owned(),
            api_version: format!("{}/v1", self.group),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
        };
        let (client, namespace) = (self.stage.client(), self.stage.namespace());
        let widgets: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let condition = json!({
            "type": "Ready", "status": "True", "observedGeneration": generation,
            "lastTransitionTime": NOON,
        });
        let status = json!({"status": {"conditions": [condition]}});
        widgets.merge_status("one", &status).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_kind_may_come_and_go_while_the_controller_runs() -> Result<()> {
    let stage = Stage::new("objects-kinds", NOON).await?;
    let home = stage.namespace();
    let group = format!("{home}.example.com");
    let of = format!("of: [{{apiVersion: {group}/v1, kind: Widget, name: one}}]");
    stage.apply(&keeper(&of)).await?;
    grant(&stage, home, (&group, "widgets"), READ).await?;
    let _controller = stage.start().await?;
    let unknown = format!("the API server has no kind Widget in {group}/v1");
    says(&stage, State::Closed, "EvidenceUnavailable", &unknown).await?;

    let widgets = Widgets {
        stage: &stage,
        group,
    };
    let a_minute_later = || {
        let later = stage.now() + SignedDuration::from_mins(1);
        stage.set(&later.to_string());
    };
    for _ in 0..2 {
        widgets.define().await?;
        widgets.put(1).await?;
        widgets.is_ready(1).await?;
        a_minute_later();
        says(&stage, State::Open, "ObjectsReady", "").await?;
        widgets.put(2).await?;
        let old = "its condition Ready is about generation 1, and it is at 2";
        says(&stage, State::Closed, "ObjectsNotReady", old).await?;
        widgets.is_ready(2).await?;
        says(&stage, State::Open, "ObjectsReady", "").await?;
        widgets.withdraw().await?;
        says(&stage, State::Closed, "EvidenceUnavailable", &unknown).await?;
    }
    Ok(())
}

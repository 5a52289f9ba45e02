//! Mistakes in gatekeepers over objects.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Judge, Mistake, with};

/// Mistakes in objects, of which there is one entry, with these fields but for what is written here.
#[rustfmt::skip]
const OBJECTS: &[Mistake] = &[
    ("{apiVersion: null}", ".apiVersion", "Required value", "="),
    ("{apiVersion: apps}", ".apiVersion", "should match", "="),
    ("{apiVersion: apps/v1/deployments}", ".apiVersion", "should match", "="),
    ("{kind: null}", ".kind", "Required value", "="),
    ("{kind: ''}", ".kind", "at least 1 chars long", "="),
    ("{kind: deployments.apps}", ".kind", "should match", "="),
    ("{apiVersion: v1, kind: Secret}", ".kind", "Secrets are never read; name another kind", "="),
    ("{namespace: a.b}", ".namespace", "should match", "="),
    ("{name: null}", "", "write name or selector", "="),
    ("{selector: {}}", "", "write name or selector", "="),
    ("{name: ''}", ".name", "at least 1 chars long", "="),
    ("{condition: {}}", ".condition.type", "Required value", "="),
    ("{condition: {type: Ready, status: 'Yes'}}", ".condition.status", "should match", "="),
    ("{condition: {type: Ready}, expression: 'true'}", ".expression", "takes the place of condition", "="),
    ("{expression: ''}", ".expression", "at least 1 chars long", "="),
];

#[rustfmt::skip]
const OF_OBJECTS: &[Mistake] = &[
    ("{serviceAccountName: null}", ".serviceAccountName", "Required value", "="),
    ("{serviceAccountName: ''}", ".serviceAccountName", "at least 1 chars long", "="),
    ("{serviceAccountName: Reader}", ".serviceAccountName", "should match", "="),
    ("{of: []}", ".of", "at least 1 items", "="),
    ("{soak: 0s}", ".soak", "longer than zero and at most 168h", "="),
    ("{soak: 169h}", ".soak", "longer than zero and at most 168h", "="),
    ("{soak: 7d1s}", ".soak", "longer than zero and at most 168h", "="),
    ("{soak: a while}", ".soak", "should match", "="),
];

#[tokio::test]
async fn mistakes_in_objects_are_refused() -> Result<()> {
    const ONE: &str = "apiVersion: apps/v1, kind: Deployment, name: web";
    let judge = Judge::new().await?;
    let whole = |mistake: &Mistake| {
        let of = with("of", ONE, mistake.0)?;
        let of: Value = serde_saphyr::from_str(&of)?;
        let objects = json!({"serviceAccountName": "reader", "of": [of["of"]]});
        anyhow::Ok(json!({ "objects": objects }).to_string())
    };
    let table: Vec<_> = OBJECTS
        .iter()
        .map(|mistake| Ok((whole(mistake)?, mistake)))
        .collect::<Result<_>>()?;
    judge
        .refuses_all("Gatekeeper", "spec.objects.of[0]", table.into_iter())
        .await?;
    let fields = format!("serviceAccountName: reader, of: [{{{ONE}}}]");
    let whole = |mistake: &Mistake| with("objects", &fields, mistake.0);
    let table: Vec<_> = OF_OBJECTS
        .iter()
        .map(|mistake| Ok((whole(mistake)?, mistake)))
        .collect::<Result<_>>()?;
    judge
        .refuses_all("Gatekeeper", "spec.objects", table.into_iter())
        .await
}

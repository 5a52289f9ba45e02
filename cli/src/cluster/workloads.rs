//! The workloads of a Rollout, as far as they may be seen.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::Value;
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::wanted;
use sluice_core::delivery::rollout::workload::Kind;
use sluice_core::offline::simulate::Key;
use sluice_crds::Rollout;

use super::connection::Connection;
use super::watched::Watched;

/// The workloads of a Rollout. Who may see Rollouts need not be able to see those: they are left out.
pub(crate) async fn workloads(connection: &Connection, object: &Rollout) -> BTreeMap<Name, Value> {
    let namespace = Key::of(&object.metadata).namespace;
    let mut found = BTreeMap::new();
    for name in wanted(object, &BTreeMap::new()) {
        let resource = resource(name.kind);
        let client = connection.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &resource);
        let object = api.get_opt(&name.name).await.ok().flatten();
        let object = object.and_then(|it| serde_json::to_value(it).ok());
        found.extend(object.map(|object| (name, object)));
    }
    found
}

fn resource(kind: Kind) -> ApiResource {
    let version = kind.api_version().rsplit('/').next().unwrap_or_default();
    let named = GroupVersionKind::gvk(kind.group(), version, kind.as_str());
    ApiResource::from_gvk_with_plural(&named, kind.plural())
}

impl Watched {
    /// The workloads of a Rollout. Those of OpenKruise, which need not be served, are looked at every now and
    /// then.
    pub(crate) fn workloads(&mut self, connection: &Connection, object: &Rollout) {
        let namespace = Key::of(&object.metadata).namespace;
        for Name { kind, name } in wanted(object, &BTreeMap::new()) {
            let namespace = namespace.clone();
            let key = Key { namespace, name };
            match kind {
                Kind::Deployment => self.one::<Deployment>(connection, &key),
                Kind::StatefulSet => self.one::<StatefulSet>(connection, &key),
                Kind::CloneSet => {}
            }
        }
    }
}

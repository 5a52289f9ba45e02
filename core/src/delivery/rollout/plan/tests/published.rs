//! Plans in the form in which KubeVela has published them: they are taken as they are.

use rstest::rstest;
use serde_json::{Value, json};

use super::{check, rollout};

#[rstest]
#[case::a_mix_with_a_partition(json!({
    "rolloutStrategy": "IncreaseFirst",
    "rolloutBatches": [{"replicas": "10%"}, {"replicas": 2}, {"replicas": 2}],
    "batchPartition": 1,
}))]
#[case::two_that_make_the_target_size(json!({
    "targetSize": 5, "rolloutBatches": [{"replicas": 2}, {"replicas": 3}],
}))]
#[case::one_by_one(json!({"targetSize": 2, "rolloutBatches": [{"replicas": 1}, {"replicas": 1}]}))]
#[case::a_number_of_batches(json!({"numBatches": 2, "targetSize": 6}))]
#[case::percentages_to_the_end(json!({
    "rolloutStrategy": "IncreaseFirst", "targetSize": 10,
    "rolloutBatches": [{"replicas": "20%"}, {"replicas": "30%"}, {"replicas": "50%"}],
}))]
#[case::nothing(json!({}))]
#[case::paused(json!({"paused": true, "revertOnDelete": true, "batchPartition": 0, "numBatches": 3}))]
#[case::hooks_and_metrics(json!({
    "rolloutStrategy": "DecreaseFirst",
    "rolloutBatches": [
        {
            "replicas": 1, "maxUnavailable": 1, "podList": [],
            "batchRolloutWebhooks": [{
                "type": "pre-batch-rollout", "name": "approve", "url": "http://approver.shop.svc/ask",
                "method": "POST", "expectedStatus": [200, 201], "metadata": {"team": "shop"},
            }],
            "canaryMetric": [{"name": "success-rate", "interval": "1m", "metricsRange": {"min": 99}}],
        },
        {"replicas": "50%", "maxUnavailable": "10%"},
        {"replicas": "50%"},
    ],
    "rolloutWebhooks": [
        {"type": "initialize-rollout", "name": "start", "url": "https://hooks.shop.svc/start"},
        {"type": "finalize-rollout", "name": "end", "url": "https://hooks.shop.svc/end"},
    ],
    "canaryMetric": [{"name": "latency", "metricsRange": {"max": 500, "min": 0}}],
}))]
fn published_plans_are_taken_as_they_are(#[case] plan: Value) {
    let mut object = rollout(&json!({}));
    object.spec.rollout_plan = serde_json::from_value(plan).unwrap();
    assert_eq!(check(&object).err(), None);
}

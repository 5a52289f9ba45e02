//! Hooks and metrics of a plan, and of its batches.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sluice_crds::rollout::{CanaryMetric, HookType, RolloutBatch, RolloutPlan, RolloutWebhook};

use super::{Expected, Hook, Metric, names, within};
use crate::evidence::polling::is_address;
use crate::gatekeeper::metric::check_range;
use crate::text::names::{NAME_LENGTH, subdomain};
use crate::text::refusal::Refusal;

/// The most hooks, and the most metrics, of a list.
const MOST: usize = 8;
/// The most characters of the name of a hook, and of the key of a text that it sends.
const LONGEST_NAME: usize = 63;
/// The longest that an answer may take.
const LONGEST_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
/// The shortest: shorter than any answer.
const SHORTEST_TIMEOUT: SignedDuration = SignedDuration::from_millis(1);
/// For how long at least, and at most, a value has to be within its range.
const INTERVALS: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(5), SignedDuration::from_hours(24));
/// The most texts that a user has a hook send, and the most characters of each.
const MOST_TEXTS: (usize, usize) = (16, 256);
/// The most answers that a hook may expect.
const MOST_ANSWERS: usize = 16;

/// The hooks of a plan.
pub(super) fn of_plan(plan: &RolloutPlan, mistakes: &mut Vec<Refusal>) -> Option<Vec<Hook>> {
    let field = "spec.rolloutPlan.rolloutWebhooks";
    list(field, &plan.rollout_webhooks, mistakes)
}

/// The hooks of the batch at `field`, which are before it and after it.
pub(super) fn of_batch(
    field: &str,
    batch: &RolloutBatch,
    mistakes: &mut Vec<Refusal>,
) -> Option<Vec<Hook>> {
    let field = format!("{field}.batchRolloutWebhooks");
    for (place, hook) in batch.batch_rollout_webhooks.iter().enumerate() {
        match hook.type_ {
            HookType::PreBatchRollout | HookType::PostBatchRollout => {}
            HookType::InitializeRollout | HookType::FinalizeRollout => {
                mistakes.push(Refusal::new(
                    format!("{field}[{place}].type"),
                    format!("a batch has no hook of the type {}", hook.type_.as_str()),
                    "write pre-batch-rollout or post-batch-rollout, or write the hook among rolloutWebhooks",
                ));
            }
        }
    }
    list(&field, &batch.batch_rollout_webhooks, mistakes)
}

fn list(field: &str, hooks: &[RolloutWebhook], mistakes: &mut Vec<Refusal>) -> Option<Vec<Hook>> {
    too_many(field, hooks.len(), MOST, mistakes);
    let all = hooks.iter().map(|hook| hook.name.as_str());
    names(field, LONGEST_NAME, all, mistakes);
    let each = hooks.iter().enumerate();
    let read: Vec<_> = each
        .map(|(place, it)| hook(&format!("{field}[{place}]"), it, mistakes))
        .collect();
    read.into_iter().collect()
}

fn hook(field: &str, hook: &RolloutWebhook, mistakes: &mut Vec<Refusal>) -> Option<Hook> {
    let RolloutWebhook {
        type_,
        name,
        url,
        method,
        expected_status,
        metadata,
        timeout,
        secret_ref,
    } = hook;
    if let Err((problem, remedy)) = is_address(url, true) {
        mistakes.push(Refusal::new(format!("{field}.url"), problem, remedy));
    }
    if let Some(secret) = secret_ref {
        let name = format!("{field}.secretRef.name");
        subdomain(&name, &secret.name, NAME_LENGTH, mistakes);
        if !url.starts_with("https://") {
            mistakes.push(Refusal::new(
                format!("{field}.secretRef"),
                "secrets are sent over https only",
                "write an https address",
            ));
        }
    }
    let timeout = within(
        &format!("{field}.timeout"),
        timeout,
        (
            SHORTEST_TIMEOUT,
            LONGEST_TIMEOUT,
            "must be longer than zero and at most 60s",
        ),
        mistakes,
    );
    let expected = expected(
        &format!("{field}.expectedStatus"),
        expected_status,
        mistakes,
    );
    let (most, longest) = MOST_TEXTS;
    let is_long = |text: &str, most: usize| text.chars().count() > most;
    let mut texts = metadata.iter();
    if metadata.len() > most
        || texts.any(|(key, text)| is_long(key, LONGEST_NAME) || is_long(text, longest))
    {
        mistakes.push(Refusal::new(
            format!("{field}.metadata"),
            "it is more than a hook sends",
            format!(
                "write at most {most} texts of at most {longest} characters, with keys of at most {LONGEST_NAME}"
            ),
        ));
    }
    Some(Hook {
        type_: *type_,
        name: name.clone(),
        url: url.clone(),
        method: *method,
        expected: expected?,
        metadata: metadata.clone().into_iter().collect(),
        timeout: timeout?,
        secret: secret_ref.as_ref().map(|secret| secret.name.clone()),
    })
}

/// The answers that a hook expects.
fn expected(field: &str, statuses: &[i32], mistakes: &mut Vec<Refusal>) -> Option<Expected> {
    if statuses.is_empty() {
        return Some(Expected::Success);
    }
    too_many(field, statuses.len(), MOST_ANSWERS, mistakes);
    let status = |status: i32| {
        u16::try_from(status)
            .ok()
            .filter(|it| (100..=599).contains(it))
    };
    let mut read = BTreeSet::new();
    for (place, written) in statuses.iter().enumerate() {
        match status(*written) {
            Some(status) => {
                read.insert(status);
            }
            None => mistakes.push(Refusal::new(
                format!("{field}[{place}]"),
                format!("`{written}` is no HTTP status"),
                "write a number from 100 to 599",
            )),
        }
    }
    (!read.is_empty()).then_some(Expected::OneOf(read))
}

/// The metrics of a plan, or of a batch, at `field`.
pub(super) fn metrics(
    field: &str,
    metrics: &[CanaryMetric],
    mistakes: &mut Vec<Refusal>,
) -> Option<Vec<Metric>> {
    let field = format!("{field}.canaryMetric");
    too_many(&field, metrics.len(), MOST, mistakes);
    let all = metrics.iter().map(|metric| metric.name.as_str());
    names(&field, NAME_LENGTH, all, mistakes);
    let each = metrics.iter().enumerate();
    let read: Vec<_> = each
        .map(|(place, it)| metric(&format!("{field}[{place}]"), it, mistakes))
        .collect();
    read.into_iter().collect()
}

fn metric(field: &str, metric: &CanaryMetric, mistakes: &mut Vec<Refusal>) -> Option<Metric> {
    let CanaryMetric {
        name,
        interval,
        metrics_range,
        template_ref,
    } = metric;
    if let Some(range) = metrics_range {
        check_range(*range, &format!("{field}.metricsRange"), mistakes);
    }
    let gatekeeper = match template_ref {
        Some(template) => {
            let field = format!("{field}.templateRef.name");
            subdomain(&field, &template.name, NAME_LENGTH, mistakes);
            &template.name
        }
        None => {
            let before = mistakes.len();
            subdomain(&format!("{field}.name"), name, NAME_LENGTH, mistakes);
            for mistake in mistakes.iter_mut().skip(before) {
                mistake.remedy = "write the name of a Gatekeeper, or name it in templateRef".into();
            }
            name
        }
    };
    let interval = match interval {
        None => None,
        Some(text) => {
            let (least, most) = INTERVALS;
            let limits = (least, most, "must be between 5s and 24h");
            Some(within(
                &format!("{field}.interval"),
                text,
                limits,
                mistakes,
            )?)
        }
    };
    Some(Metric {
        name: name.clone(),
        gatekeeper: gatekeeper.clone(),
        interval,
        range: *metrics_range,
    })
}

fn too_many(field: &str, count: usize, most: usize, mistakes: &mut Vec<Refusal>) {
    if count > most {
        let problem = format!("there are more than {most}");
        mistakes.push(Refusal::new(field, problem, "list fewer"));
    }
}

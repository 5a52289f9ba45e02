//! What is wrong with a spec, also where the API server would have refused it.

use std::collections::BTreeSet;

use sluice_crds::Pipeline;
use sluice_crds::pipeline::{
    Admission, Environment, InvolvedObject, MOST_ENVIRONMENTS, MOST_TARGETS, Notification,
    PipelineSpec, Promotion, PullRequestStrategy, StrategyKind, Target,
};

use super::Reader;
use super::app::{is_of_flux, kind_of};
use crate::gatekeeper::gates;
use crate::text::names::{LABEL_LENGTH, subdomain};
use crate::text::refusal::{Refusal, Refusals};

/// The most targets of an environment.
const MOST_TARGETS_OF_ONE: usize = 32;
/// The most versions.
const MOST_VERSIONS: usize = 8;
/// The most files of a pull request.
const MOST_PATHS: usize = 16;

/// Everything that is wrong with a Pipeline, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &Pipeline) -> Result<Reader, Refusals> {
    let spec = &object.spec;
    let mut mistakes = Vec::new();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", name, LABEL_LENGTH, &mut mistakes);
    if spec.app_ref.kind == "Secret" {
        mistakes.push(Refusal::new(
            "spec.appRef.kind",
            "a Secret is no app, and what a pipeline shows of it could be read by more people",
            "name the object that deploys",
        ));
    } else if kind_of(&spec.app_ref).is_none() {
        mistakes.push(Refusal::new(
            "spec.appRef.apiVersion",
            format!("the group of the kind `{}` is not known", spec.app_ref.kind),
            "write the group and version of the kind, such as apps/v1",
        ));
    }
    versions(spec, &mut mistakes);
    environments(object, &mut mistakes);
    if let Some(promotion) = &spec.promotion {
        self::promotion("spec.promotion", promotion, &mut mistakes);
    }
    match Reader::new(spec) {
        Ok(reader) => Refusals::unless_empty(mistakes, reader),
        Err(more) => {
            mistakes.extend(more.into_vec());
            Err(Refusals::unless_empty(mistakes, ())
                .err()
                .unwrap_or_else(|| {
                    Refusal::new("spec", "it cannot be read", "write another one").into()
                }))
        }
    }
}

fn versions(spec: &PipelineSpec, mistakes: &mut Vec<Refusal>) {
    if spec.versions.len() > MOST_VERSIONS {
        let problem = format!("there are more than {MOST_VERSIONS}");
        mistakes.push(Refusal::new("spec.versions", problem, "show fewer"));
    }
    let mut known = BTreeSet::new();
    for (place, version) in spec.versions.iter().enumerate() {
        if !known.insert(&version.name) {
            mistakes.push(Refusal::new(
                format!("spec.versions[{place}].name"),
                format!("`{}` is listed twice", version.name),
                "give each version another name",
            ));
        }
    }
}

fn environments(object: &Pipeline, mistakes: &mut Vec<Refusal>) {
    let spec = &object.spec;
    let all = &spec.environments;
    let field = "spec.environments";
    if all.is_empty() {
        mistakes.push(Refusal::new(
            field,
            "there is none",
            "write at least one environment",
        ));
    }
    if all.len() > MOST_ENVIRONMENTS {
        let problem = format!("there are more than {MOST_ENVIRONMENTS}");
        mistakes.push(Refusal::new(field, problem, "split the pipeline"));
    }
    if all.iter().map(|it| it.targets.len()).sum::<usize>() > MOST_TARGETS {
        let problem = format!("there are more than {MOST_TARGETS} targets in all");
        mistakes.push(Refusal::new(field, problem, "split the pipeline"));
    }
    if all.first().is_some_and(|first| first.gates.is_some()) {
        mistakes.push(Refusal::new(
            "spec.environments[0].gates",
            "nothing is promoted to the first environment",
            "gate its source with a GatedSource",
        ));
    }
    let mut known = BTreeSet::new();
    for (place, environment) in all.iter().enumerate() {
        let field = format!("{field}[{place}]");
        if !known.insert(&environment.name) {
            mistakes.push(Refusal::new(
                format!("{field}.name"),
                format!("`{}` is listed twice", environment.name),
                "give each environment another name",
            ));
        }
        self::environment(object, &field, environment, mistakes);
    }
}

fn environment(
    object: &Pipeline,
    field: &str,
    environment: &Environment,
    mistakes: &mut Vec<Refusal>,
) {
    let Environment {
        name,
        targets,
        promotion,
        gates,
        gate_at: _,
    } = environment;
    if !is_name(name) {
        mistakes.push(Refusal::new(
            format!("{field}.name"),
            format!("`{name}` cannot be part of a branch's name"),
            "write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends, \
             without `..`, and without `.lock` at its end",
        ));
    }
    if targets.is_empty() || targets.len() > MOST_TARGETS_OF_ONE {
        mistakes.push(Refusal::new(
            format!("{field}.targets"),
            format!("there are {}", targets.len()),
            format!("write 1 to {MOST_TARGETS_OF_ONE} targets"),
        ));
    }
    foreign(object, field, environment, mistakes);
    reported_to(object, field, environment, mistakes);
    told_of(object, field, environment, mistakes);
    if let Some(promotion) = promotion {
        self::promotion(&format!("{field}.promotion"), promotion, mistakes);
    }
    if let Some(gates) = gates {
        let found = gates::check(gates, &format!("{field}.gates"));
        mistakes.extend(found.err().map(Refusals::into_vec).into_iter().flatten());
    }
}

/// Expressions may read all of an object, and everybody who reads the Pipeline reads their results. So they are
/// not asked about apps of another namespace, which the author of the Pipeline may not be allowed to read.
/// For the same reason nothing but apps of Flux is shown of another namespace: the message of any other object
/// may say anything. In another cluster, the rights of the kubeconfig say what may be read.
fn foreign(object: &Pipeline, field: &str, environment: &Environment, mistakes: &mut Vec<Refusal>) {
    let spec = &object.spec;
    let has_expressions = !spec.versions.is_empty() || spec.app_ref.revision_expression.is_some();
    if !has_expressions && is_of_flux(&spec.app_ref) {
        return;
    }
    // A file need not say in which namespace its object will be.
    let Some(own) = object.metadata.namespace.as_deref() else {
        return;
    };
    let targets = environment.targets.iter().enumerate();
    let foreign = targets.filter(|(_, it)| it.cluster_ref.is_none() && it.namespace != own);
    mistakes.extend(foreign.map(|(place, target)| {
        let (what, remedy) = match has_expressions {
            true => (
                "the expressions of versions and revisionExpression are asked about apps of",
                "leave the expressions out, or put the Pipeline into that namespace",
            ),
            false => (
                "apps that are no HelmRelease, Kustomization or Terraform are shown of",
                "put the Pipeline into that namespace",
            ),
        };
        let problem = format!(
            "{what} the Pipeline's own namespace alone, and not of `{}`",
            target.namespace
        );
        Refusal::new(
            format!("{field}.targets[{place}].namespace"),
            problem,
            remedy,
        )
    }));
}

/// The gatekeeper that an admission is reported to is in the namespace of a target. On our own cluster that is
/// the Pipeline's own: otherwise its author could report in the name of the controller to gatekeepers of
/// others.
fn reported_to(
    object: &Pipeline,
    field: &str,
    environment: &Environment,
    mistakes: &mut Vec<Refusal>,
) {
    let is_first = object.spec.environments.first() == Some(environment);
    let strategy = object.spec.promotion_of(environment).filter(|_| !is_first);
    let Some(StrategyKind::Admission(Admission {
        gatekeeper_ref: Some(named),
    })) = strategy.and_then(|it| it.strategy.kind())
    else {
        return;
    };
    let targets = &environment.targets;
    if let Some(namespace) = &named.namespace
        && !targets.iter().any(|it| it.namespace == *namespace)
    {
        mistakes.push(Refusal::new(
            format!("{field}.promotion.strategy.admission.gatekeeperRef.namespace"),
            format!("no target of this environment is in the namespace `{namespace}`"),
            "write the namespace of a target, or leave it out",
        ));
    }
    let Some(own) = object.metadata.namespace.as_deref() else {
        return;
    };
    let at = |target: &Target| match &named.namespace {
        Some(namespace) => *namespace != own,
        None => target.namespace != own,
    };
    let foreign = targets.iter().enumerate();
    let foreign = foreign.filter(|(_, it)| it.cluster_ref.is_none() && at(it));
    mistakes.extend(foreign.map(|(place, _)| {
        Refusal::new(
            format!("{field}.targets[{place}]"),
            "on this cluster an admission can only be reported to a gatekeeper of the Pipeline's own \
             namespace",
            "write `admission: {}`, and a gatekeeper of the kind pipeline in that namespace",
        )
    }));
}

/// An event about the app is sent in the name of that object, and the Alerts of its namespace act on it. So
/// the author of the Pipeline has to be at home there.
fn told_of(object: &Pipeline, field: &str, environment: &Environment, mistakes: &mut Vec<Refusal>) {
    let is_first = object.spec.environments.first() == Some(environment);
    let strategy = object.spec.promotion_of(environment);
    let about_the_app = strategy.is_some_and(|it| {
        matches!(
            it.strategy.kind(),
            Some(StrategyKind::Notification(Notification {
                involved_object: InvolvedObject::Application
            }))
        )
    });
    let (Some(target), Some(own)) = (
        environment
            .targets
            .first()
            .filter(|_| about_the_app && !is_first),
        object.metadata.namespace.as_deref(),
    ) else {
        return;
    };
    if target.cluster_ref.is_some() || target.namespace != own {
        mistakes.push(Refusal::new(
            format!("{field}.targets[0]"),
            "an event about the app can only be sent where the app is in the Pipeline's own namespace \
             and cluster",
            "write involvedObject: Pipeline, or put the Pipeline into that namespace",
        ));
    }
}

fn is_name(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    (1..=LABEL_LENGTH).contains(&name.len())
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && name
            .chars()
            .all(|c| is_end(c) || matches!(c, '-' | '_' | '.'))
        && !name.contains("..")
        && !name.ends_with(".lock")
}

fn promotion(field: &str, promotion: &Promotion, mistakes: &mut Vec<Refusal>) {
    let field = format!("{field}.strategy");
    match promotion.strategy.kind() {
        None => mistakes.push(Refusal::new(
            field,
            "it says not exactly one way",
            "write exactly one of pull-request, notification and admission",
        )),
        Some(StrategyKind::PullRequest(strategy)) => {
            pull_request(&format!("{field}.pull-request"), strategy, mistakes);
        }
        Some(StrategyKind::Notification(_) | StrategyKind::Admission(_)) => {}
    }
}

fn pull_request(field: &str, strategy: &PullRequestStrategy, mistakes: &mut Vec<Refusal>) {
    if !strategy.url.starts_with("https://") {
        mistakes.push(Refusal::new(
            format!("{field}.url"),
            "forges are asked over https alone",
            "write https://...",
        ));
    }
    if strategy.paths.is_empty() || strategy.paths.len() > MOST_PATHS {
        mistakes.push(Refusal::new(
            format!("{field}.paths"),
            format!("there are {}", strategy.paths.len()),
            format!("write 1 to {MOST_PATHS} files in which the revision is marked"),
        ));
    }
    let is_file = |path: &String| {
        !path.is_empty()
            && !path.starts_with('/')
            && !path.ends_with('/')
            && !path.contains("..")
            && !path.contains("//")
    };
    if let Some(place) = strategy.paths.iter().position(|path| !is_file(path)) {
        mistakes.push(Refusal::new(
            format!("{field}.paths[{place}]"),
            format!("`{}` is no file in a repository", strategy.paths[place]),
            "write such as apps/prod/podinfo.yaml, without `/` at its start or end, and without `..`",
        ));
    }
}

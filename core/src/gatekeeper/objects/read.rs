//! From a spec to a rule: every mistake is found here, whether or not admission would have refused
//! it.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use sluice_crds::Duration;
use sluice_crds::gatekeeper::{ObjectRule, Objects};

use super::{Part, Rule, Test, Which};
use crate::evidence::expression::Expression;
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;

/// The most kinds and names in one rule.
const MOST_PARTS: usize = 16;
/// The most requirements of one selector.
const MOST_REQUIREMENTS: usize = 32;
/// The longest soak.
const LONGEST_SOAK: SignedDuration = SignedDuration::from_hours(168);

impl Rule {
    /// Reads a spec. `field` is where it stands, such as `spec.objects`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(spec: &Objects, field: &str) -> Result<Self, Refusals> {
        let Objects {
            service_account_name,
            of,
            soak,
        } = spec;
        let mut mistakes = Mistakes(Vec::new());
        if !is_name(service_account_name) {
            mistakes.add(
                format!("{field}.serviceAccountName"),
                format!("`{service_account_name}` is not the name of a service account"),
                "write the name of one in the gatekeeper's namespace",
            );
        }
        let rule = Self {
            service_account: service_account_name.clone(),
            parts: mistakes.parts(of, &format!("{field}.of")),
            soak: mistakes.soak(soak.as_ref(), format!("{field}.soak")),
        };
        Refusals::unless_empty(mistakes.0, rule)
    }
}

struct Mistakes(Vec<Refusal>);

impl Mistakes {
    fn add(&mut self, field: String, problem: impl Into<String>, remedy: &str) {
        self.0.push(Refusal::new(field, problem, remedy));
    }

    fn parts(&mut self, of: &[ObjectRule], field: &str) -> Vec<Part> {
        if !(1..=MOST_PARTS).contains(&of.len()) {
            let problem = format!("there are {} entries", of.len());
            let remedy = "write between 1 and 16; more gatekeepers can keep the same gate";
            self.add(field.to_owned(), problem, remedy);
            return Vec::new();
        }
        let parts = of.iter().enumerate();
        parts
            .filter_map(|(n, spec)| self.part(spec, &format!("{field}[{n}]")))
            .collect()
    }

    fn part(&mut self, spec: &ObjectRule, field: &str) -> Option<Part> {
        self.kind(spec, field);
        if let Some(namespace) = &spec.namespace
            && !is_label(namespace)
        {
            self.add(
                format!("{field}.namespace"),
                format!("`{namespace}` is not the name of a namespace"),
                "write lower-case letters, digits and hyphens",
            );
        }
        let which = self.which(spec, field);
        let test = self.test(spec, field);
        let revision = self.revision(spec, field);
        Some(Part {
            spec: spec.clone(),
            which: which?,
            test: test?,
            revision,
        })
    }

    fn kind(&mut self, spec: &ObjectRule, field: &str) {
        let ObjectRule {
            api_version, kind, ..
        } = spec;
        let (group, version) = api_version
            .split_once('/')
            .map_or(("", api_version.as_str()), |(group, version)| {
                (group, version)
            });
        let in_a_group = !api_version.contains('/') || is_name(group);
        if !in_a_group || !version.starts_with('v') || !is_label(version) {
            self.add(
                format!("{field}.apiVersion"),
                format!("`{api_version}` is not a group and version"),
                "write one such as apps/v1",
            );
        }
        let letters = |c: char| c.is_ascii_alphanumeric();
        if !kind.starts_with(|c: char| c.is_ascii_alphabetic()) || !kind.chars().all(letters) {
            self.add(
                format!("{field}.kind"),
                format!("`{kind}` is not a kind"),
                "write one such as Deployment",
            );
        }
        if is_secret(group, kind) {
            self.add(
                format!("{field}.kind"),
                "Secrets are never read",
                "name another kind",
            );
        }
    }

    fn which(&mut self, spec: &ObjectRule, field: &str) -> Option<Which> {
        match (&spec.name, &spec.selector) {
            (Some(name), None) if is_path_segment(name) => Some(Which::Named(name.clone())),
            (Some(name), None) => {
                self.add(
                    format!("{field}.name"),
                    format!("`{name}` is not the name of an object"),
                    "write the name alone",
                );
                None
            }
            (None, Some(selector)) => match selected(selector) {
                Ok(selector) => Some(Which::Selected(selector)),
                Err(problem) => {
                    let remedy = "write matchLabels, or matchExpressions with In, NotIn, Exists \
                                  or DoesNotExist";
                    self.add(format!("{field}.selector"), problem, remedy);
                    None
                }
            },
            (Some(_), Some(_)) | (None, None) => {
                self.add(
                    field.to_owned(),
                    "objects are named or selected",
                    "write name or selector",
                );
                None
            }
        }
    }

    fn test(&mut self, spec: &ObjectRule, field: &str) -> Option<Test> {
        match (&spec.condition, &spec.expression) {
            (Some(_), Some(_)) => {
                self.add(
                    format!("{field}.expression"),
                    "expression takes the place of condition",
                    "write one of them",
                );
                None
            }
            (None, Some(text)) => match Expression::parse(text, &["object"]) {
                Ok(expression) => Some(Test::Expression(expression)),
                Err(problem) => {
                    let remedy = "write an expression (CEL) over `object` that is true or false, \
                                  such as object.status.phase == 'Running'";
                    self.add(format!("{field}.expression"), problem, remedy);
                    None
                }
            },
            (Some(condition), None) => {
                let expected = ["True", "False", "Unknown"];
                if condition.r#type.is_empty() || !expected.contains(&condition.status.as_str()) {
                    self.add(
                        format!("{field}.condition"),
                        format!(
                            "`{}={}` is not a condition",
                            condition.r#type, condition.status
                        ),
                        "write its type, and as its status True, False or Unknown",
                    );
                }
                Some(Test::Condition {
                    type_: condition.r#type.clone(),
                    status: condition.status.clone(),
                })
            }
            (None, None) => Some(Test::Condition {
                type_: "Ready".to_owned(),
                status: "True".to_owned(),
            }),
        }
    }

    fn revision(&mut self, spec: &ObjectRule, field: &str) -> Option<Expression> {
        let text = spec.revision_expression.as_ref()?;
        match Expression::parse_text(text, &["object"]) {
            Ok(expression) => Some(expression),
            Err(problem) => {
                let remedy = "write an expression (CEL) over `object` that is a text, such as \
                              object.status.lastAppliedRevision";
                self.add(format!("{field}.revisionExpression"), problem, remedy);
                None
            }
        }
    }

    fn soak(&mut self, text: Option<&Duration>, field: String) -> SignedDuration {
        let Some(text) = text else {
            return SignedDuration::ZERO;
        };
        match duration::parse(text) {
            Ok(soak) if soak > SignedDuration::ZERO && soak <= LONGEST_SOAK => soak,
            Ok(_) => {
                let problem = format!("`{text}` is not between zero and 168h");
                self.add(field, problem, "write a duration such as 10m, or remove it");
                SignedDuration::ZERO
            }
            Err(problem) => {
                self.add(field, problem, duration::REMEDY);
                SignedDuration::ZERO
            }
        }
    }
}

/// Whether these are the Secrets of the core group, which no gatekeeper reads.
fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind.eq_ignore_ascii_case("Secret")
}

fn selected(selector: &LabelSelector) -> Result<Selector, String> {
    let labels = selector.match_labels.iter().flatten().count();
    let requirements = selector.match_expressions.iter().flatten();
    if labels + requirements.clone().count() > MOST_REQUIREMENTS {
        return Err(format!("it has more than {MOST_REQUIREMENTS} requirements"));
    }
    for requirement in requirements {
        let operator = requirement.operator.as_str();
        let values = requirement.values.iter().flatten().count();
        match operator {
            "In" | "NotIn" if values == 0 => {
                return Err(format!("{operator} has no values"));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                return Err(format!("{operator} takes no values"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => return Err(format!("`{other}` is not an operator")),
        }
    }
    Selector::try_from(selector.clone()).map_err(|error| error.to_string())
}

/// Whether it may be a label of a DNS name (RFC 1123).
fn is_label(text: &str) -> bool {
    is_name(text) && text.len() <= 63 && !text.contains('.')
}

/// Whether it may be a DNS name (RFC 1123): what most objects are named like.
fn is_name(text: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=253).contains(&text.len())
        && text.chars().all(|c| end(c) || matches!(c, '-' | '.'))
        && text.starts_with(end)
        && text.ends_with(end)
}

/// Whether some kind may have objects of that name: those of RBAC may have colons in theirs.
fn is_path_segment(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !matches!(text, "." | "..")
        && !text.contains(['/', '%'])
        && !text.chars().any(char::is_control)
}

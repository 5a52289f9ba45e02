//! What is asked, once it has been read: the same for every caller and every form.

use sluice_core::revision::{self, Revision};
use sluice_core::text::names::is_label;
use sluice_core::text::refusal::Refusal;
use sluice_core::text::words;
use sluice_crds::{GateReference, GateSet, Require, Subject};

/// The most gates of one question, as a GateSet has them.
pub(super) const GATES: usize = 32;
/// The most characters of a namespace, a name, or a word.
const LABEL: usize = 63;
/// The most characters of what others wrote that a message repeats.
const QUOTED: usize = 80;

/// Whether something may go out.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The gates that it is about. Each has its namespace. None: those of policies decide alone.
    pub(super) set: Option<GateSet>,
    /// Who wants to do what.
    pub(super) subject: Subject,
    /// With which revision.
    pub(super) revision: Option<Revision>,
    /// Where each gate stands in what was asked.
    pub(super) fields: Vec<String>,
}

/// A gate that is named, and the field that names it.
pub(super) struct Named {
    /// The field.
    pub(super) field: String,
    /// The gate.
    pub(super) gate: GateReference,
}

impl Question {
    /// About gates; `list` is the field of all of them.
    ///
    /// # Errors
    /// A name that is none, a gate that is named twice, too many gates or none.
    pub(super) fn new(
        list: &str,
        require: Require,
        named: Vec<Named>,
        subject: Subject,
        revision: Option<Revision>,
    ) -> Result<Self, Refusal> {
        if named.is_empty() {
            return Err(Refusal::new(list, "it names no gate", "name at least one"));
        }
        if named.len() > GATES {
            let problem = format!("it names {} gates", named.len());
            let remedy = format!("name at most {GATES}, or ask in parts");
            return Err(Refusal::new(list, problem, remedy));
        }
        let mut refs: Vec<GateReference> = Vec::with_capacity(named.len());
        let mut fields = Vec::with_capacity(named.len());
        for Named { field, mut gate } in named {
            name(&format!("{field}.name"), &gate.name)?;
            match &gate.namespace {
                Some(given) => namespace(&format!("{field}.namespace"), given)?,
                None => gate.namespace = Some(subject.namespace.clone()),
            }
            if let Some(first) = refs.iter().position(|other| *other == gate) {
                let problem = format!("it names the same gate as {}", fields[first]);
                return Err(Refusal::new(field, problem, "name each gate once"));
            }
            refs.push(gate);
            fields.push(field);
        }
        Ok(Self {
            set: Some(GateSet { require, refs }),
            subject: Subject {
                revision: revision.as_ref().map(Revision::to_string),
                ..subject
            },
            revision,
            fields,
        })
    }

    /// About none but those that GatePolicies name for a consumer; `list` is the field that would
    /// name others.
    ///
    /// # Errors
    /// There is no consumer.
    pub(super) fn of_consumer(
        list: &str,
        subject: Subject,
        revision: Option<Revision>,
    ) -> Result<Self, Refusal> {
        if subject.name.is_none() {
            let problem = "neither gates nor a consumer are named";
            let remedy = "name the gates, or the consumer whose GatePolicies are to decide";
            return Err(Refusal::new(list, problem, remedy));
        }
        Ok(Self {
            set: None,
            subject: Subject {
                revision: revision.as_ref().map(Revision::to_string),
                ..subject
            },
            revision,
            fields: Vec::new(),
        })
    }

    /// How many gates it is about, without the first.
    pub(super) fn others(&self) -> usize {
        self.fields.len().saturating_sub(1)
    }

    /// Namespace, name and field of each gate.
    pub(super) fn gates(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let gates = self.set.iter().flat_map(|set| &set.refs);
        gates.zip(&self.fields).map(|(gate, field)| {
            let namespace = gate.namespace.as_deref();
            let namespace = namespace.unwrap_or(&self.subject.namespace);
            (namespace, gate.name.as_str(), field.as_str())
        })
    }
}

/// A name as DNS has subdomains (RFC 1123).
///
/// # Errors
/// It is none.
pub(super) fn name(field: &str, text: &str) -> Result<(), Refusal> {
    if text.len() <= LABEL && text.split('.').all(is_label) {
        return Ok(());
    }
    Err(Refusal::new(
        field,
        format!(
            "`{}` is not the name of an object",
            words::clean(text, QUOTED)
        ),
        "write at most 63 lower-case letters, digits, - and ., with a letter or digit at both ends",
    ))
}

/// A name as DNS has labels.
///
/// # Errors
/// It is none.
pub(super) fn namespace(field: &str, text: &str) -> Result<(), Refusal> {
    if text.len() <= LABEL && is_label(text) {
        return Ok(());
    }
    Err(Refusal::new(
        field,
        format!("`{}` is not a namespace", words::clean(text, QUOTED)),
        "write at most 63 lower-case letters, digits and -, with a letter or digit at both ends",
    ))
}

/// A kind, as Kubernetes writes them.
///
/// # Errors
/// It is none.
pub(super) fn kind(field: &str, text: &str) -> Result<(), Refusal> {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    if text.len() <= LABEL
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(is_part)
    {
        return Ok(());
    }
    Err(Refusal::new(
        field,
        format!("`{}` is not a kind", words::clean(text, QUOTED)),
        "write at most 63 letters and digits, the first of them upper-case, such as Kustomization",
    ))
}

/// What somebody wants to do.
///
/// # Errors
/// It is not one word.
pub(super) fn action(field: &str, text: &str) -> Result<(), Refusal> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (1..=LABEL).contains(&text.len()) && text.chars().all(is_part) {
        return Ok(());
    }
    Err(Refusal::new(
        field,
        format!("`{}` is not an action", words::clean(text, QUOTED)),
        "write one word of at most 63 letters, digits and -, such as promote",
    ))
}

/// A revision.
///
/// # Errors
/// It is none.
pub(super) fn revision(field: &str, text: &str) -> Result<Revision, Refusal> {
    Revision::parse(text)
        .map_err(|mistake| Refusal::new(field, mistake.to_string(), revision::REMEDY))
}

//! What a question is about: a revision, and who wants to do what with it.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use sluice_core::Now;
use sluice_core::revision::{REMEDY, Revision};
use sluice_core::verdict::question::Question;
use sluice_crds::{GateReference, GateSet, Require, Setting, Subject};

/// What somebody wants to do who does not say.
const ACTION: &str = "check";
/// The kind of somebody who asks and does not say it.
const KIND: &str = "Check";

#[derive(Debug, Args)]
pub(crate) struct About {
    /// The revision that is to go out, as Flux writes it: main@sha1:… with the commit in full. Without
    /// it, a gate that depends on the revision counts as closed
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = revision)]
    pub(crate) revision: Option<Revision>,
}

/// Who asks, as gate policies distinguish.
#[derive(Debug, Args)]
pub(crate) struct Asker {
    /// The object that wants to change, such as Deployment/api: a gate policy may select its kind
    #[arg(long, value_name = "KIND/NAME", value_parser = consumer)]
    consumer: Option<(String, String)>,

    /// What it wants to do, in one word: gate policies and the records of decisions use it
    #[arg(long, value_name = "WORD", default_value = ACTION)]
    action: String,

    /// Ask only the gates that you name, and not those that gate policies add
    #[arg(long)]
    pub(crate) without_policies: bool,
}

/// Reads a revision.
pub(crate) fn revision(text: &str) -> Result<Revision, String> {
    Revision::parse(text).map_err(|mistake| format!("{mistake}; {REMEDY}"))
}

/// Reads `Kind/name`.
pub(crate) fn consumer(text: &str) -> Result<(String, String), String> {
    let is_kind = |kind: &str| {
        kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.chars().all(|c| c.is_ascii_alphanumeric())
    };
    match text.split_once('/') {
        Some((kind, name)) if is_kind(kind) && !name.is_empty() && !name.contains('/') => {
            Ok((kind.to_owned(), name.to_owned()))
        }
        _ => Err("write its kind and its name, such as Deployment/api".to_owned()),
    }
}

/// Reads how the answers of several gates combine.
pub(crate) fn require(text: &str) -> Result<Require, &'static str> {
    match text {
        "all" => Ok(Require::All),
        "oneOf" => Ok(Require::OneOf),
        _ => Err("write all or oneOf"),
    }
}

/// Reads a state.
pub(crate) fn setting(text: &str) -> Result<Setting, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "open" => Ok(Setting::Open),
        "closed" => Ok(Setting::Closed),
        _ => Err("write open or closed"),
    }
}

impl About {
    /// What is asked at an instant.
    pub(crate) fn at(&self, now: Now) -> Question<'_> {
        Question::new(now, self.revision.as_ref())
    }
}

impl Asker {
    /// Somebody who is named as `Kind/name`.
    pub(crate) fn named(text: &str) -> Result<Self> {
        let consumer = consumer(text).map_err(|remedy| anyhow!("`{text}`: {remedy}"))?;
        Ok(Self {
            consumer: Some(consumer),
            action: ACTION.to_owned(),
            without_policies: false,
        })
    }

    /// Whether there is anything to ask.
    ///
    /// # Errors
    /// There is not.
    pub(crate) fn check(&self, names: &[String]) -> Result<()> {
        match (names, &self.consumer) {
            ([], None) => bail!("say which gates to ask, or who asks with --consumer"),
            ([], Some(_)) if self.without_policies => {
                bail!("name gates to ask: without policies there are no others")
            }
            _ => Ok(()),
        }
    }

    /// Who wants to do what.
    pub(crate) fn subject(&self, namespace: &str, about: &About) -> Subject {
        let (kind, name) = match &self.consumer {
            Some((kind, name)) => (kind.clone(), Some(name.clone())),
            None => (KIND.to_owned(), None),
        };
        Subject {
            kind,
            name,
            namespace: namespace.to_owned(),
            action: self.action.clone(),
            revision: about.revision.as_ref().map(ToString::to_string),
        }
    }
}

/// The set of these gates. None: there are none, and those of policies decide alone.
pub(crate) fn set(require: Require, names: &[String]) -> Option<GateSet> {
    let reference = |name: &String| GateReference {
        name: name.clone(),
        namespace: None,
    };
    (!names.is_empty()).then(|| GateSet {
        require,
        refs: names.iter().map(reference).collect(),
    })
}

//! How `revisions` answers as a kind of gatekeeper: its lists with what was read of those in
//! ConfigMaps.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::Setting;
use sluice_crds::gatekeeper as api;

use super::{List, Reading, Revisions};
use crate::gatekeeper::Evidence;
use crate::gatekeeper::kind::{self, Basis, Judge, KindSpec, Setup, Text, Texts};
use crate::text::refusal::Refusals;
use crate::verdict::Opinion;
use crate::verdict::question::Question;

const FIELD: &str = "spec.revisions";

impl KindSpec for api::Revisions {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Listed {
            rule: Revisions::read(self, FIELD)?,
            on_error: setup.on_error,
            lists: setup.evidence.shared(),
        }))
    }

    fn texts(&self) -> Vec<Text<'_>> {
        let text = |reference| kind::list(reference, (FIELD, "onError decides"), List::parse);
        self.config_map_refs().map(text).collect()
    }

    fn read(&self, texts: &dyn Texts) -> Evidence {
        let lists = kind::lists(texts, self.config_map_refs(), List::parse);
        lists.map_or_else(Evidence::default, Evidence::of)
    }
}

/// The rule with its evidence.
#[derive(Debug)]
struct Listed {
    rule: Revisions,
    on_error: Setting,
    /// In the order of [`Revisions::sources`]. None: not read yet.
    lists: Option<Arc<Vec<Reading>>>,
}

impl Listed {
    fn lists(&self) -> &[Reading] {
        self.lists.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl Judge for Listed {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let revision = question.revision;
        self.rule.opinion(self.lists(), revision, self.on_error)
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        self.rule.explain(self.lists(), question.revision, opinion)
    }

    fn basis(&self) -> Basis {
        Basis::Texts
    }

    fn is_unread(&self, question: Question<'_>) -> bool {
        question.revision.is_none() && self.lists().len() < self.rule.sources().count()
    }

    fn good_until(&self) -> Option<Timestamp> {
        None
    }
}

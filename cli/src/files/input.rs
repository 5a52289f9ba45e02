//! The objects of all files, read as admission and the controller would read them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use sluice_core::Refusal;
use sluice_core::offline::lint::{self, Object, Remark, Subject};
use sluice_core::offline::simulate::{Key, Origin, World};
use sluice_crds::GROUP;

use super::finding::{Finding, Place, in_one_line};
use super::names::{called, is_kustomization, is_object, is_of_everybody, name_of};
use super::yaml::{self, Node, What};
use super::{Content, Source};

/// What the files hold.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The objects that could be made out.
    pub(crate) world: World,
    /// What is wrong, or looks wrong.
    findings: Vec<Finding>,
    /// How many objects of other kinds there are.
    skipped: BTreeMap<String, usize>,
    /// The objects that have a mistake, and are therefore not in `world`, by what they are called.
    unreadable: HashSet<String>,
    /// How many calendars are files of their own.
    pub(crate) calendars: usize,
    /// What is wrong with a ConfigMap or a Namespace that lies in a folder: nothing, unless something
    /// of ours reads it.
    aside: Vec<Finding>,
    /// What else there is to say.
    notes: Vec<String>,
    /// Where each object is written.
    places: HashMap<Subject, (Place, Node)>,
    /// The namespace of objects that name none.
    namespace: String,
    /// How many objects there are, of any kind.
    objects: usize,
}

impl Input {
    /// Reads the objects of `sources`. Those that name no namespace are in `namespace`.
    pub(crate) fn new(sources: &[Source], namespace: &str) -> Self {
        let mut input = Self {
            namespace: namespace.to_owned(),
            ..Self::default()
        };
        input.world.origin = Origin::Files;
        for (file, source) in sources.iter().enumerate() {
            input.source(file, source);
        }
        input
    }

    /// Adds what only shows when the objects are seen beside each other at `now`.
    pub(crate) fn look_at_all(&mut self, now: Timestamp) {
        self.add(lint::remarks(&self.world, now));
    }

    /// The same, without what is only warned of.
    pub(crate) fn look_for_refusals(&mut self, now: Timestamp) {
        self.add(lint::refusals(&self.world, now));
    }

    fn add(&mut self, remarks: Vec<Remark>) {
        let maps = self.world.gatekeepers.values();
        let maps = maps.flat_map(|keeper| World::maps_of(keeper));
        let read: HashSet<String> = maps.map(|map| called(&Subject::ConfigMap(map))).collect();
        let has_policies = !self.world.policies.is_empty();
        let is_read = |finding: &Finding| {
            let object = finding.object.as_deref().unwrap_or_default();
            read.contains(object) || has_policies && object.starts_with("Namespace ")
        };
        let aside = std::mem::take(&mut self.aside);
        self.findings.extend(aside.into_iter().filter(is_read));
        for remark in remarks {
            let Some((place, node)) = self.places.get(&remark.subject) else {
                continue;
            };
            // Its mistake is told.
            let missing = remark.missing.as_ref().map(called);
            if missing.is_some_and(|missing| self.unreadable.contains(&missing)) {
                continue;
            }
            let line = node.at(&remark.what.field).line;
            self.findings.push(Finding {
                refused: remark.refused,
                place: Place {
                    line,
                    ..place.clone()
                },
                object: Some(called(&remark.subject)),
                what: remark.what,
            });
        }
    }

    /// What is wrong or looks wrong, in the order in which it is written.
    pub(crate) fn findings(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| &finding.place);
        findings
    }

    /// What was skipped.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if !self.skipped.is_empty() {
            let kinds = self
                .skipped
                .iter()
                .map(|(kind, count)| format!("{count} {kind}"));
            notes.push(format!("skipped: {}", kinds.collect::<Vec<_>>().join(", ")));
        }
        notes.iter().map(|note| in_one_line(note)).collect()
    }

    fn source(&mut self, file: usize, source: &Source) {
        let place = |line, document| Place {
            file,
            origin: source.origin.clone(),
            line,
            document,
        };
        let text = match &source.text {
            Ok(Content::Text(text)) => text,
            Ok(Content::Calendar(text)) => return self.calendar(text, place),
            Err(why) => return self.skip(source, why),
        };
        let before = (self.objects, self.findings.len());
        let (documents, mistake) = yaml::documents(text);
        if let Some(mistake) = &mistake
            && !source.asked_for
            && (mistake.what == What::Template || !text.contains(GROUP))
        {
            return self.skip(source, &mistake.problem);
        }
        for (n, node) in documents.iter().enumerate() {
            if !node.is_empty() && (source.asked_for || is_object(node)) {
                self.document(&place(node.line, n + 1), node, source.asked_for);
            }
        }
        let holds_nothing = before == (self.objects, self.findings.len());
        match (mistake, holds_nothing, source.asked_for) {
            (Some(mistake), ..) => {
                let place = place(mistake.line, documents.len() + 1);
                self.refuse(place, None, Refusal::new("", mistake.problem, ""));
            }
            (None, true, true) => {
                let problem = "the file holds no object";
                let what = Refusal::new("", problem, "write a Gate or a Gatekeeper");
                self.refuse(place(1, 1), None, what);
            }
            (None, true, false) => self.skip(source, "it holds no object"),
            (None, false, _) => {}
        }
    }

    fn skip(&mut self, source: &Source, why: &str) {
        self.notes
            .push(format!("{} is skipped: {why}", source.origin));
    }

    fn calendar(&mut self, text: &[u8], place: impl Fn(usize, usize) -> Place) {
        self.calendars += 1;
        self.objects += 1;
        if let Some((line, what)) = lint::calendar(text) {
            self.refuse(place(line.unwrap_or(1), 1), None, what);
        }
    }

    fn document(&mut self, place: &Place, node: &Node, asked_for: bool) {
        let value = node.value();
        if let Some(items) = lint::items(&value) {
            for n in 0..items.len() {
                let item = node.at(&format!("items[{n}]"));
                self.document(
                    &Place {
                        line: item.line,
                        ..place.clone()
                    },
                    item,
                    asked_for,
                );
            }
            // An empty list is as good as an object: somebody meant it.
            self.objects += usize::from(items.is_empty());
            return;
        }
        self.objects += 1;
        if !value.is_object() {
            let remedy = "write an object, with apiVersion, kind, metadata and spec";
            self.refuse(
                place.clone(),
                None,
                Refusal::new("", "it is no object", remedy),
            );
            return;
        }
        if is_kustomization(&value, &place.origin) {
            *self.skipped.entry("Kustomization".to_owned()).or_default() += 1;
            return;
        }
        let name = name_of(&value, &self.namespace);
        let read = lint::read(&value);
        if read.object.is_none() {
            self.unreadable.extend(name.clone());
        }
        let before = self.findings.len();
        for mut what in read.mistakes {
            let written = node.at(&what.field);
            what.problem
                .push_str(&written.reading().unwrap_or_default());
            let place = Place {
                line: written.line,
                ..place.clone()
            };
            self.refuse(place, name.clone(), what);
        }
        if let Some(object) = read.object {
            self.keep(place, node, object);
        }
        if !asked_for && is_of_everybody(&value) {
            self.aside.extend(self.findings.drain(before..));
        }
    }

    fn keep(&mut self, place: &Place, node: &Node, object: Object) {
        let (subject, known) = match object {
            Object::Gate(mut gate) => {
                let key = self.key(&mut gate.metadata);
                let known = self.world.gates.insert(key.clone(), *gate).is_some();
                (Subject::Gate(key), known)
            }
            Object::Gatekeeper(mut gatekeeper) => {
                let key = self.key(&mut gatekeeper.metadata);
                let gatekeeper = Arc::new(*gatekeeper);
                let known = self
                    .world
                    .gatekeepers
                    .insert(key.clone(), gatekeeper)
                    .is_some();
                (Subject::Gatekeeper(key), known)
            }
            Object::Approval(mut approval) => {
                let key = self.key(&mut approval.metadata);
                let approvals = &mut self.world.approvals;
                let known = approvals.insert(key.clone(), Arc::new(*approval)).is_some();
                (Subject::Approval(key), known)
            }
            Object::GatePolicy(mut policy) => {
                let name = self.key(&mut policy.metadata).name;
                let policies = &mut self.world.policies;
                let policy = Ok(Arc::new(*policy));
                let known = policies.insert(name.clone(), policy).is_some();
                (Subject::GatePolicy(name), known)
            }
            Object::GatedSource(mut source) => {
                let key = self.key(&mut source.metadata);
                let sources = &mut self.world.sources;
                let known = sources.insert(key.clone(), Arc::new(*source)).is_some();
                (Subject::GatedSource(key), known)
            }
            Object::Namespace(mut namespace) => {
                let name = self.key(&mut namespace.metadata).name;
                let labels = namespace.metadata.labels.unwrap_or_default();
                let known = self.world.namespaces.insert(name.clone(), labels);
                (Subject::Namespace(name), known.is_some())
            }
            Object::ConfigMap(mut map) => {
                let key = self.key(&mut map.metadata);
                let known = self
                    .world
                    .config_maps
                    .insert(key.clone(), Some(*map))
                    .is_some();
                (Subject::ConfigMap(key), known)
            }
            Object::Other => {
                let kind = node
                    .value()
                    .get("kind")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
                *self.skipped.entry(kind.unwrap_or_default()).or_default() += 1;
                return;
            }
        };
        if known {
            let what = Refusal::new(
                "metadata.name",
                "an object of that name is written before",
                "remove one; the last one counts",
            );
            let line = node.at(&what.field).line;
            let place = Place {
                line,
                ..place.clone()
            };
            self.findings.push(Finding {
                refused: false,
                place,
                object: Some(called(&subject)),
                what,
            });
        }
        self.places.insert(subject, (place.clone(), node.clone()));
    }

    /// The name of an object, which is put into the namespace that it belongs to.
    fn key(&self, metadata: &mut ObjectMeta) -> Key {
        metadata
            .namespace
            .get_or_insert_with(|| self.namespace.clone());
        let mut key = Key::of(metadata);
        if metadata.name.is_none() {
            // The API server makes the name up: two such objects are not the same one.
            key.name = format!("{}{}", key.name, self.places.len() + 1);
            metadata.name = Some(key.name.clone());
        }
        key
    }

    fn refuse(&mut self, place: Place, object: Option<String>, what: Refusal) {
        self.findings.push(Finding {
            refused: true,
            place,
            object,
            what,
        });
    }
}

//! The objects of all files, read as admission and the controller would read them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_core::Refusal;
use sluice_core::delivery::pipeline::kind_of;
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::wanted;
use sluice_core::offline::lint::{self, Object, Remark, Subject};
use sluice_core::offline::simulate::{Key, Origin, World};
use sluice_crds::GROUP;

use super::finding::{Finding, Place, in_one_line};
use super::names::{called, is_kustomization, is_object, is_of_everybody, name_of};
use super::source::{Content, Source};
use super::yaml::{self, Node, What};

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
            self.findings.push(Finding {
                refused: remark.refused,
                place: place.at(node.at(&remark.what.field).line),
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
        let skipped = self.skipped();
        if !skipped.is_empty() {
            let kinds = skipped
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
        let note = format!("{} is skipped: {why}", source.origin);
        self.notes.push(note);
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
                self.document(&place.at(item.line), item, asked_for);
            }
            // An empty list is as good as an object: somebody meant it.
            self.objects += usize::from(items.is_empty());
            return;
        }
        self.objects += 1;
        if !value.is_object() {
            let remedy = "write an object, with apiVersion, kind, metadata and spec";
            let what = Refusal::new("", "it is no object", remedy);
            return self.refuse(place.clone(), None, what);
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
            what.problem += &written.reading().unwrap_or_default();
            self.refuse(place.at(written.line), name.clone(), what);
        }
        if let Some(object) = read.object {
            self.keep(place, node, object);
        }
        if !asked_for && is_of_everybody(&value) {
            self.aside.extend(self.findings.drain(before..));
        }
    }

    fn keep(&mut self, place: &Place, node: &Node, object: Object) {
        let world = &mut self.world;
        let key = |metadata: &mut ObjectMeta| {
            // The API server makes up a name that is missing: two such objects are not the same one.
            complete(metadata, &self.namespace, self.places.len() + 1)
        };
        let (subject, is_known) = match object {
            Object::Gate(mut gate) => {
                let key = key(&mut gate.metadata);
                let known = world.gates.insert(key.clone(), *gate);
                (Subject::Gate(key), known.is_some())
            }
            Object::Gatekeeper(mut keeper) => {
                let key = key(&mut keeper.metadata);
                let known = world.gatekeepers.insert(key.clone(), Arc::new(*keeper));
                (Subject::Gatekeeper(key), known.is_some())
            }
            Object::Approval(mut approval) => {
                let key = key(&mut approval.metadata);
                let known = world.approvals.insert(key.clone(), Arc::new(*approval));
                (Subject::Approval(key), known.is_some())
            }
            Object::GatePolicy(mut policy) => {
                let name = key(&mut policy.metadata).name;
                let known = world.policies.insert(name.clone(), Ok(Arc::new(*policy)));
                (Subject::GatePolicy(name), known.is_some())
            }
            Object::GatedSource(mut source) => {
                let key = key(&mut source.metadata);
                let known = world.sources.insert(key.clone(), Arc::new(*source));
                (Subject::GatedSource(key), known.is_some())
            }
            Object::Pipeline(mut pipeline) => {
                let key = key(&mut pipeline.metadata);
                let pipeline = Some(Arc::new(*pipeline));
                let known = world.pipelines.insert(key.clone(), pipeline);
                (Subject::Pipeline(key), known.is_some())
            }
            Object::GitRepositoryAccess(mut access) => {
                let key = key(&mut access.metadata);
                let known = world.accesses.insert(key.clone(), Arc::new(*access));
                (Subject::GitRepositoryAccess(key), known.is_some())
            }
            Object::PromotionStrategy(mut strategy) => {
                let key = key(&mut strategy.metadata);
                let known = world.strategies.insert(key.clone(), Arc::new(*strategy));
                (Subject::PromotionStrategy(key), known.is_some())
            }
            Object::Rollout(mut rollout) => {
                let key = key(&mut rollout.metadata);
                let known = world.rollouts.insert(key.clone(), Arc::new(*rollout));
                (Subject::Rollout(key), known.is_some())
            }
            // Nothing is found out about these beside others.
            Object::CommitStatus(mut commit_status) => {
                let subject = Subject::CommitStatus(key(&mut commit_status.metadata));
                let is_known = self.places.contains_key(&subject);
                (subject, is_known)
            }
            Object::RevertCommit(mut revert) => {
                let subject = Subject::RevertCommit(key(&mut revert.metadata));
                let is_known = self.places.contains_key(&subject);
                (subject, is_known)
            }
            Object::Namespace(mut namespace) => {
                let name = key(&mut namespace.metadata).name;
                let labels = namespace.metadata.labels.unwrap_or_default();
                let known = world.namespaces.insert(name.clone(), labels);
                (Subject::Namespace(name), known.is_some())
            }
            Object::ConfigMap(mut map) => {
                let key = key(&mut map.metadata);
                let known = world.config_maps.insert(key.clone(), Some(*map));
                (Subject::ConfigMap(key), known.is_some())
            }
            Object::Other => {
                self.other(node);
                return;
            }
        };
        if is_known {
            let what = Refusal::new(
                "metadata.name",
                "an object of that name is written before",
                "remove one; the last one counts",
            );
            self.findings.push(Finding {
                refused: false,
                place: place.at(node.at(&what.field).line),
                object: Some(called(&subject)),
                what,
            });
        }
        self.places.insert(subject, (place.clone(), node.clone()));
    }

    /// An object of a kind that is none of ours: perhaps an app that a pipeline promotes, or a workload.
    fn other(&mut self, node: &Node) {
        let (kind, version) = (node.text("kind"), node.text("apiVersion"));
        let kind = kind.unwrap_or_default().to_owned();
        *self.skipped.entry(kind.clone()).or_default() += 1;
        let value = node.value();
        let text = |field: &str| value["metadata"][field].as_str();
        let Some(name) = text("name") else {
            return;
        };
        let namespace = text("namespace").unwrap_or(&self.namespace);
        let key = Key::from_reference(namespace, None, name);
        let group = version.and_then(|it| it.split_once('/'));
        let group = group.map_or(String::new(), |(group, _)| group.to_owned());
        self.world.apps.insert((group, kind, key), Arc::new(value));
    }

    /// The kinds of objects that were skipped and that no pipeline promotes and no rollout scales, with how many
    /// there are.
    fn skipped(&self) -> BTreeMap<String, usize> {
        let mut skipped = self.skipped.clone();
        let pipelines = self.world.pipelines.values().flatten();
        let mut read: HashSet<&(String, String, Key)> = HashSet::new();
        for pipeline in pipelines {
            let app = &pipeline.spec.app_ref;
            let targets = pipeline.spec.environments.iter().flat_map(|it| &it.targets);
            let namespaces: HashSet<&str> = targets.map(|it| it.namespace.as_str()).collect();
            let is_read = |place: &&(String, String, Key)| {
                let (group, kind, key) = *place;
                kind_of(app) == Some((group, kind))
                    && key.name == app.name
                    && namespaces.contains(key.namespace.as_str())
            };
            read.extend(self.world.apps.keys().filter(is_read));
        }
        for (key, rollout) in &self.world.rollouts {
            let names = wanted(rollout, &BTreeMap::new());
            let is_read = |(group, kind, app): &&(String, String, Key)| {
                let is_it = |it: &Name| {
                    (it.kind.group(), it.kind.as_str(), &it.name) == (group, kind, &app.name)
                };
                app.namespace == key.namespace && names.iter().any(is_it)
            };
            read.extend(self.world.apps.keys().filter(is_read));
        }
        for (_, kind, _) in read {
            if let Some(count) = skipped.get_mut(kind) {
                *count = count.saturating_sub(1);
            }
        }
        skipped.retain(|_, count| *count > 0);
        skipped
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

/// The name of an object, which is put into `namespace` and is called by `number`, as far as it does
/// not say so itself.
fn complete(metadata: &mut ObjectMeta, namespace: &str, number: usize) -> Key {
    let namespace = || namespace.to_owned();
    metadata.namespace.get_or_insert_with(namespace);
    let mut key = Key::of(metadata);
    if metadata.name.is_none() {
        key.name = format!("{}{number}", key.name);
        metadata.name = Some(key.name.clone());
    }
    key
}

//! Which objects of other kinds our objects name, and whom a change concerns.
//!
//! What comes in: what each of our objects names. What goes out: what is known of it, without waiting, and who
//! has to look again after a change. What nobody names is not watched.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use parking_lot::Mutex;
use sluice_clusters::{Change, Fleet, Sight, Wanted};
use tokio::sync::Notify;

use crate::cluster::key::ObjectKey;

/// An object that is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Where it is.
    pub wanted: Wanted,
    /// Its name.
    pub name: String,
}

impl Place {
    /// What is told of the object.
    fn change(&self) -> Change {
        Change::Object {
            cluster: self.wanted.cluster.clone(),
            kind: self.wanted.kind.clone(),
            namespace: self.wanted.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// What one of our objects names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Single objects.
    pub objects: BTreeSet<Place>,
    /// All objects of a kind in a namespace. They are watched; a change of one of them concerns only those who name
    /// it.
    pub kinds: BTreeSet<Wanted>,
}

/// The watches of what our objects of one kind name.
pub struct Watched {
    fleet: Fleet,
    named: Mutex<Named>,
    renewed: Notify,
}

impl Watched {
    /// Nothing is named yet.
    pub fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            named: Mutex::default(),
            renewed: Notify::new(),
        }
    }

    /// All clusters that are watched.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// What is known of an object now. What nobody has named is not known.
    pub fn see(&self, place: &Place) -> Sight {
        self.fleet.look(&place.wanted, &place.name)
    }

    /// The single objects that an object names. None: it names nothing.
    pub fn objects_of(&self, by: &ObjectKey) -> Option<BTreeSet<Place>> {
        let named = self.named.lock();
        named.names.get(by).map(|names| names.objects.clone())
    }

    /// Whether an object names anything.
    pub fn is_naming(&self, by: &ObjectKey) -> bool {
        self.named.lock().names.contains_key(by)
    }

    /// From now on an object names these, and no others. Says whether that is new.
    pub fn name(&self, by: &ObjectKey, names: Names) -> bool {
        let is_new = self.named.lock().name(by, names);
        if is_new {
            self.renewed.notify_one();
        }
        is_new
    }

    /// Nothing is named any more: another replica leads.
    pub fn clear(&self) {
        *self.named.lock() = Named::default();
        self.renewed.notify_one();
    }

    /// Whom a change concerns.
    pub fn concerned(&self, change: &Change) -> BTreeSet<ObjectKey> {
        self.named.lock().concerned(change)
    }

    /// Who names an object.
    pub fn of(&self, place: &Place) -> BTreeSet<ObjectKey> {
        self.concerned(&place.change())
    }

    /// All of our objects that name anything.
    pub fn all(&self) -> Vec<ObjectKey> {
        self.named.lock().names.keys().cloned().collect()
    }

    /// Waits until others are named than before.
    pub async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// Watches what is named, and ends what has not been named for a minute. Returns when to call again.
    pub fn watch(&self, now: Timestamp) -> Option<Timestamp> {
        self.fleet.want(self.named.lock().wanted.keys(), now)
    }

    /// What has to be watched.
    #[cfg(test)]
    pub fn wanted(&self) -> Vec<Wanted> {
        self.named.lock().wanted.keys().cloned().collect()
    }
}

/// What all our objects of one kind name.
#[derive(Default)]
struct Named {
    names: HashMap<ObjectKey, Names>,
    /// What is wanted for them, and how often.
    wanted: BTreeMap<Wanted, usize>,
    /// Whom a change concerns.
    concerned: HashMap<Change, HashSet<ObjectKey>>,
}

impl Named {
    /// From now on an object names these, and no others. Says whether that is new.
    fn name(&mut self, by: &ObjectKey, names: Names) -> bool {
        if self.names.get(by).unwrap_or(&Names::default()) == &names {
            return false;
        }
        self.forget(by);
        for wanted in names.wanted() {
            *self.wanted.entry(wanted.clone()).or_default() += 1;
        }
        for change in names.changes() {
            insert(&mut self.concerned, change, by);
        }
        if names != Names::default() {
            self.names.insert(by.clone(), names);
        }
        true
    }

    fn forget(&mut self, by: &ObjectKey) {
        let Some(names) = self.names.remove(by) else {
            return;
        };
        for wanted in names.wanted() {
            if let Some(count) = self.wanted.get_mut(wanted) {
                *count -= 1;
                if *count == 0 {
                    self.wanted.remove(wanted);
                }
            }
        }
        for change in names.changes() {
            remove(&mut self.concerned, &change, by);
        }
    }

    /// Whom a change concerns.
    fn concerned(&self, change: &Change) -> BTreeSet<ObjectKey> {
        let all = self.concerned.get(change).into_iter().flatten();
        all.cloned().collect()
    }
}

impl Names {
    fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        let objects = self.objects.iter().map(|place| &place.wanted);
        objects.chain(&self.kinds)
    }

    /// What may change about all this.
    fn changes(&self) -> BTreeSet<Change> {
        let objects = self.objects.iter().map(Place::change);
        let kinds = self.wanted().flat_map(|wanted| {
            let of_all_namespaces = Change::Objects {
                cluster: wanted.cluster.clone(),
                kind: wanted.kind.clone(),
                namespace: None,
            };
            let cluster = Change::Cluster(wanted.cluster.clone());
            [of_kind(wanted), of_all_namespaces, cluster]
        });
        objects.chain(kinds).collect()
    }
}

/// What is told of all objects of a kind in a namespace.
fn of_kind(wanted: &Wanted) -> Change {
    Change::Objects {
        cluster: wanted.cluster.clone(),
        kind: wanted.kind.clone(),
        namespace: Some(wanted.namespace.clone()),
    }
}

fn insert(to: &mut HashMap<Change, HashSet<ObjectKey>>, change: Change, by: &ObjectKey) {
    to.entry(change).or_default().insert(by.clone());
}

fn remove(from: &mut HashMap<Change, HashSet<ObjectKey>>, change: &Change, by: &ObjectKey) {
    if let Some(concerned) = from.get_mut(change) {
        concerned.remove(by);
        if concerned.is_empty() {
            from.remove(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_clusters::{Cluster, Kind, Part};

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    fn wanted(kind: &str, namespace: &str) -> Wanted {
        Wanted {
            from: "shop".to_owned(),
            cluster: Cluster::Own,
            kind: Kind {
                group: "apps".to_owned(),
                kind: kind.to_owned(),
            },
            namespace: namespace.to_owned(),
            part: Part::Kept,
        }
    }

    fn change(kind: &str, namespace: &str, name: &str) -> Change {
        let of = wanted(kind, namespace);
        Change::Object {
            cluster: of.cluster,
            kind: of.kind,
            namespace: of.namespace,
            name: name.to_owned(),
        }
    }

    fn told(named: &Named, change: &Change) -> Vec<String> {
        let keys = named.concerned(change).into_iter();
        keys.map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn a_change_concerns_those_who_name_the_object() {
        let mut named = Named::default();
        let web = Place {
            wanted: wanted("Deployment", "shop"),
            name: "web".to_owned(),
        };
        let one = Names {
            objects: BTreeSet::from([web]),
            kinds: BTreeSet::new(),
        };
        let both = Names {
            kinds: BTreeSet::from([wanted("HorizontalPodAutoscaler", "shop")]),
            ..one.clone()
        };
        assert!(named.name(&key("a"), both));
        assert!(named.name(&key("b"), one.clone()));
        assert!(!named.name(&key("b"), one));
        assert_eq!(named.wanted.len(), 2);

        assert_eq!(
            told(&named, &change("Deployment", "shop", "web")),
            ["a", "b"]
        );
        assert!(told(&named, &change("Deployment", "shop", "api")).is_empty());
        assert!(told(&named, &change("Deployment", "else", "web")).is_empty());
        // Of a kind that is watched as a whole, too; but all are told whether it is known.
        let autoscaler = change("HorizontalPodAutoscaler", "shop", "any");
        assert!(told(&named, &autoscaler).is_empty());
        let all = of_kind(&wanted("HorizontalPodAutoscaler", "shop"));
        assert_eq!(told(&named, &all), ["a"]);
        assert_eq!(told(&named, &Change::Cluster(Cluster::Own)), ["a", "b"]);

        assert!(named.name(&key("a"), Names::default()));
        assert!(told(&named, &all).is_empty());
        assert_eq!(told(&named, &change("Deployment", "shop", "web")), ["b"]);
        assert!(named.name(&key("b"), Names::default()));
        assert_eq!((named.wanted.len(), named.names.len()), (0, 0));
    }
}

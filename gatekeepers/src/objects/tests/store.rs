//! What a store remembers, and what it refuses to hold.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

use super::*;
use crate::objects::store::{Change, Cursor, News, Store, Stored, TooMuch};

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"))
}

fn stored(name: &str, version: u32) -> Stored {
    let mut object = DynamicObject::new(name, &resource()).data(json!({ "spec": {} }));
    object.metadata.resource_version = Some(version.to_string());
    Stored::new(object, &resource())
}

fn store(limits: Limits) -> Store {
    Store::new(limits, limits.rooms().of("apps"))
}

/// What is new, as text: `+a` for what is there, `-a` for what is gone, `?` for what may have
/// been otherwise before.
fn told(store: &Store, cursor: Option<Cursor>) -> (String, bool, Cursor) {
    let (news, cursor) = store.since(cursor);
    let (changes, all) = match news {
        News::Changes(changes) => (changes, false),
        News::All(changes) => (changes, true),
    };
    let word = |change: &Change| {
        let (sign, unseen) = (
            if change.now.is_some() { '+' } else { '-' },
            if change.unseen { "?" } else { "" },
        );
        format!("{sign}{}{unseen}", change.name)
    };
    let words: Vec<_> = changes.iter().map(word).collect();
    (words.join(" "), all, cursor)
}

#[test]
fn each_reader_is_told_every_change_once() {
    let mut store = store(Limits::default());
    assert!(store.replace(vec![stored("a", 1), stored("b", 1)]).unwrap());
    let (words, all, early) = told(&store, None);
    assert_eq!((words.as_str(), all), ("+a +b", true));
    store.apply(stored("a", 2)).unwrap();
    let (words, all, late) = told(&store, Some(early));
    assert_eq!((words.as_str(), all), ("+a", false));
    store.delete("b");
    store.delete("unknown");
    store.apply(stored("a", 3)).unwrap();
    assert_eq!(told(&store, Some(late)).0, "-b +a");
    assert_eq!(told(&store, Some(early)).0, "+a -b +a");
    let (_, _, now) = told(&store, Some(late));
    assert_eq!(told(&store, Some(now)).0, "");
}

#[test]
fn a_list_tells_what_nobody_has_seen() {
    let mut store = store(Limits::default());
    let list = |versions: [u32; 2]| vec![stored("a", versions[0]), stored("b", versions[1])];
    store.replace(list([1, 1])).unwrap();
    let (_, _, cursor) = told(&store, None);
    assert!(!store.replace(list([1, 1])).unwrap());
    assert_eq!(told(&store, Some(cursor)).0, "");
    assert!(store.replace(list([1, 2])).unwrap());
    assert!(store.replace(vec![stored("b", 2)]).unwrap());
    assert_eq!(told(&store, Some(cursor)).0, "+b? -a?");
}

#[test]
fn what_is_remembered_is_bounded() {
    let size = stored("a", 1).size();
    let by_number = Limits {
        changes: 2,
        ..Limits::default()
    };
    let by_size = Limits {
        changed_bytes: 2 * size,
        ..Limits::default()
    };
    for limits in [by_number, by_size] {
        let mut store = store(limits);
        store.apply(stored("a", 1)).unwrap();
        let (_, _, cursor) = told(&store, None);
        store.apply(stored("a", 2)).unwrap();
        store.apply(stored("b", 1)).unwrap();
        assert_eq!(told(&store, Some(cursor)).0, "+a +b");
        store.apply(stored("b", 2)).unwrap();
        let (words, all, _) = told(&store, Some(cursor));
        assert_eq!((words.as_str(), all), ("+a +b", true));
    }
}

#[test]
fn what_is_held_is_bounded() {
    let size = stored("a", 1).size();
    let unlimited = Limits::default();
    for (limits, words) in [
        (
            Limits {
                objects: 2,
                ..unlimited
            },
            "there are more than 2 of them".to_owned(),
        ),
        (
            Limits {
                bytes: 2 * size,
                ..unlimited
            },
            format!("they take more than {} bytes", 2 * size),
        ),
        (
            Limits {
                namespace_bytes: 2 * size,
                ..unlimited
            },
            format!(
                "with all others of their namespace that are watched they take more than {} bytes",
                2 * size
            ),
        ),
        (
            Limits {
                all_bytes: 2 * size,
                ..unlimited
            },
            format!(
                "with all others that are watched they take more than {} bytes",
                2 * size
            ),
        ),
    ] {
        let mut store = store(limits);
        store.apply(stored("a", 1)).unwrap();
        store.apply(stored("b", 1)).unwrap();
        store.apply(stored("b", 2)).unwrap();
        assert_eq!(store.apply(stored("c", 1)), Err(TooMuch(words)));
    }
}

#[test]
fn room_is_given_back() {
    let room = Limits::default().rooms().of("apps");
    let held = || room.used();
    let new = || Store::new(Limits::default(), Arc::clone(&room));
    let (mut one, mut other) = (new(), new());
    one.apply(stored("a", 1)).unwrap();
    other.apply(stored("b", 1)).unwrap();
    let size = stored("a", 1).size();
    assert_eq!(held(), 2 * size);
    other.delete("b");
    assert_eq!(held(), size);
    let (_, _, cursor) = told(&one, None);
    one.clear();
    assert_eq!(held(), 0);
    // A reader that had read before learns that it cannot continue from there.
    assert!(told(&one, Some(cursor)).1);
    other.apply(stored("b", 1)).unwrap();
    drop(other);
    assert_eq!(held(), 0);
}

#[test]
fn a_namespace_that_is_full_leaves_room_to_others() {
    let size = stored("a", 1).size();
    let limits = Limits {
        namespace_bytes: size,
        all_bytes: 2 * size,
        ..Limits::default()
    };
    let rooms = limits.rooms();
    let mut full = Store::new(limits, rooms.of("full"));
    full.apply(stored("a", 1)).unwrap();
    assert!(full.apply(stored("b", 1)).is_err());
    full.clear();
    full.apply(stored("a", 1)).unwrap();
    let mut other = Store::new(limits, rooms.of("other"));
    other.apply(stored("a", 1)).unwrap();
    // There is no room left for all of them.
    assert!(
        Store::new(limits, rooms.of("third"))
            .apply(stored("a", 1))
            .is_err()
    );
}

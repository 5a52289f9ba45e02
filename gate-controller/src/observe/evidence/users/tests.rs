//! Who is woken by what, for every kind of source.

use sluice_gatekeepers::{ConfigMapKey, ObjectsKey};
use tokio::sync::broadcast;

use super::*;

fn map(name: &str) -> ConfigMapKey {
    ConfigMapKey {
        namespace: "apps".to_owned(),
        name: name.to_owned(),
    }
}

fn pods(namespace: Option<&str>) -> ObjectsKey {
    ObjectsKey {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: namespace.map(str::to_owned),
    }
}

/// Whether somebody has been woken since they were asked last.
fn is_woken(woken: &Notify) -> bool {
    use futures::FutureExt as _;
    woken.notified().now_or_never().is_some()
}

#[tokio::test]
async fn a_change_wakes_the_users_of_its_source_and_nobody_else() {
    let users = Arc::new(Users::default());
    let (maps, maps_changed) = broadcast::channel(8);
    let (objects, objects_changed) = broadcast::channel(8);
    tokio::spawn(wake_on_changes(Arc::clone(&users), maps_changed));
    tokio::spawn(wake_on_changes(Arc::clone(&users), objects_changed));
    let user = |id, sources: Vec<Source>| {
        let woken = Arc::new(Notify::new());
        let mut user = User::new(Arc::clone(&users), id, Arc::clone(&woken));
        user.uses(sources);
        (user, woken)
    };
    let (_calendar, calendar) = user(1, vec![map("uk").into()]);
    let (mut health, healthy) = user(2, vec![pods(Some("apps")).into(), pods(None).into()]);
    let woken = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        (is_woken(&calendar), is_woken(&healthy))
    };
    maps.send(map("uk")).unwrap();
    assert_eq!(woken().await, (true, false));
    objects.send(pods(Some("apps"))).unwrap();
    assert_eq!(woken().await, (false, true));
    objects.send(pods(None)).unwrap();
    assert_eq!(woken().await, (false, true));
    objects.send(pods(Some("shop"))).unwrap();
    maps.send(map("de")).unwrap();
    assert_eq!(woken().await, (false, false));

    assert_eq!(users.in_use().len(), 3);
    health.uses(vec![pods(None).into()]);
    objects.send(pods(Some("apps"))).unwrap();
    assert_eq!(woken().await, (false, false));
    drop(health);
    assert_eq!(users.in_use(), [Source::from(map("uk"))].into());
}

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::played::{Answer, Server, bookmark, map};
use super::*;

fn watching(server: &Server) -> Watching<ConfigMap> {
    Watching::new(server.api(), Config::default(), Arc::default())
}

fn asked(server: &Server) -> Vec<String> {
    let asked = server.asked().into_iter();
    asked.map(|asked| asked.what).collect()
}

/// The next steps, in a word each.
async fn steps(watching: &mut Watching<ConfigMap>, count: usize) -> Vec<String> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let next = timeout(Duration::from_secs(20), watching.next());
        steps.push(match next.await.unwrap() {
            Step::Begun => "begun".to_owned(),
            Step::Page(objects) => format!("page of {}", objects.len()),
            Step::Listed(_) => "listed".to_owned(),
            Step::Apply(object) => format!("apply {}", object.metadata.name.unwrap()),
            Step::Delete(object) => format!("delete {}", object.metadata.name.unwrap()),
            Step::Opened => "opened".to_owned(),
            Step::Alive => "alive".to_owned(),
            Step::Ended => "ended".to_owned(),
            Step::Failed(_) => "error".to_owned(),
            Step::Silent => "silent".to_owned(),
        });
    }
    steps
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_last_sign_of_life() {
    let server = Server::new([
        Answer::List(&[("a", 3), ("b", 5)], 7),
        Answer::Watch(vec![
            json!({ "type": "MODIFIED", "object": map("a", 8) }),
            bookmark(12),
            json!({ "type": "DELETED", "object": map("b", 13) }),
            bookmark(20),
        ]),
        Answer::Refuse(500),
        Answer::Silence(vec![bookmark(21)]),
    ]);
    let mut watching = watching(&server);
    let seen = steps(&mut watching, 12).await;
    let expected = [
        "begun",
        "page of 2",
        "listed",
        "opened",
        "apply a",
        "alive",
        "delete b",
        "alive",
        "ended",
        "error",
        "opened",
        "alive",
    ];
    assert_eq!(seen, expected);
    assert_eq!(asked(&server), ["list", "7", "20", "20"]);
}

/// Whether that is said before a watch begins, or in it.
#[tokio::test(start_paused = true)]
async fn what_the_api_server_has_forgotten_is_listed_again() {
    let gone = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410,
    });
    let server = Server::new([
        Answer::List(&[("a", 3)], 7),
        Answer::Refuse(410),
        Answer::List(&[("a", 3), ("b", 30)], 40),
        Answer::Silence(vec![json!({ "type": "ERROR", "object": gone })]),
        Answer::List(&[], 50),
        Answer::Silence(Vec::new()),
    ]);
    let mut watching = watching(&server);
    let seen = steps(&mut watching, 13).await;
    let expected = [
        "begun",
        "page of 1",
        "listed",
        "error",
        "begun",
        "page of 2",
        "listed",
        "opened",
        "error",
        "begun",
        "page of 0",
        "listed",
        "opened",
    ];
    assert_eq!(seen, expected);
    assert_eq!(asked(&server), ["list", "7", "list", "40", "list", "50"]);
}

#[tokio::test(start_paused = true)]
async fn who_is_given_up_begins_again() {
    let server = Server::new([
        Answer::List(&[("a", 3)], 7),
        Answer::Silence(Vec::new()),
        Answer::Refuse(403),
        Answer::List(&[], 9),
    ]);
    let mut watching = watching(&server);
    assert_eq!(steps(&mut watching, 4).await[3], "opened");
    watching.list_again();
    let seen = steps(&mut watching, 5).await;
    assert_eq!(seen, ["begun", "error", "begun", "page of 0", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn that_a_watch_begins_says_nothing_before_it_has_lasted() {
    let server = Server::new([
        Answer::List(&[], 7),
        Answer::Watch(Vec::new()),
        Answer::Watch(vec![bookmark(9)]),
        Answer::Silence(Vec::new()),
    ]);
    let mut watching = watching(&server);
    let seen = steps(&mut watching, 10).await;
    let expected = [
        "begun",
        "page of 0",
        "listed",
        "opened",
        "error",
        "opened",
        "alive",
        "ended",
        "opened",
        "alive",
    ];
    assert_eq!(seen, expected);
    assert_eq!(asked(&server), ["list", "7", "7", "9"]);
}

/// The pages after the first are what a busy API server refuses.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_refused_for_now_is_asked_for_again_by_itself() {
    let server = Server::new([
        Answer::Page(&[("a", 3)], Duration::ZERO),
        Answer::Refuse(429),
        Answer::List(&[("b", 4)], 7),
        Answer::Refuse(410),
        Answer::Page(&[("a", 3)], Duration::ZERO),
        // The API server has forgotten the list.
        Answer::Refuse(410),
        Answer::List(&[("a", 3), ("b", 4)], 9),
    ]);
    let mut watching = watching(&server);
    let expected = [
        "begun",
        "page of 1",
        "error",
        "page of 1",
        "listed",
        "error",
    ];
    assert_eq!(steps(&mut watching, 6).await, expected);
    let expected = [
        "begun",
        "page of 1",
        "error",
        "begun",
        "page of 2",
        "listed",
    ];
    assert_eq!(steps(&mut watching, 6).await, expected);
}

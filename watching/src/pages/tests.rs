use std::convert::Infallible;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tower::service_fn;

use super::*;

/// An API server that has config maps of these lengths, and notes how long its answers are.
#[derive(Clone)]
struct Maps {
    lengths: Arc<Vec<usize>>,
    /// How many objects were asked for, and how many bytes were sent.
    pages: Arc<Mutex<Vec<(u32, usize)>>>,
}

impl Maps {
    fn new(lengths: impl IntoIterator<Item = usize>) -> Self {
        Self {
            lengths: Arc::new(lengths.into_iter().collect()),
            pages: Arc::default(),
        }
    }

    fn answer(&self, request: &Request<Body>) -> Response<Answer> {
        let query = request.uri().query().unwrap();
        let limit: usize = parameter(query, "limit").unwrap().parse().unwrap();
        let from: usize = parameter(query, "continue").map_or(0, |at| at.parse().unwrap());
        let until = (from + limit).min(self.lengths.len());
        let map = |at: usize| {
            let text = "x".repeat(self.lengths[at]);
            json!({"metadata": {"name": format!("map-{at}")}, "data": {"text": text}})
        };
        let more = (until < self.lengths.len()).then(|| until.to_string());
        let list = json!({
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": {"resourceVersion": "7", "continue": more.unwrap_or_default()},
            "items": (from..until).map(map).collect::<Vec<_>>(),
        });
        let body = list.to_string();
        let page = (limit.try_into().unwrap(), body.len());
        self.pages.lock().push(page);
        Response::new(Answer::from(body))
    }

    /// A client that keeps pages within a budget.
    fn client(&self, budget: usize) -> Client {
        let maps = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let answer = maps.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(Pages::new(service, budget), "default")
    }

    /// How many objects were asked for, page by page.
    fn limits(&self) -> Vec<u32> {
        let pages = self.pages.lock();
        pages.iter().map(|(limit, _)| *limit).collect()
    }
}

/// Lists all in pages of so many. Says how many came, and how long the longest page was.
async fn list(client: Client, limit: u32) -> Result<(usize, usize), kube::Error> {
    let api: Api<ConfigMap> = Api::all(client);
    let mut params = ListParams::default().limit(limit);
    let (mut names, mut longest) = (Vec::new(), 0);
    loop {
        let page = api.list(&params).await?;
        let texts = page.items.iter().filter_map(|map| map.data.as_ref());
        longest = longest.max(texts.map(|data| data["text"].len()).sum());
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => break,
        }
    }
    let expected: Vec<_> = (0..names.len()).map(|at| format!("map-{at}")).collect();
    assert_eq!(names, expected, "none is missing, and none comes twice");
    Ok((names.len(), longest))
}

#[tokio::test]
async fn what_is_short_comes_as_it_was_asked_for() {
    let maps = Maps::new([10; 100]);
    let listed = list(maps.client(1 << 20), 50).await.unwrap();
    assert_eq!((listed.0, maps.limits()), (100, vec![50, 50]));
}

#[tokio::test]
async fn no_page_of_several_objects_is_longer_than_the_budget() {
    let budget = 10_000;
    let maps = Maps::new([3000; 100]);
    let (count, longest) = list(maps.client(budget), 64).await.unwrap();
    assert_eq!(count, 100);
    assert!(longest <= budget, "{longest}");
    // It is remembered: what is too long is not asked for again with each page.
    assert_eq!(maps.limits()[..4], [64, 8, 1, 1]);
    assert_eq!(maps.limits().len(), 102);
}

#[tokio::test]
async fn pages_become_larger_again() {
    let large = [3000; 4].into_iter();
    let maps = Maps::new(large.chain([1; 100]));
    let (count, _) = list(maps.client(10_000), 64).await.unwrap();
    assert_eq!(count, 104);
    assert_eq!(maps.limits(), [64, 8, 1, 1, 1, 1, 1, 8, 64, 64]);
}

#[tokio::test]
async fn an_object_that_is_longer_than_any_is_an_error() {
    let maps = Maps::new([100, 90_000]);
    let error = list(maps.client(10_000), 64).await.unwrap_err();
    let kube::Error::Service(why) = error else {
        panic!("{error}");
    };
    let expected = "an object of /api/v1/configmaps is longer than 80000 bytes";
    assert_eq!(why.to_string(), expected);
}

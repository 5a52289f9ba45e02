use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tokio::net::TcpListener;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

/// Serves `router` in the place of an API server. Says how to reach it.
async fn serve(router: Router) -> Config {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Config::new(format!("http://{address}").parse().unwrap())
}

#[tokio::test]
async fn an_api_server_that_is_overloaded_is_asked_once() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let refuse = move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        StatusCode::SERVICE_UNAVAILABLE
    };
    let config = serve(Router::new().fallback(refuse)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(config).unwrap());
    let answer = tokio::time::timeout(DEADLINE, maps.get("any")).await;
    answer.expect("it is still asked").unwrap_err();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

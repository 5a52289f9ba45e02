//! Where the API server itself listens: behind the address of its Service there are others, which
//! lead to it as well.
//!
//! What comes in: the EndpointSlice that the API server keeps of itself. What goes out: its addresses,
//! read again after a minute.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::outcome::EgressError;

/// The EndpointSlice that each API server writes.
const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// For how long what was read counts.
const KEPT: Duration = Duration::from_secs(60);
/// When to try again after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The addresses of the API server, as it reports them.
pub struct Endpoints {
    client: Client,
    known: Mutex<Known>,
}

/// What was read, and until when it need not be asked for again. None: nothing so far.
#[derive(Default)]
struct Known {
    addresses: Option<Vec<IpAddr>>,
    until: Option<Instant>,
    /// Whether it was refused the last time.
    refused: bool,
}

/// What the API server says.
enum Answer {
    Addresses(Vec<IpAddr>),
    /// The controller has no right to read it.
    Refused,
    Nothing,
}

impl Endpoints {
    /// Nothing has been asked for yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// The addresses. None if they may not be read: then the addresses that are known otherwise count.
    ///
    /// # Errors
    /// The API server has never reported them.
    pub(crate) async fn addresses(&self) -> Result<Vec<IpAddr>, EgressError> {
        // Held while the API server is asked: callers that come in that time get the same answer.
        let mut known = self.known.lock().await;
        if known.until.is_none_or(|until| until <= Instant::now()) {
            if known.addresses.is_some() {
                // The caller may give up while it waits: then what was read counts, and the next caller
                // asks again.
                known.until = Some(Instant::now() + RETRY);
            }
            let answer = self.ask().await;
            known.learn(answer);
        }
        let told = known.addresses.clone();
        told.ok_or(EgressError::ApiServerUntold)
    }

    async fn ask(&self) -> Answer {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), NAMESPACE);
        let why = match timeout(PATIENCE, slices.get(NAME)).await {
            Ok(Ok(slice)) => return Answer::Addresses(addresses(&slice)),
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => {
                return Answer::Addresses(Vec::new());
            }
            Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => return Answer::Refused,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        tracing::debug!(why, "the API server does not tell where it listens");
        Answer::Nothing
    }
}

impl Known {
    fn learn(&mut self, answer: Answer) {
        let refused = matches!(answer, Answer::Refused);
        let kept = match answer {
            Answer::Addresses(told) => {
                self.addresses = Some(told);
                KEPT
            }
            Answer::Refused => {
                let before = self.addresses.get_or_insert_default();
                if !self.refused {
                    let told = before.iter().map(ToString::to_string);
                    let told: Vec<String> = told.collect();
                    tracing::warn!(
                        told = told.join(", "),
                        "may not get the EndpointSlice {NAMESPACE}/{NAME}: of the API server only the \
                         address of its Service is refused to gatekeepers, and what it told before; \
                         grant get on endpointslices.discovery.k8s.io {NAME} in the namespace \
                         {NAMESPACE}"
                    );
                }
                KEPT
            }
            Answer::Nothing => RETRY,
        };
        self.refused = refused || (self.refused && kept == RETRY);
        self.until = Some(Instant::now() + kept);
    }
}

fn addresses(slice: &EndpointSlice) -> Vec<IpAddr> {
    let all = slice.endpoints.iter().flatten();
    let all = all.flat_map(|endpoint| &endpoint.addresses);
    all.filter_map(|address| address.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use axum::routing::get;
    use serde_json::{Value, json};

    use super::*;

    const PATH: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

    fn slice(addresses: &[&str]) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": NAME, "namespace": NAMESPACE}, "addressType": "IPv4",
            "endpoints": [{"addresses": addresses}],
        })
    }

    /// In the place of a status: it never answers.
    const SILENT: u16 = 0;

    /// An API server that answers so, one after another, and counts.
    fn endpoints(answers: Vec<(u16, Value)>) -> (Endpoints, Arc<AtomicUsize>) {
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let show = async move || {
            let n = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let (status, body) = answers[n].clone();
            if status == SILENT {
                std::future::pending::<()>().await;
            }
            let status = StatusCode::from_u16(status).unwrap();
            (status, body.to_string()).into_response()
        };
        let router: Router = Router::new().route(PATH, get(show));
        (Endpoints::new(Client::new(router, "default")), asked)
    }

    fn failure(code: u16, reason: &str) -> (u16, Value) {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no",
            "reason": reason, "code": code,
        });
        (code, status)
    }

    fn told(addresses: &[&str]) -> Result<Vec<IpAddr>, EgressError> {
        Ok(addresses.iter().map(|it| it.parse().unwrap()).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_read_again_after_a_minute() {
        let answers = [&["10.0.0.5", "10.0.0.6"][..], &["10.0.0.7"]];
        let answers = answers.map(|addresses| (200, slice(addresses)));
        let (endpoints, asked) = endpoints(answers.to_vec());
        for _ in 0..2 {
            assert_eq!(endpoints.addresses().await, told(&["10.0.0.5", "10.0.0.6"]));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        tokio::time::advance(KEPT).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.7"]));
    }

    #[tokio::test(start_paused = true)]
    async fn while_they_were_never_told_nothing_can_be_told_apart() {
        let answers = vec![
            failure(500, "InternalError"),
            (200, slice(&["10.0.0.5"])),
            failure(500, "InternalError"),
        ];
        let (endpoints, _) = endpoints(answers);
        let unknown = Err(EgressError::ApiServerUntold);
        assert_eq!(endpoints.addresses().await, unknown);
        tokio::time::advance(RETRY).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
        // What was read counts until it is read again.
        tokio::time::advance(KEPT).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
    }

    #[tokio::test]
    async fn who_may_not_read_them_goes_by_what_is_known_otherwise() {
        for (code, reason) in [(403, "Forbidden"), (404, "NotFound")] {
            let (endpoints, _) = endpoints(vec![failure(code, reason)]);
            assert_eq!(endpoints.addresses().await, told(&[]));
        }
    }

    /// A request that is given up while the API server is asked.
    async fn given_up(endpoints: &Endpoints) {
        let asked = timeout(PATIENCE / 2, endpoints.addresses()).await;
        assert!(asked.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_given_up_while_they_are_asked_for_leaves_what_was_known() {
        let answers = vec![
            (200, slice(&["10.0.0.5"])),
            (SILENT, json!(null)),
            (SILENT, json!(null)),
            (200, slice(&["10.0.0.6"])),
        ];
        let (endpoints, asked) = endpoints(answers);
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
        tokio::time::advance(KEPT).await;
        given_up(&endpoints).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        tokio::time::advance(RETRY).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
        tokio::time::advance(RETRY).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.6"]));
    }

    #[tokio::test(start_paused = true)]
    async fn where_nothing_was_known_the_next_one_asks_at_once() {
        let answers = vec![(SILENT, json!(null)), (200, slice(&["10.0.0.5"]))];
        let (endpoints, _) = endpoints(answers);
        given_up(&endpoints).await;
        assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_counts_when_it_is_refused_later() {
        let answers = vec![(200, slice(&["10.0.0.5"])), failure(403, "Forbidden")];
        let (endpoints, asked) = endpoints(answers);
        for _ in 0..2 {
            assert_eq!(endpoints.addresses().await, told(&["10.0.0.5"]));
            tokio::time::advance(KEPT).await;
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

//! Secrets that Prometheus asks for.

use super::*;

/// A server whose authority is in the Secret `authority`.
async fn secure(api: &FakeApi) -> TestServer {
    let server = TestServer::start(Certificate::For(HOST), data("scalar", &json!([1, "1"]))).await;
    api.put_secret_keys(
        "apps",
        "authority",
        &[("ca.crt", server.authority.as_bytes())],
    );
    server
}

fn secure_spec(server: &TestServer) -> api::Metric {
    let secrets = json!({
        "secretRef": { "name": "prometheus" }, "certSecretRef": { "name": "authority" },
    });
    spec(&server.address("https", HOST, ""), &secrets)
}

#[rstest]
#[case(&[("token", "t0ken\n")], "authorization: bearer t0ken\r\n")]
#[case(&[("username", "me"), ("password", "pass\r\n")], "authorization: basic bwu6cgfzcw==\r\n")]
#[tokio::test]
async fn secrets_are_sent_over_https(#[case] keys: &[(&str, &str)], #[case] expected: &str) {
    let api = FakeApi::new();
    let server = secure(&api).await;
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, text)| (*key, text.as_bytes()))
        .collect();
    api.put_secret_for(HOST, ("apps", "prometheus"), &keys);
    let seen = look(
        &secure_spec(&server),
        &clients(&api, &["127.0.0.0/8"]),
        None,
        0,
    )
    .await;
    assert_eq!(short(&seen), "1");
    let heads = server.heads().await[0].to_lowercase();
    assert!(heads.contains(expected), "{heads}");
}

#[tokio::test]
async fn credentials_that_are_refused_are_to_be_corrected() {
    let api = FakeApi::new();
    let server = secure(&api).await;
    api.put_secret_for(HOST, ("apps", "prometheus"), &[("token", b"old")]);
    server.replies(Reply::status(401, "", b"")).await;
    let seen = look(
        &secure_spec(&server),
        &clients(&api, &["127.0.0.0/8"]),
        None,
        0,
    )
    .await;
    let expected = "unavailable: https://prometheus.test: status 401; correct the credentials in \
                    the Secret of secretRef";
    assert_eq!((short(&seen).as_str(), server.requests()), (expected, 1));
}

#[rstest]
#[case(&[], "has neither `token` nor `username` with `password`")]
#[case(&[("username", b"me".as_slice())], "has neither `token` nor `username` with `password`")]
#[case(&[("password", b"s3cr3t".as_slice())], "has neither `token` nor `username` with `password`")]
#[case(
    &[("token", b"s3cr3t".as_slice()), ("username", b"me")],
    "has `token` beside `username` or `password`; keep one of them"
)]
#[case(&[("token", b"s3 cr3t".as_slice())], "has a `token` with characters that no header may hold")]
#[case(&[("token", b"".as_slice())], "has a `token` with characters that no header may hold")]
#[case(&[("token", b"\xff".as_slice())], "has a `token` that is not UTF-8")]
#[case(
    &[("username", b"a:b".as_slice()), ("password", b"s3cr3t")],
    "has a `username` with a colon, which separates it from the password"
)]
#[tokio::test]
async fn a_secret_that_is_of_no_use_is_told(
    #[case] keys: &[(&str, &[u8])],
    #[case] expected: &str,
) {
    let api = FakeApi::new();
    let server = secure(&api).await;
    api.put_secret_for(HOST, ("apps", "prometheus"), keys);
    let seen = look(
        &secure_spec(&server),
        &clients(&api, &["127.0.0.0/8"]),
        None,
        0,
    )
    .await;
    let expected = format!("unavailable: the Secret apps/prometheus {expected}");
    assert_eq!((short(&seen), server.requests()), (expected, 0));
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_told() {
    let api = FakeApi::new();
    let server = secure(&api).await;
    let clients = clients(&api, &["127.0.0.0/8"]);
    let spec = secure_spec(&server);
    let missing = look(&spec, &clients, None, 0).await;
    assert_eq!(
        short(&missing),
        "unavailable: there is no Secret apps/prometheus"
    );
    api.forbid("apps");
    let forbidden = look(&spec, &clients, None, 0).await;
    let expected = "unavailable: may not get secrets in namespace apps: grant get on the Secret \
                    authority";
    assert_eq!(short(&forbidden), expected);
}

/// Everybody who may write a gatekeeper names the address; the owner of the Secret says where it may be
/// sent.
#[tokio::test]
async fn a_secret_is_sent_to_the_hosts_that_it_names_and_to_no_other() {
    let api = FakeApi::new();
    let server = secure(&api).await;
    let clients = clients(&api, &["127.0.0.0/8"]);
    let spec = secure_spec(&server);
    let port = server.address.port();
    let token: [(&str, &[u8]); 1] = [("token", b"t0ken")];
    api.put_secret_keys("apps", "prometheus", &token);
    let silent = look(&spec, &clients, None, 0).await;
    assert_eq!(
        short(&silent),
        "unavailable: the Secret apps/prometheus does not say where it may be sent; annotate it \
         with sluice.dev/allowed-hosts: prometheus.test"
    );
    api.put_secret_for("other.test", ("apps", "prometheus"), &token);
    let elsewhere = look(&spec, &clients, None, 0).await;
    assert_eq!(
        short(&elsewhere),
        format!(
            "unavailable: the Secret apps/prometheus may not be sent to prometheus.test:{port}; \
             add it to its annotation sluice.dev/allowed-hosts"
        )
    );
    assert_eq!(server.requests(), 0);
    api.put_secret_for(HOST, ("apps", "prometheus"), &token);
    assert_eq!(short(&look(&spec, &clients, None, 0).await), "1");
}

use rcgen::{CertificateParams, KeyPair};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A certificate and its key, in PEM.
fn identity() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["api.test".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A kubeconfig with nothing to refuse.
fn good() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {
            "server": "https://api.test:6443/k8s/clusters/c-1",
            "certificate-authority-data": STANDARD.encode(identity().0),
        }}],
        "users": [{"name": "u", "user": {"token": "s3cret-token"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    })
}

fn data(key: &str, text: &str) -> BTreeMap<String, ByteString> {
    [(key.to_owned(), ByteString(text.as_bytes().to_vec()))].into()
}

fn read(file: &Value) -> Result<Kubeconfig, Refusal> {
    // JSON is YAML.
    Kubeconfig::read(&data("value", &file.to_string()))
}

fn refused(file: &Value) -> String {
    let why = read(file).unwrap_err().to_string();
    assert!(!why.contains("s3cret"), "{why}");
    why
}

#[test]
fn it_is_read_from_each_key_and_the_first_counts() {
    let text = good().to_string();
    for key in KEYS {
        assert!(Kubeconfig::read(&data(key, &text)).is_ok(), "{key}");
    }
    let mut both = data("value", "nonsense");
    both.extend(data("kubeconfig", &text));
    assert_eq!(
        Kubeconfig::read(&both).unwrap_err(),
        Refusal::Unreadable("value")
    );
    let none = Kubeconfig::read(&data("token", &text)).unwrap_err();
    assert_eq!(none, Refusal::NoKey);
}

#[test]
fn what_is_used_of_it_is_all_there() {
    let mut file = good();
    file["clusters"][0]["cluster"]["tls-server-name"] = json!("kubernetes.default");
    file["users"][0]["user"]["as"] = json!("reader");
    let read = read(&file).unwrap();
    assert_eq!(
        read.server.to_string(),
        "https://api.test:6443/k8s/clusters/c-1"
    );
    assert_eq!(read.server_name.as_deref(), Some("kubernetes.default"));
    assert_eq!(read.authorities.len(), 1);
    assert_eq!(read.user.impersonate.as_deref(), Some("reader"));
    assert!(!format!("{read:?}").contains("s3cret"));
}

#[test]
fn a_certificate_with_its_key_is_a_credential() {
    let (certificate, key) = identity();
    let mut file = good();
    let user = json!({
        "client-certificate-data": STANDARD.encode(certificate),
        "client-key-data": STANDARD.encode(key),
    });
    file["users"][0]["user"] = user.clone();
    assert!(read(&file).is_ok());
    for (missing, named) in [
        (
            "client-key-data",
            "users[].user.client-key-data: it is missing",
        ),
        (
            "client-certificate-data",
            "users[].user.client-certificate-data: it is missing",
        ),
    ] {
        file["users"][0]["user"] = user.clone();
        file["users"][0]["user"][missing] = json!(null);
        let why = refused(&file);
        assert!(why.starts_with(named), "{why}");
        file["users"][0]["user"][missing] = json!(STANDARD.encode("s3cret"));
        let why = refused(&file);
        assert!(
            why.contains(missing) && why.contains("it holds no"),
            "{why}"
        );
    }
}

/// Each would run a program, read a file, or lead elsewhere than the rules for addresses see.
#[rstest]
#[case::exec("/users/0/user/exec", json!({"command": "aws"}), "users[].user.exec: no program is run")]
#[case::provider("/users/0/user/auth-provider", json!({"name": "gcp"}), "users[].user.auth-provider: ")]
#[case::token_file("/users/0/user/tokenFile", json!("/s3cret"), "users[].user.tokenFile: files are")]
#[case::certificate_file("/users/0/user/client-certificate", json!("/s3cret"), "users[].user.client-cert")]
#[case::key_file("/users/0/user/client-key", json!("/s3cret"), "users[].user.client-key: files")]
#[case::authority_file("/clusters/0/cluster/certificate-authority", json!("/s3cret"), "clusters[].cluster.certificate-authority: files")]
#[case::proxy("/clusters/0/cluster/proxy-url", json!("socks5://s3cret"), "clusters[].cluster.proxy-url: no proxy")]
#[case::insecure("/clusters/0/cluster/insecure-skip-tls-verify", json!(true), "clusters[].cluster.insecure-skip-tls-verify: ")]
#[case::http("/clusters/0/cluster/server", json!("http://s3cret.test"), "clusters[].cluster.server: it is no https")]
#[case::no_server("/clusters/0/cluster/server", json!(null), "clusters[].cluster.server: ")]
#[case::a_path("/clusters/0/cluster/server", json!("/s3cret"), "clusters[].cluster.server: it is no https")]
#[case::a_user("/clusters/0/cluster/server", json!("https://s3cret@api.test"), "clusters[].cluster.server: it names a user")]
#[case::no_authority("/clusters/0/cluster/certificate-authority-data", json!(null), "clusters[].cluster.certificate-authority-data: it holds no")]
#[case::no_certificate("/clusters/0/cluster/certificate-authority-data", json!("czNjcmV0"), "clusters[].cluster.certificate-authority-data: it holds no")]
#[case::no_base64("/clusters/0/cluster/certificate-authority-data", json!("-----"), "clusters[].cluster.certificate-authority-data: it holds no")]
#[case::no_credentials("/users/0/user/token", json!(null), "users[].user: it has no credentials")]
#[case::an_empty_token("/users/0/user/token", json!(""), "users[].user: it has no credentials")]
#[case::a_token_in_two_lines("/users/0/user/token", json!("s3cret\n"), "users[].user.token: it holds characters")]
#[case::a_long_address("/clusters/0/cluster/server", json!(format!("https://api.test/{}", "a".repeat(2048))), "clusters[].cluster.server: it is no address")]
#[case::no_such_context("/current-context", json!("s3cret"), "current-context: there is no such context")]
#[case::no_such_user("/users/0/name", json!("s3cret"), "contexts[].context.user: there is no such user")]
#[case::no_such_cluster("/clusters/0/name", json!("s3cret"), "contexts[].context.cluster: there is no such")]
#[case::no_context("/contexts", json!([]), "current-context: there is no such context")]
fn what_is_refused_is_named_with_what_to_write(
    #[case] path: &str,
    #[case] value: Value,
    #[case] named: &str,
) {
    let mut file = good();
    let (parent, field) = path.rsplit_once('/').unwrap();
    file.pointer_mut(parent).unwrap()[field] = value;
    let why = refused(&file);
    assert!(why.starts_with(named), "{why}");
    assert!(why.contains("; "), "it says what to write: {why}");
}

#[test]
fn one_context_needs_no_name_and_several_do() {
    let mut file = good();
    file["current-context"] = json!(null);
    assert!(read(&file).is_ok());
    let second = json!({"name": "there", "context": {"cluster": "c", "user": "u"}});
    file["contexts"].as_array_mut().unwrap().push(second);
    let why = refused(&file);
    assert!(
        why.starts_with("current-context: there are several"),
        "{why}"
    );
    file["current-context"] = json!("there");
    assert!(read(&file).is_ok());
    file["current-context"] = json!(null);
    file["contexts"] = json!([]);
    assert!(refused(&file).starts_with("contexts: there is none"));
}

#[test]
fn only_what_is_used_is_judged() {
    let mut file = good();
    let other = json!({"name": "other", "user": {"exec": {"command": "aws"}}});
    file["users"].as_array_mut().unwrap().push(other);
    assert!(read(&file).is_ok());
}

#[rstest]
#[case("")]
#[case("s3cret")]
#[case("[1, 2]")]
#[case("clusters: {s3cret: 1}")]
#[case("users: [{name: u, user: {token: [s3cret]}}]")]
#[case("a: &a [*a]")]
#[case("\u{0}")]
fn a_text_that_is_no_kubeconfig_is_refused_without_showing_it(#[case] text: &str) {
    let why = Kubeconfig::read(&data("value", text)).unwrap_err();
    assert!(!why.to_string().contains("s3cret"), "{why}");
    let why = Kubeconfig::read(&[("value".to_owned(), ByteString(vec![0xff]))].into());
    assert_eq!(why.unwrap_err(), Refusal::Unreadable("value"));
}

#[test]
fn a_text_that_breaks_off_is_refused_wherever_it_ends() {
    let text = good().to_string();
    for end in 0..text.len() {
        let why = Kubeconfig::read(&data("value", &text[..end])).unwrap_err();
        assert!(!why.to_string().contains("s3cret"), "{why}");
    }
}

#[test]
fn other_credentials_lead_to_the_same_cluster_and_another_address_does_not() {
    let file = good();
    let before = read(&file).unwrap();
    let mut rotated = file.clone();
    rotated["users"][0]["user"]["token"] = json!("another");
    assert!(read(&rotated).unwrap().leads_as(&before));
    let mut moved = file.clone();
    moved["clusters"][0]["cluster"]["server"] = json!("https://api.test:7443");
    assert!(!read(&moved).unwrap().leads_as(&before));
    // A cluster that was made again at the same address has another authority.
    let mut again = file;
    let authority = STANDARD.encode(identity().0);
    again["clusters"][0]["cluster"]["certificate-authority-data"] = json!(authority);
    assert!(!read(&again).unwrap().leads_as(&before));
}

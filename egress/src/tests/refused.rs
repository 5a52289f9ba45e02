//! Where nobody is led to, whichever way the address is written.

use rstest::rstest;

use super::*;

/// Each class by the addresses in the table of [`address`]. Here: both ways to an address use that table,
/// in whatever form the address is written.
#[rstest]
#[case("127.0.0.1", Class::Loopback)]
#[case("127.1", Class::Loopback)]
#[case("0x7f000001", Class::Loopback)]
#[case("2130706433", Class::Loopback)]
#[case("[::1]", Class::Loopback)]
#[case("[::ffff:127.0.0.1]", Class::Loopback)]
#[case("0.0.0.0", Class::Unspecified)]
#[case("[::]", Class::Unspecified)]
#[case("169.254.169.254", Class::LinkLocal)]
#[case("[fe80::1]", Class::LinkLocal)]
#[case("[::ffff:169.254.169.254]", Class::LinkLocal)]
#[case("[fd00:ec2::254]", Class::Metadata)]
#[case("224.0.0.1", Class::Multicast)]
#[case("255.255.255.255", Class::Broadcast)]
#[case("10.96.0.1", Class::ApiServer)]
#[case("[::ffff:10.96.0.1]", Class::ApiServer)]
#[tokio::test]
async fn a_refused_literal_is_not_connected_to(#[case] host: &str, #[case] class: Class) {
    let egress = egress(rules(&[], &["10.96.0.1"]), Fixed::default());
    let outcome = get(&egress, &format!("https://{host}/"), None).await;
    assert_eq!(outcome, Err(EgressError::Refused(class)));
}

#[rstest]
#[case("127.0.0.1", Class::Loopback)]
#[case("::1", Class::Loopback)]
#[case("::ffff:127.0.0.1", Class::Loopback)]
#[case("0.0.0.0", Class::Unspecified)]
#[case("::", Class::Unspecified)]
#[case("169.254.169.254", Class::LinkLocal)]
#[case("fe80::1", Class::LinkLocal)]
#[case("::ffff:169.254.169.254", Class::LinkLocal)]
#[case("fd00:ec2::254", Class::Metadata)]
#[case("224.0.0.1", Class::Multicast)]
#[case("255.255.255.255", Class::Broadcast)]
#[case("10.96.0.1", Class::ApiServer)]
#[tokio::test]
async fn a_name_for_a_refused_address_is_not_connected_to(
    #[case] address: &str,
    #[case] class: Class,
) {
    let egress = egress(rules(&[], &["10.96.0.1"]), Fixed::one(HOST, &[address]));
    let outcome = get(&egress, &format!("https://{HOST}/"), None).await;
    assert_eq!(outcome, Err(EgressError::Refused(class)));
}

#[tokio::test]
async fn the_api_server_is_refused_by_the_addresses_of_its_name() {
    let mut names = Fixed::one(HOST, &["10.1.2.3"]);
    names
        .0
        .insert("api.internal", vec!["10.1.2.3".parse().unwrap()]);
    let egress = egress(rules(&[], &["api.internal"]), names);
    for url in [
        format!("https://{HOST}/"),
        "https://api.internal/".to_owned(),
    ] {
        let outcome = get(&egress, &url, None).await;
        assert_eq!(
            outcome,
            Err(EgressError::Refused(Class::ApiServer)),
            "{url}"
        );
    }
}

#[tokio::test]
async fn nothing_is_read_while_the_api_server_cannot_be_told_apart() {
    let egress = egress(
        rules(&[], &["api.internal"]),
        Fixed::one(HOST, &["10.1.2.3"]),
    );
    let outcome = get(&egress, &format!("https://{HOST}/"), None).await;
    assert_eq!(outcome, Err(EgressError::ApiServerUnresolved));
}

/// The server listens on loopback, so that only the rules can be in the way.
#[tokio::test]
async fn a_server_on_a_refused_address_sees_nobody() {
    let server = served(Reply::ok("secret")).await;
    let egress = egress(rules(&[], &[]), Fixed::one(HOST, &["127.0.0.1"]));
    assert_eq!(
        read(&egress, &server).await,
        Err(EgressError::Refused(Class::Loopback))
    );
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn of_several_addresses_the_allowed_ones_are_used() {
    let server = served(Reply::ok("text")).await;
    let names = Fixed::one(HOST, &["169.254.169.254", "127.0.0.1"]);
    let egress = egress(rules(&["127.0.0.0/8"], &[]), names);
    assert_eq!(read(&egress, &server).await.unwrap(), b"text");
}

/// What the operator lists, and nothing else; what is refused stays so.
#[rstest]
#[case::by_name(&["calendar.test"], true)]
#[case::below(&["*.test"], true)]
#[case::by_network(&["192.0.2.0/24", "127.0.0.0/8"], true)]
#[case::another_name(&["other.test", "192.0.2.0/24"], false)]
#[tokio::test]
async fn only_what_is_listed_is_asked(#[case] only: &[&str], #[case] asked: bool) {
    let server = served(Reply::ok("text")).await;
    let rules = Rules {
        only: only.iter().map(|text| text.parse().unwrap()).collect(),
        ..rules(&["127.0.0.0/8"], &[])
    };
    let egress = egress(rules, Fixed::one(HOST, &["127.0.0.1"]));
    let outcome = read(&egress, &server).await;
    match asked {
        true => assert_eq!(outcome.unwrap(), b"text"),
        false => assert_eq!(outcome, Err(EgressError::NotListed)),
    }
    assert_eq!(server.requests(), usize::from(asked));
}

#[tokio::test]
async fn what_is_listed_may_be_refused_all_the_same() {
    let rules = Rules {
        only: vec!["169.254.0.0/16".parse().unwrap(), HOST.parse().unwrap()],
        ..rules(&[], &[])
    };
    let egress = egress(rules, Fixed::one(HOST, &["127.0.0.1"]));
    for (url, class) in [
        ("https://169.254.169.254/".to_owned(), Class::LinkLocal),
        (format!("https://{HOST}/"), Class::Loopback),
    ] {
        let outcome = get(&egress, &url, None).await;
        assert_eq!(outcome, Err(EgressError::Refused(class)));
    }
    let literal = get(&egress, "https://192.0.2.1/", None).await;
    assert_eq!(literal, Err(EgressError::NotListed));
}

#[rstest]
#[case("127.0.0.1", Err(EgressError::Refused(Class::Loopback)))]
#[case("[::1]", Err(EgressError::Refused(Class::Loopback)))]
#[case("0x7f000001", Err(EgressError::Unresolved))]
#[case("10.96.0.1", Err(EgressError::Refused(Class::ApiServer)))]
#[case("10.1.2.3", Ok("10.1.2.3"))]
#[case(HOST, Ok("10.1.2.4"))]
#[tokio::test]
async fn other_clients_get_the_addresses_that_are_allowed(
    #[case] host: &str,
    #[case] expected: Result<&str, EgressError>,
) {
    let names = Fixed::one(HOST, &["127.0.0.1", "10.1.2.4", "169.254.169.254"]);
    let egress = egress(rules(&[], &["10.96.0.1"]), names);
    let addresses = egress.addresses(host).await;
    assert_eq!(addresses, expected.map(|it| vec![it.parse().unwrap()]));
}

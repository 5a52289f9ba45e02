//! Addresses: which there are, and what is no address of a repository.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn api(provider: Provider, text: &str) -> Result<String, AddressError> {
    let address = Address::parse(provider, text)?;
    Ok(format!("{}{}", address.api(), address.repository()))
}

#[rstest]
#[case(
    Provider::GitHub,
    "https://github.com/acme/shop",
    "https://api.github.com/repos/acme/shop"
)]
#[case(
    Provider::GitHub,
    "https://github.com/acme/shop.git/",
    "https://api.github.com/repos/acme/shop"
)]
#[case(
    Provider::GitHub,
    "https://git.example.com/acme/shop.git",
    "https://git.example.com/api/v3/repos/acme/shop"
)]
#[case(
    Provider::GitHub,
    "https://acme.ghe.com/acme/shop",
    "https://api.acme.ghe.com/repos/acme/shop"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com:3000/acme/shop",
    "https://git.example.com:3000/api/v1/repos/acme/shop"
)]
#[case(
    Provider::Gitea,
    "https://example.com/code/git/acme/shop.git",
    "https://example.com/code/git/api/v1/repos/acme/shop"
)]
#[case(
    Provider::GitLab,
    "https://gitlab.com/acme/shop",
    "https://gitlab.com/api/v4/projects/acme%2Fshop"
)]
#[case(
    Provider::GitLab,
    "https://gitlab.com/acme/web/eu/shop.git",
    "https://gitlab.com/api/v4/projects/acme%2Fweb%2Feu%2Fshop"
)]
#[case(
    Provider::GitLab,
    "https://example.com/gitlab/api/v4/projects/acme%2Fshop",
    "https://example.com/gitlab/api/v4/projects/acme%2Fshop"
)]
#[case(
    Provider::GitLab,
    "https://example.com/api/v4/projects/42",
    "https://example.com/api/v4/projects/42"
)]
#[case(
    Provider::BitbucketServer,
    "https://example.com/scm/shop/web.git",
    "https://example.com/rest/api/1.0/projects/shop/repos/web"
)]
#[case(
    Provider::BitbucketServer,
    "https://example.com/bitbucket/projects/SHOP/repos/web/browse",
    "https://example.com/bitbucket/rest/api/1.0/projects/SHOP/repos/web"
)]
#[case(
    Provider::BitbucketServer,
    "https://example.com/users/alice/repos/web",
    "https://example.com/rest/api/1.0/projects/~alice/repos/web"
)]
#[case(
    Provider::BitbucketServer,
    "https://example.com/scm/~alice/web.git",
    "https://example.com/rest/api/1.0/projects/~alice/repos/web"
)]
fn an_address_leads_to_an_api(
    #[case] provider: Provider,
    #[case] text: &str,
    #[case] expected: &str,
) {
    assert_eq!(api(provider, text).as_deref(), Ok(expected));
}

#[rstest]
#[case(
    Provider::GitHub,
    "https://github.com/a/b/",
    Some("https://github.com/a/b.git")
)]
#[case(
    Provider::Gitea,
    "https://host/git/a/b.git",
    Some("https://host/git/a/b.git")
)]
#[case(Provider::GitLab, "https://host/a/b/c", Some("https://host/a/b/c.git"))]
#[case(
    Provider::GitLab,
    "https://host:8443/git/api/v4/projects/a%2Fb",
    Some("https://host:8443/git/a/b.git")
)]
#[case(Provider::GitLab, "https://host/api/v4/projects/42", None)]
#[case(
    Provider::BitbucketServer,
    "https://host/git/projects/ACME/repos/shop/browse",
    Some("https://host/git/scm/ACME/shop.git")
)]
#[case(
    Provider::BitbucketServer,
    "https://host/users/alice/repos/web",
    Some("https://host/scm/~alice/web.git")
)]
fn git_knows_a_repository_by_its_path(
    #[case] provider: Provider,
    #[case] text: &str,
    #[case] expected: Option<&str>,
) {
    let address = Address::parse(provider, text).unwrap();
    assert_eq!(address.clone_url().as_deref(), expected);
}

#[rstest]
#[case(Provider::Gitea, "http://git.example.com/acme/shop", "https only")]
#[case(Provider::Gitea, "git@git.example.com:acme/shop.git", "https only")]
#[case(Provider::Gitea, "ssh://git@git.example.com/acme/shop", "https only")]
#[case(Provider::Gitea, "", "https only")]
#[case(
    Provider::Gitea,
    "https://bot:t0ken@git.example.com/acme/shop",
    "remove what stands before @"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com/acme/shop?tab=files",
    "remove ? and #"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com/acme/shop#readme",
    "remove ? and #"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com",
    "write https://HOST/OWNER/NAME"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com/shop",
    "write https://HOST/OWNER/NAME"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com/acme%2Fweb/shop",
    "is no name"
)]
#[case(
    Provider::Gitea,
    "https://git.example.com/a//shop",
    "write https://HOST/OWNER/NAME"
)]
#[case(
    Provider::GitHub,
    "https://github.com/acme/shop/tree/main",
    "write https://HOST/OWNER/NAME"
)]
#[case(
    Provider::GitLab,
    "https://gitlab.com/shop",
    "write https://HOST/GROUP/NAME, or"
)]
#[case(
    Provider::GitLab,
    "https://gitlab.com/acme/shop/-/tree/main",
    "write https://HOST/GROUP/NAME, or"
)]
#[case(
    Provider::GitLab,
    "https://gitlab.com/api/v4/projects/shop",
    "write https://HOST/GROUP/NAME, or"
)]
#[case(
    Provider::BitbucketServer,
    "https://bitbucket.org/acme/shop",
    "Cloud is not supported"
)]
#[case(
    Provider::BitbucketServer,
    "https://example.com/acme/shop",
    "write https://HOST/projects/KEY"
)]
fn what_is_no_repository_is_refused(
    #[case] provider: Provider,
    #[case] text: &str,
    #[case] expected: &str,
) {
    let why = Address::parse(provider, text).unwrap_err().to_string();
    assert!(why.contains(expected), "{why}");
    assert!(!why.contains("acme") && !why.contains("t0ken"), "{why}");
}

#[test]
fn nothing_of_the_path_is_shown() {
    let address = Address::parse(Provider::Gitea, "https://git.example.com:3000/acme/shop");
    let shown = format!("{:?}", address.unwrap());
    assert_eq!(shown, "Address { Gitea at git.example.com:3000 }");
}

#[test]
fn parts_of_paths_are_escaped() {
    assert_eq!(encoded("env/prod-next"), "env%2Fprod-next");
    assert_eq!(encoded_path("apps/a b?.yaml"), "apps/a%20b%3F.yaml");
}

fn provider() -> impl Strategy<Value = Provider> {
    prop_oneof![
        Just(Provider::GitHub),
        Just(Provider::GitLab),
        Just(Provider::Gitea),
        Just(Provider::BitbucketServer),
    ]
}

proptest! {
    /// Whatever a user writes: requests go to its host alone, or to the API host of github.com and ghe.com.
    #[test]
    fn requests_stay_on_the_host(
        provider in provider(),
        path in "(/|[a-z]|\\.|%2[eEfF]|%|@|:|\\\\|~|-|é|api/v4/projects/|/repos/|projects/|scm/){0,12}",
    ) {
        let text = format!("https://git.example.com/{path}");
        if let Ok(address) = Address::parse(provider, &text) {
            let url = Url::parse(&format!("{}{}", address.api(), address.repository())).unwrap();
            prop_assert_eq!(url.host_str(), Some("git.example.com"));
            let whole = format!("{}{}", address.api(), address.repository());
            prop_assert_eq!(url.as_str(), whole, "nothing of it means something else");
        }
    }

    #[test]
    fn any_text_is_read_or_refused(provider in provider(), text in "\\PC{0,60}") {
        let _ = Address::parse(provider, &text);
    }
}

#[rstest]
#[case("https://git.example.com:8443/a/b/pulls/7", true)]
#[case("https://git.example.com:8443/", true)]
#[case("http://git.example.com:8443/a/b/pulls/7", false)]
#[case("https://git.example.com/a/b/pulls/7", false)]
#[case("https://git.example.com.evil.test:8443/a/b/pulls/7", false)]
#[case("https://me@git.example.com:8443/a/b/pulls/7", false)]
#[case("https://git.example.com:8443/a/b\n/pulls/7", false)]
#[case("https://git.example.com:8443/\u{202e}", false)]
#[case("javascript:alert(1)", false)]
#[case("", false)]
fn an_address_that_a_forge_gives_is_shown_if_it_is_its_own(
    #[case] text: &str,
    #[case] expected: bool,
) {
    let address = Address::parse(Provider::Gitea, "https://git.example.com:8443/a/b").unwrap();
    assert_eq!(address.is_own(text), expected);
    let long = format!("https://git.example.com:8443/{}", "a".repeat(1024));
    assert!(!address.is_own(&long));
}

#[rstest]
#[case(Provider::GitHub, "https://h.test/a/b", "https://h.test/a/b/pull/7")]
#[case(
    Provider::GitLab,
    "https://h.test/a/b/c",
    "https://h.test/a/b/c/-/merge_requests/7"
)]
#[case(
    Provider::Gitea,
    "https://h.test/git/a/b",
    "https://h.test/git/a/b/pulls/7"
)]
#[case(
    Provider::BitbucketServer,
    "https://h.test/scm/a/b.git",
    "https://h.test/projects/a/repos/b/pull-requests/7"
)]
fn a_page_is_known_by_its_number(
    #[case] provider: Provider,
    #[case] text: &str,
    #[case] expected: &str,
) {
    assert_eq!(Address::parse(provider, text).unwrap().page(7), expected);
}

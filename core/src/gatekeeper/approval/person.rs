//! Who is a person: a vote is one person's, and somebody who may create ServiceAccounts, or act as
//! one, has as many of them as they like.

/// What the user names of ServiceAccounts begin with.
const ACCOUNT: &str = "system:serviceaccount:";
/// The group that all of them are in, and with a colon and a namespace those of that namespace.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Whether the approval of `user` is nobody's: that of a ServiceAccount, where no group of service
/// accounts is among those of its groups that a gatekeeper names.
pub fn is_nobody<'a>(user: &str, named: impl IntoIterator<Item = &'a String>) -> bool {
    is_service_account(user) && !named.into_iter().any(|group| is_of_service_accounts(group))
}

fn is_service_account(user: &str) -> bool {
    user.starts_with(ACCOUNT)
}

fn is_of_service_accounts(group: &str) -> bool {
    let rest = group.strip_prefix(ACCOUNTS);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

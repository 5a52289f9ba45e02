//! Who is a person: a vote is the vote of one person, and a user who may create ServiceAccounts, or act
//! as one, could have any number of votes.

/// What the user names of ServiceAccounts begin with.
const ACCOUNT: &str = "system:serviceaccount:";
/// The group that all of them are in, and with a colon and a namespace those of that namespace.
const ACCOUNTS: &str = "system:serviceaccounts";

/// Whether the approval of `user` does not count as a person's: it is from a ServiceAccount, and none of
/// its groups that a gatekeeper names is a group of service accounts.
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

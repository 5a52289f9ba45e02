//! Git's own protocol over https: heads, commits with their trees, and pushes of one commit.
//!
//! What comes in: the address of a repository, and a token. What goes out: references, a commit object, or
//! what came of a push: the same for every forge. Nothing is cloned or kept. Everything that a server says is
//! bounded, and read as if somebody wanted to do harm with it. Reading is version 2 of the protocol
//! (gitprotocol-v2), a push is what all versions have in common (gitprotocol-pack). Only repositories whose
//! ids are of SHA-1. Used: the rooms `address`, `call`, `names` and `outcome`.

use sluice_egress::Reply;

use crate::address::{Address, Provider};
use crate::call::{Access, Api, Call, Paging};
use crate::outcome::{ForgeError, Trouble, Words};

pub use object::{CommitObject, NewCommit, Signature};
pub use push::{Target, Update};
pub use references::{Named, Reference};

mod object;
mod pack;
mod packet;
mod push;
mod read;
#[cfg(test)]
mod real;
mod references;

/// How we call ourselves.
const AGENT: &[u8] = b"agent=sluice";

/// A repository, as Git knows it.
#[derive(Clone)]
pub(crate) struct Git(Api);

/// Why what a server says is of no use.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    /// It is not what the protocol has there.
    Broken(&'static str),
    /// It says that it failed, and why.
    Says(String),
    /// Ids are of SHA-256.
    Sha256,
    /// A commit takes more bytes than are read.
    CommitTooLong,
    /// A commit has more parents than are read.
    TooManyParents,
    /// There are more references than this.
    TooMany(usize),
}

impl Git {
    pub(crate) fn new(access: Access, address: Address) -> Self {
        let token = &access.token;
        let basic = |username| token.password_of(username);
        let credentials = match address.provider() {
            Provider::GitHub => basic("x-access-token"),
            Provider::GitLab => basic("oauth2"),
            // Any name will do.
            Provider::Gitea => basic("sluice"),
            // A token of Bitbucket is no password.
            Provider::BitbucketServer => None,
        };
        let credentials = credentials.unwrap_or_else(|| token.bearer().clone());
        let root = address.clone_url().unwrap_or_default();
        // A server that is asked without it answers with nothing.
        let headers = &[("git-protocol", "version=2")];
        // It has no lists in pages.
        let api = Api::new(access, address, headers, Paging::Linked(""));
        Self(api.at(root).by(credentials).by_git())
    }

    /// # Errors
    /// Git does not know the repository by its address.
    fn call(&self, operation: &'static str) -> Result<Call<'_>, ForgeError> {
        let call = self.0.call(operation);
        match self.0.address.clone_url() {
            Some(_) => Ok(call),
            None => Err(call.error(Trouble::NoCloneUrl)),
        }
    }
}

/// What a server replies with success.
fn body<'r>(call: &Call<'_>, reply: &'r Reply) -> Result<&'r [u8], ForgeError> {
    match reply.status {
        200 => Ok(&reply.body),
        404 => Err(call.error(Trouble::NoRepository)),
        _ => Err(call.error(match call.trouble(reply) {
            // Git is told in plain words, not in JSON.
            Trouble::NoRight(_) => Trouble::NoRight(words(call, reply)),
            trouble => trouble,
        })),
    }
}

fn words(call: &Call<'_>, reply: &Reply) -> Words {
    let text = String::from_utf8_lossy(&reply.body);
    match reply.header("content-type") {
        Some(media_type) if media_type.starts_with("text/plain") => call.quoted(text.trim()),
        Some(_) | None => call.words(reply),
    }
}

fn trouble(call: &Call<'_>, wrong: Wrong) -> Trouble {
    match wrong {
        Wrong::Broken(place) => Trouble::NotUnderstood(place.to_owned()),
        Wrong::Says(words) => Trouble::Refused(200, call.quoted(&words)),
        Wrong::Sha256 => Trouble::Sha256,
        Wrong::CommitTooLong => Trouble::CommitTooLong(pack::LONGEST_COMMIT >> 10),
        Wrong::TooManyParents => Trouble::TooManyParents(object::MOST_PARENTS),
        Wrong::TooMany(most) => Trouble::TooManyReferences(most),
    }
}

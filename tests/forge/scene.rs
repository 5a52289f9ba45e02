//! A repository of a test, with a user who may write to it.
//!
//! What comes in: a name that no other test has. What goes out: a [`Forge`] for that user, and what other
//! people do meanwhile.

use anyhow::{Context, Result};
use http::Method;
use serde_json::Value;
use sluice_egress::secrets::Token;
use sluice_egress::{Egress, Rules};
use sluice_forges::{
    Access, Act, Address, Branch, Change, ChangedFile, Committed, FilePath, Forge, ForgeError,
    Merge, MergeMethod, NewPull, Provider, Pull, PullState, Sha, Trouble, Undone, Way,
};
pub(crate) use sluice_tests::DEADLINE;
use sluice_tests::gitea::{Gitea, OWNER, gitea};
use sluice_tests::poll;
use tokio::time::Instant;

/// The file that tests change.
pub(crate) const FILE: &str = "apps/prod.yaml";

/// A repository with [`FILE`], and the forge as a user sees it who may write to it.
pub(crate) struct Scene {
    pub(crate) gitea: &'static Gitea,
    pub(crate) name: String,
    pub(crate) bot: String,
    pub(crate) token: String,
    pub(crate) forge: Forge,
}

impl Scene {
    pub(crate) async fn new(name: &str) -> Self {
        Self::open(name).await.unwrap()
    }

    async fn open(name: &str) -> Result<Self> {
        let gitea = gitea().await?;
        gitea.repository(name).await?;
        let bot = gitea.bot(name).await?;
        let forge = forge(gitea, name, &bot.token);
        let scene = Self {
            gitea,
            name: name.to_owned(),
            bot: bot.name,
            token: bot.token,
            forge,
        };
        scene.push("main", FILE, b"version: 1\n").await?;
        Ok(scene)
    }

    /// The forge as another token sees it.
    pub(crate) fn with(&self, token: &str) -> Forge {
        forge(self.gitea, &self.name, token)
    }

    /// What the owner does: a path such as `/pulls/1`.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        self.gitea
            .in_repository(&self.name, method, path, &body)
            .await
    }

    /// The same for a list, with all its pages.
    pub(crate) async fn all(&self, path: &str) -> Result<Vec<Value>> {
        self.gitea.all_in_repository(&self.name, path).await
    }

    /// Writes a file to a branch, as a person pushes it. Returns the commit.
    pub(crate) async fn push(&self, branch: &str, path: &str, bytes: &[u8]) -> Result<Sha> {
        let commit = self.gitea.push(&self.name, branch, path, bytes).await?;
        Sha::parse(&commit).context("no commit")
    }

    pub(crate) async fn head(&self, name: &str) -> Option<Sha> {
        self.forge.head(&branch(name)).await.unwrap()
    }

    /// Changes files of `main`, read at its head, on a new branch.
    pub(crate) async fn change(&self, name: &str, files: &[(&str, &[u8])]) -> Act<Committed> {
        let from = self.head("main").await.unwrap();
        let mut read = Vec::new();
        for (path, _) in files {
            let path = file(path);
            let found = self.forge.file(&from, &path).await.unwrap();
            read.push((path, found.unwrap().blob));
        }
        let pairs = read.iter().zip(files);
        let files: Vec<_> = pairs
            .map(|((path, blob), (_, bytes))| ChangedFile { path, blob, bytes })
            .collect();
        let (branch, base) = (branch(name), branch("main"));
        let change = Change {
            branch: &branch,
            base: &base,
            from: &from,
            message: "Promote 2.0",
            files: &files,
        };
        self.forge.commit(&change, soon()).await
    }

    /// A branch with a commit that changes [`FILE`], and its pull request.
    pub(crate) async fn pull(&self, name: &str, bytes: &[u8]) -> (Sha, Pull) {
        let commit = self.change(name, &[(FILE, bytes)]).await.unwrap().commit;
        (commit, self.open_pull(name).await.unwrap())
    }

    pub(crate) async fn open_pull(&self, head: &str) -> Act<Pull> {
        let (head, base) = (branch(head), branch("main"));
        let new = NewPull {
            title: "Promote",
            body: "To 2.0.\n",
            head: &head,
            base: &base,
        };
        self.forge.open(&new, soon()).await
    }

    pub(crate) async fn seen(&self, number: u64) -> Pull {
        self.forge.pull(number).await.unwrap().unwrap()
    }

    pub(crate) async fn merge_into(
        &self,
        number: u64,
        head: &Sha,
        base: &str,
        method: Option<MergeMethod>,
    ) -> Result<(), Undone> {
        let base = branch(base);
        let merge = Merge {
            head,
            base: &base,
            method,
            is_held: &|_| false,
        };
        self.forge.merge(number, &merge, &|_| Some(soon())).await
    }

    /// Merges as soon as the forge is ready for it, or says why it never will be.
    pub(crate) async fn merge(
        &self,
        number: u64,
        head: &Sha,
        method: Option<MergeMethod>,
    ) -> Result<(), Trouble> {
        let merging = poll(DEADLINE, "the forge to be ready", async || {
            match self.merge_into(number, head, "main", method).await {
                Err(Undone::NotDone(error)) => Err(error),
                Err(Undone::Refused(error) | Undone::Unknown(error)) => Ok(Err(error.trouble)),
                Ok(()) => Ok(Ok(())),
            }
        });
        merging.await.unwrap()
    }

    /// Waits until a pull request is in a state.
    pub(crate) async fn becomes(&self, number: u64, is: fn(&PullState) -> bool) -> Pull {
        poll(DEADLINE, "the pull request to change", async || {
            let pull = self.seen(number).await;
            match is(&pull.state) {
                true => Ok(pull),
                false => Err(format!("{:?}", pull.state)),
            }
        })
        .await
        .unwrap()
    }

    /// Whether a message shows neither a token nor where the repository is.
    pub(crate) fn shows_no_secret(&self, error: &ForgeError) {
        let text = error.to_string();
        assert!(text.starts_with("127.0.0.1:"), "{text}");
        let path = format!("{OWNER}/{}", self.name);
        assert!(
            !text.contains(&path) && !text.contains(&self.token),
            "{text}"
        );
    }
}

/// A forge behind the authority of the server.
pub(crate) fn forge(gitea: &Gitea, name: &str, token: &str) -> Forge {
    let rules = Rules {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..Rules::default()
    };
    let way = Way {
        egress: Egress::new(rules).unwrap(),
        authorities: Some(gitea.authority().as_bytes().to_vec()),
        namespace: "apps".to_owned(),
        told: None,
        pacing: sluice_forges::Pacing::default(),
    };
    let token = Token::new(token).unwrap();
    let address = Address::parse(Provider::Gitea, &gitea.url(OWNER, name));
    Forge::new(address.unwrap(), Access { way, token })
}

pub(crate) fn branch(name: &str) -> Branch {
    Branch::parse(name).unwrap()
}

pub(crate) fn file(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

/// When an act has to be sent at the latest.
pub(crate) fn soon() -> Instant {
    Instant::now() + DEADLINE
}

/// A commit that no repository has.
pub(crate) fn unknown() -> Sha {
    Sha::parse(&"1234567890".repeat(4)).unwrap()
}

/// Why an act was refused.
pub(crate) fn refused<T: std::fmt::Debug>(act: Act<T>) -> Trouble {
    match act {
        Err(Undone::Refused(error)) => error.trouble,
        other => panic!("it was not refused: {other:?}"),
    }
}

//! The certificate by which the controller is known, and its key: read from files, and again when
//! these change.
//!
//! What comes in: two paths. What goes out: what a TLS connection is accepted with. A pair that is
//! broken changes nothing: the last good one stays, and the log says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

/// How long between two looks at the files.
pub const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The most bytes of a file.
const LONGEST: u64 = 1024 * 1024;

/// Why a pair cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A file cannot be read.
    #[error("{}: {problem}; it has to be there, and readable by the controller", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What happened.
        problem: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {problem}; write {expected} in PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: pem::Error,
        /// What should be in it.
        expected: &'static str,
    },
    /// They do not make a pair.
    #[error("{}: {problem}; it has to be the certificate of that key, and then its issuers", path.display())]
    NoPair {
        /// The file of the certificate.
        path: PathBuf,
        /// What is wrong with it.
        problem: rustls::Error,
    },
}

/// A certificate and its key, as they were when they were last good.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<ServerConfig>>,
    /// A hash of what was read last, good or not.
    read: Mutex<[u8; 32]>,
}

impl Certificates {
    /// Reads them.
    ///
    /// # Errors
    /// They cannot be used.
    pub async fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, Broken> {
        let pair = Pair::read(&certificate, &key).await?;
        let config = pair.config(&certificate, &key)?;
        Ok(Self {
            certificate,
            key,
            current: RwLock::new(Arc::new(config)),
            read: Mutex::new(pair.hash()),
        })
    }

    /// What a connection is accepted with now.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read())
    }

    /// Looks at the files again, and takes what is new. Says whether there was anything.
    ///
    /// # Errors
    /// What is new cannot be used, or cannot be read. The old pair stays. A pair that was found
    /// broken is not looked at twice.
    pub async fn look_again(&self) -> Result<bool, Broken> {
        let pair = Pair::read(&self.certificate, &self.key).await?;
        let hash = pair.hash();
        {
            let mut read = self.read.lock();
            if std::mem::replace(&mut *read, hash) == hash {
                return Ok(false);
            }
        }
        let config = pair.config(&self.certificate, &self.key)?;
        let mut current = self.current.write();
        *current = Arc::new(config);
        Ok(true)
    }

    /// Looks again and again.
    pub async fn follow(&self, every: Duration) {
        let mut looks = tokio::time::interval(every);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            match self.look_again().await {
                Ok(false) => {}
                Ok(true) => tracing::info!("the certificate has changed"),
                Err(broken) => {
                    tracing::error!(%broken, "the new certificate cannot be used: the old one stays");
                }
            }
        }
    }
}

/// The texts of the two files.
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pair {
    async fn read(certificate: &Path, key: &Path) -> Result<Self, Broken> {
        Ok(Self {
            certificate: text(certificate).await?,
            key: text(key).await?,
        })
    }

    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update((self.certificate.len() as u64).to_be_bytes());
        hash.update(&self.certificate);
        hash.update(&self.key);
        hash.finalize().into()
    }

    fn config(&self, certificate: &Path, key: &Path) -> Result<ServerConfig, Broken> {
        let not_pem = |path: &Path, expected| {
            let path = path.to_owned();
            move |problem| Broken::NotPem {
                path,
                problem,
                expected,
            }
        };
        let chain = CertificateDer::pem_slice_iter(&self.certificate);
        let chain: Result<Vec<_>, _> = chain.collect();
        let chain = chain.map_err(not_pem(certificate, "certificates"))?;
        let private = PrivateKeyDer::from_pem_slice(&self.key);
        let private = private.map_err(not_pem(key, "a private key"))?;
        let no_pair = |problem| Broken::NoPair {
            path: certificate.to_owned(),
            problem,
        };
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(no_pair)?
                .with_no_client_auth()
                .with_single_cert(chain, private)
                .map_err(no_pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

async fn text(path: &Path) -> Result<Vec<u8>, Broken> {
    let unreadable = |problem| Broken::Unreadable {
        path: path.to_owned(),
        problem,
    };
    let length = tokio::fs::metadata(path).await.map_err(unreadable)?.len();
    if length > LONGEST {
        return Err(unreadable(std::io::Error::other("it is longer than 1 MiB")));
    }
    tokio::fs::read(path).await.map_err(unreadable)
}

#[cfg(test)]
pub(in crate::serve) mod tests;

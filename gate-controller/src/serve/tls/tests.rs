use std::fs;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use super::*;

/// A folder with the two files.
pub(in crate::serve) struct Folder(TempDir);

impl Folder {
    pub(in crate::serve) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn certificate(&self) -> PathBuf {
        self.0.path().join("tls.crt")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("tls.key")
    }

    /// Writes a new pair, and says which certificate it is.
    pub(in crate::serve) fn renew(&self) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(self.certificate(), cert.pem()).unwrap();
        fs::write(self.key(), signing_key.serialize_pem()).unwrap();
        cert.der().clone()
    }

    pub(in crate::serve) async fn read(&self) -> Result<Certificates, Broken> {
        Certificates::read(self.certificate(), self.key()).await
    }
}

#[tokio::test]
async fn a_new_pair_takes_the_place_of_the_old_one() {
    let folder = Folder::new();
    folder.renew();
    let certificates = folder.read().await.unwrap();
    let first = certificates.current();
    assert!(!certificates.look_again().await.unwrap());
    assert!(Arc::ptr_eq(&first, &certificates.current()));
    folder.renew();
    assert!(certificates.look_again().await.unwrap());
    assert!(!Arc::ptr_eq(&first, &certificates.current()));
}

#[tokio::test]
async fn a_broken_pair_leaves_the_old_one_and_is_told_once() {
    let folder = Folder::new();
    folder.renew();
    let certificates = folder.read().await.unwrap();
    let good = certificates.current();
    let key = fs::read(folder.key()).unwrap();
    let broken: [(&str, &dyn Fn()); 4] = [
        ("it has to be the certificate of that key", &|| {
            folder.renew();
            fs::write(folder.key(), &key).unwrap();
        }),
        ("write a private key in PEM", &|| {
            fs::write(folder.key(), "nonsense").unwrap();
        }),
        ("it has to be the certificate of that key", &|| {
            fs::write(folder.key(), &key).unwrap();
            fs::write(folder.certificate(), "").unwrap();
        }),
        ("tls.crt: it is longer than 1 MiB", &|| {
            fs::write(folder.certificate(), vec![b' '; 1024 * 1024 + 1]).unwrap();
        }),
    ];
    for (words, change) in broken {
        change();
        let error = certificates.look_again().await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("nonsense"), "{error}");
        assert!(Arc::ptr_eq(&good, &certificates.current()));
    }
    fs::write(folder.certificate(), "").unwrap();
    assert!(!certificates.look_again().await.unwrap(), "told before");

    folder.renew();
    assert!(certificates.look_again().await.unwrap());
    fs::remove_file(folder.key()).unwrap();
    let error = certificates.look_again().await.unwrap_err().to_string();
    assert!(error.contains("tls.key"), "{error}");
}

#[tokio::test]
async fn without_a_good_pair_nothing_starts() {
    let folder = Folder::new();
    let missing = folder.read().await.err().unwrap().to_string();
    assert!(missing.contains("tls.crt: No such file"), "{missing}");
}

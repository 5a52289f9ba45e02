//! How long is waited for an API server that does not do its work.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::program::run;

/// Says so of every request, and closes the connection.
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\n\
                    connection: close\r\n\r\n";

/// A server that treats each connection so, and how many there were; with a kubeconfig that names it.
fn server(treat: fn(TcpStream)) -> (NamedTempFile, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let stream = stream.unwrap();
            thread::spawn(move || treat(stream));
        }
    });
    let mut file = NamedTempFile::new().unwrap();
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
         clusters: [{{name: it, cluster: {{server: \"http://{address}\"}}}}]\n\
         contexts: [{{name: it, context: {{cluster: it, user: it}}}}]\nusers: [{{name: it, user: {{}}}}]\n"
    );
    file.write_all(config.as_bytes()).unwrap();
    (file, asked)
}

fn busy(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 16 * 1024]);
    let _ = stream.write_all(BUSY.as_bytes());
}

/// A byte now and then, so that it is never silent.
fn dribble(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 16 * 1024]);
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec();
    answer.resize(1000, b' ');
    for byte in answer {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_request_is_sent_once() {
    let (config, asked) = server(busy);
    let path = config.path().to_str().unwrap();
    let begun = Instant::now();
    let ran = run(&["get", "gates", "--kubeconfig", path], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("status 503"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{ran:?}");
    assert!(asked.load(Ordering::SeqCst) <= 2, "{asked:?} {ran:?}");
}

#[test]
fn who_presses_tab_waits_two_seconds() {
    let (config, _) = server(dribble);
    let kubeconfig = format!("--kubeconfig={}", config.path().display());
    let begun = Instant::now();
    let ran = run(&["__complete", "--", &kubeconfig, "why", ""], "");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ":4\n"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{ran:?}");
}

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use sluice_crds::audit::Lost;

use super::*;
use crate::observe::clock::SetClock;

fn start(destination: &str, required: bool) -> (Audit, Arc<Counters>) {
    let counters = Arc::<Counters>::default();
    let clock = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
    let destination = destination.parse().unwrap();
    let audit = Audit::start(destination, required, "c-0", clock, Arc::clone(&counters)).unwrap();
    (audit, counters)
}

/// Any event; a number tells it from others.
fn event(records: u64) -> Event {
    let message = "m".repeat(200);
    Event::Lost(Lost { records, message })
}

fn lines(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let read = |line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
    text.lines().map(read).collect()
}

fn numbers(path: &Path) -> Vec<u64> {
    let number = |record: Record| match record.event {
        Event::Lost(lost) => lost.records,
        other => panic!("{other:?}"),
    };
    lines(path).into_iter().map(number).collect()
}

async fn until(what: &str, met: impl Fn() -> bool) {
    let began = Instant::now();
    while !met() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn lines_are_appended_and_the_file_is_opened_again_when_it_was_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (
        folder.path().join("audit.log"),
        folder.path().join("audit.log.1"),
    );
    fs::write(&path, "").unwrap();
    let (audit, counters) = start(path.to_str().unwrap(), false);
    audit.record(event(1)).await.unwrap();
    let written = lines(&path);
    assert_eq!(
        (written[0].by.as_str(), &written[0].event),
        ("c-0", &event(1))
    );
    fs::rename(&path, &moved).unwrap();
    audit.record(event(2)).await.unwrap();
    fs::remove_file(&path).unwrap();
    audit.tell(|| event(3));
    audit.record(event(4)).await.unwrap();
    assert_eq!((numbers(&moved), numbers(&path)), (vec![1], vec![3, 4]));
    audit.tell(|| event(5));
    audit.finish().await;
    assert_eq!(numbers(&path), [3, 4, 5]);
    assert_eq!((counters.audit_records.get(), audit.trouble()), (5, None));
}

/// As it is left by a controller that was killed while it wrote.
#[tokio::test]
async fn a_line_that_was_cut_off_before_is_ended_and_the_next_record_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    for required in [false, true] {
        fs::write(&path, "{\"version\":\"v1\",\"at\":\"2026").unwrap();
        let (audit, _) = start(path.to_str().unwrap(), required);
        audit.record(event(1)).await.unwrap();
        audit.finish().await;
        let text = fs::read_to_string(&path).unwrap();
        let (torn, whole) = text.split_once('\n').unwrap();
        assert_eq!(torn, "{\"version\":\"v1\",\"at\":\"2026");
        let record: Record = serde_json::from_str(whole).unwrap();
        assert_eq!(record.event, event(1));
    }
    // What ends as it should gets no empty line, and a file without a line none either.
    for before in ["{}\n", ""] {
        fs::write(&path, before).unwrap();
        let (audit, _) = start(path.to_str().unwrap(), true);
        audit.record(event(1)).await.unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("{before}{{")), "{text}");
    }
}

#[tokio::test]
async fn what_a_full_disk_does_not_take_is_counted_and_nobody_waits() {
    let (audit, counters) = start("/dev/full", false);
    audit.tell(|| event(1));
    until("the loss", || counters.audit_dropped.get() == 1).await;
    until("the report", || counters.audit_failing.get() == 1).await;
    let why = audit.trouble().unwrap();
    assert!(why.contains("No space left"), "{why}");
    assert_eq!(audit.obstacle(), None);
    // Only a caller that asks for it gets the error.
    assert_eq!(audit.record(event(2)).await, Err(why.clone()));
    let (required, _) = start("/dev/full", true);
    assert_eq!(required.record(event(1)).await, Err(why.clone()));
    assert_eq!(required.obstacle(), Some(why));
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_reported_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later").join("audit.log");
    let (audit, counters) = start(path.to_str().unwrap(), true);
    until("the report", || audit.obstacle().is_some()).await;
    assert!(
        audit
            .record(event(1))
            .await
            .unwrap_err()
            .contains("No such file")
    );
    fs::create_dir(path.parent().unwrap()).unwrap();
    until("the file", || audit.obstacle().is_none()).await;
    assert_eq!(counters.audit_failing.get(), 0);
    audit.record(event(7)).await.unwrap();
    // A line says how many are missing.
    assert_eq!(numbers(&path), [1, 7]);
}

#[tokio::test]
async fn a_pipe_that_nobody_reads_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let (audit, counters) = start(path.to_str().unwrap(), true);
    let began = Instant::now();
    let many = WAITING as u64 + 10;
    (0..many).for_each(|n| audit.tell(|| event(n)));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert!(
        counters.audit_dropped.get() >= 9,
        "{}",
        counters.audit_dropped.get()
    );
    let crowded = || {
        audit
            .obstacle()
            .is_some_and(|why| why.contains("wait to be written"))
    };
    assert!(crowded());
    assert!(audit.record(event(0)).await.is_err());
    // Each batch that is written makes room, and many wait still.
    let (read, reads) = std::sync::mpsc::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for (n, _) in BufReader::new(fs::File::open(path).unwrap())
            .lines()
            .enumerate()
        {
            if n == 400 {
                read.send(()).unwrap();
                goes_on.recv().unwrap();
            }
        }
    });
    reads.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(crowded());
    assert_eq!(counters.audit_failing.get(), 1);
    go_on.send(()).unwrap();
    until("all is read", || audit.obstacle().is_none()).await;
    assert_eq!(counters.audit_failing.get(), 0);
}

#[test]
fn what_comes_and_goes_is_logged_once_a_minute() {
    let noon: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
    let mut trouble = Trouble::default();
    assert!(!trouble.ends(), "nothing was wrong");
    assert!(trouble.begins("full", noon));
    assert!(trouble.ends());
    for second in 1..60 {
        let now = noon + SignedDuration::from_secs(second);
        assert!(!trouble.begins("full", now) && !trouble.begins("crowded", now));
        assert_eq!(trouble.why.as_deref(), Some("crowded"));
        assert!(!trouble.ends());
    }
    assert!(trouble.begins("full", noon + LOG_AGAIN));
    assert!(!trouble.begins("full", noon + LOG_AGAIN * 3), "it goes on");
    assert!(trouble.begins("crowded", noon), "the clock was set back");
    assert!(trouble.ends());
}

/// The same test once more, in a process whose standard output cannot be written.
#[tokio::test]
async fn standard_output_that_cannot_be_written_is_reported() {
    const CHILD: &str = "SLUICE_TEST_CLOSED_OUTPUT";
    if std::env::var_os(CHILD).is_some() {
        let (audit, _) = start("-", true);
        let why = audit.record(event(1)).await.unwrap_err();
        assert!(why.contains("Bad file descriptor"), "{why}");
        return;
    }
    let name = "audit::tests::standard_output_that_cannot_be_written_is_reported";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "")
        .stdout(fs::File::open("/dev/null").unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{told}");
}

#[tokio::test]
async fn anyone_who_must_know_waits_so_long_for_a_disk_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let (audit, _) = start(path.to_str().unwrap(), true);
    let why = audit.record(event(1)).await.unwrap_err();
    assert!(why.contains("nothing was written within"), "{why}");
    assert_eq!(audit.obstacle(), Some(why));
    // That yes was not given: it must not be written when somebody reads at last.
    audit.tell(|| event(2));
    let (read, reads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let first = BufReader::new(fs::File::open(path).unwrap()).lines().next();
        read.send(first.unwrap().unwrap()).unwrap();
    });
    let first = reads.recv_timeout(Duration::from_secs(20)).unwrap();
    let first: Record = serde_json::from_str(&first).unwrap();
    assert_eq!(first.event, event(2));
}

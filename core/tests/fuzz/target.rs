//! One thing to fuzz.
//!
//! What comes in: a language, and a property of its texts. What goes out: a panic that shows the
//! smallest text found that breaks it.

use std::env;
use std::fmt::Debug;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::RefUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bolero::{TypeGenerator, ValueGenerator, produce};

use super::text::{Edit, edited};

/// The most edits that a text of the corpus goes through.
const MOST_EDITS: usize = 4;

/// The longest that reading a text may take, with all that is asked about it: far more than it
/// does on a machine with other work, far less than without bounds.
const LONGEST: Duration = Duration::from_secs(20);

/// Names a folder: each text is written there before it is read, for those that end the process or
/// never come to an end.
const LAST: &str = "SLUICE_FUZZ_LAST";

/// Something that reads texts.
pub struct Target {
    /// Its name, which is also that of the folder of its corpus.
    pub name: &'static str,
    /// What stands in its texts. Any of them is put anywhere.
    pub words: &'static [&'static str],
    /// How many texts `cargo test` tries: what takes about a second.
    pub texts: usize,
}

/// A text, and whatever else the property asks for: an instant, a zone.
#[derive(Debug)]
struct Input<E> {
    text: String,
    extra: E,
}

impl Target {
    /// Checks a property of every text of the corpus, and of many near them. It says of a text
    /// whether it was understood.
    ///
    /// Bolero's variables change how many: `BOLERO_RANDOM_ITERATIONS`,
    /// `BOLERO_RANDOM_TEST_TIME_MS`, `BOLERO_RANDOM_SEED`.
    pub fn check<E>(&self, property: fn(&str, &E) -> bool)
    where
        E: Debug + Default + TypeGenerator + RefUnwindSafe + 'static,
    {
        let corpus = self.corpus();
        for text in &corpus {
            property(text, &E::default());
        }
        let edits = produce::<Vec<Edit>>().with().len(0..=MOST_EDITS);
        let words = self.words;
        let texts = (produce::<usize>(), edits, produce::<E>());
        let inputs = texts.map_gen(move |(seed, edits, extra)| Input {
            text: edited(&corpus, seed, &edits, words),
            extra,
        });
        let last = env::var_os(LAST).map(|folder| {
            let file = PathBuf::from(folder).join(self.name);
            File::create(file).unwrap()
        });
        let tally = Tally::default();
        bolero::check!(name = self.name)
            .with_iterations(self.texts)
            .with_generator(inputs)
            .for_each(|input| {
                if let Some(last) = &last {
                    // Over the one before, which may have been longer: to empty the file each time
                    // takes longer than most texts.
                    let text = format!("{input:#?}\n(This is all. What follows is older.)\n");
                    last.write_all_at(text.as_bytes(), 0).unwrap();
                }
                tally.count(&input.text, || property(&input.text, &input.extra));
            });
        tally.sum_up(self.name);
    }

    /// The texts of the corpus, by name, so that a seed means the same every time.
    fn corpus(&self) -> Vec<String> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
        let folder = fs::read_dir(corpus.join(self.name)).unwrap();
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
        texts
            .map(|text| text.trim_end_matches('\n').to_owned())
            .collect()
    }
}

/// What became of the texts.
#[derive(Default)]
struct Tally {
    tried: AtomicUsize,
    understood: AtomicUsize,
    slowest: Mutex<(Duration, String)>,
}

impl Tally {
    fn count(&self, text: &str, read: impl FnOnce() -> bool) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        if read() {
            self.understood.fetch_add(1, Ordering::Relaxed);
        }
        let took = start.elapsed();
        assert!(took < LONGEST, "it took {took:?}");
        let mut slowest = self.slowest.lock().unwrap();
        if took > slowest.0 {
            *slowest = (took, text.to_owned());
        }
    }

    /// Texts of which nearly none is understood would show nothing but how nonsense is refused.
    fn sum_up(self, name: &str) {
        let (tried, understood) = (self.tried.into_inner(), self.understood.into_inner());
        let share = 100 * understood / tried.max(1);
        let (took, slowest) = self.slowest.into_inner().unwrap();
        let slowest: String = slowest.chars().take(200).collect();
        eprintln!("{name}: {tried} texts, {share}% understood; {took:?} for {slowest:?}");
        assert!(
            tried < 100 || share >= 5,
            "{name}: of {tried} texts {understood} were understood: mend the corpus and the words"
        );
    }
}

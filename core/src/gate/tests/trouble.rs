//! What a gate and its gatekeeper say of trouble with what is measured: the remedy of now, not one
//! that was carried out long ago.

use super::*;
use crate::evidence::polling::Trouble;
use crate::gatekeeper::metric::{self, Answer as Measured, Observed};

const SPEC: &str =
    "{metric: {address: 'https://prometheus.example.com', query: up, range: {min: 0.5}}}";

const GRANT: &str = "may not get secrets in namespace apps: grant get on the Secret s";
const REFUSED: &str = "https://prometheus.example.com: connection refused";

/// A gate that is kept by a metric, and what was measured.
struct Story {
    scene: Scene,
    observed: Option<Observed>,
    minute: i64,
}

impl Story {
    fn new() -> Self {
        Self {
            scene: Scene::new(gate("{gatekeepers: [{name: up}]}", &[]), vec![]),
            observed: None,
            minute: 0,
        }
    }

    /// A minute later this is what the query returns. Whether the gatekeeper and the gate are
    /// written, and the words of both.
    fn returns(&mut self, answer: Result<&str, &str>) -> [(bool, String); 2] {
        let at = at(FRIDAY_10) + jiff::SignedDuration::from_mins(self.minute);
        self.minute += 1;
        let object = self
            .scene
            .keepers
            .pop()
            .map(|keeper| Gatekeeper::clone(keeper.object()));
        let mut object = object.unwrap_or_else(|| gatekeeper("up", SPEC));
        object.metadata.generation = Some(1);
        let rule = metric::read(object.spec.metric.as_ref().unwrap(), "spec.metric").unwrap();
        let answer = answer
            .map(|number| Measured::of(number).unwrap())
            .map_err(|why| Trouble::Unavailable(why.to_owned()));
        let observed = Observed::next(self.observed.take(), answer, &rule, at);
        self.observed = Some(observed.clone());

        let keeper = Keeper::new(Arc::new(object.clone()), Evidence::of(observed.clone()), at);
        let said = crate::gatekeeper::report(&keeper, Now::given(at));
        object.status = Some(said.status.clone());
        let verdict = said.status.verdict.unwrap();
        self.scene.keepers = vec![Keeper::new(Arc::new(object), Evidence::of(observed), at)];
        let report = self.scene.report(Now::given(at));
        let message = report.status.message.clone().unwrap();
        let told = [(said.changed, verdict.message), (report.changed, message)];
        self.scene.write(report);
        told
    }

    /// Both are written again, and this is the trouble that they tell. None: there is none.
    fn tells(&mut self, answer: Result<&str, &str>, trouble: Option<&str>) {
        for (changed, words) in self.returns(answer) {
            assert!(changed, "{words}");
            for why in [GRANT, REFUSED] {
                assert_eq!(words.contains(why), trouble == Some(why), "{words}");
            }
        }
    }

    /// Neither says anything else.
    fn stays(&mut self, answer: Result<&str, &str>) {
        for (changed, words) in self.returns(answer) {
            assert!(!changed, "{words}");
        }
    }
}

#[test]
fn another_trouble_is_news_and_the_same_is_not() {
    let mut story = Story::new();
    story.tells(Err(GRANT), Some(GRANT));
    story.stays(Err(GRANT));
    story.tells(Err(REFUSED), Some(REFUSED));
    story.stays(Err(REFUSED));
    story.tells(Ok("1"), None);
}

/// As long as the last answer counts, the trouble stands beside it.
#[test]
fn trouble_beside_a_value_comes_and_goes() {
    let mut story = Story::new();
    story.tells(Ok("0.9"), None);
    story.stays(Ok("0.8"));
    story.tells(Err(GRANT), Some(GRANT));
    story.stays(Err(GRANT));
    story.tells(Ok("0.7"), None);
    story.stays(Ok("0.6"));
}

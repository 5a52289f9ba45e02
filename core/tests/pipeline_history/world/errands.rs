//! The errands of the leaders: how they end, and what the receiver of a notification does.

use sluice_core::delivery::pipeline::{Errand, Outcome};

use super::World;

impl World {
    /// An errand of a leader ends: with or without an effect, and with or without an answer.
    pub(super) fn run_errand(&mut self, leader: usize, how: u8) -> Result<(), String> {
        let is_under_way = |(_, outcome): &(&Errand, &Outcome)| **outcome == Outcome::UnderWay;
        let found = self.leaders[leader].iter().find(is_under_way);
        let Some((errand, _)) = found.map(|(errand, outcome)| (errand.clone(), outcome)) else {
            return Ok(());
        };
        let failed = Outcome::Failed {
            why: "no answer".to_owned(),
            not_before: None,
        };
        let outcome = match &errand {
            Errand::Recall(environment, _) => match how < 200 {
                true => Some(Outcome::Recalled(self.forge.recall(environment))),
                false => None,
            },
            Errand::Try(key, _) => match how {
                0..32 => Some(failed),
                // Somebody acts on it, and the answer is lost.
                32..64 => {
                    self.hear(key)?;
                    None
                }
                // Nobody listens.
                64..96 => Some(Outcome::Done),
                _ => {
                    self.hear(key)?;
                    Some(Outcome::Done)
                }
            },
        };
        match outcome {
            Some(outcome) => drop(self.leaders[leader].insert(errand, outcome)),
            None => drop(self.leaders[leader].remove(&errand)),
        }
        Ok(())
    }

    /// The receiver of a notification acts on it.
    fn hear(&mut self, key: &str) -> Result<(), String> {
        let of = self
            .sent
            .keys()
            .find(|(_, text)| text.starts_with(key))
            .cloned();
        let Some((environment, text)) = of else {
            return Err(format!("{key} was never sent"));
        };
        let (_, revision) = text.split_once(' ').unwrap();
        self.forge
            .base
            .insert(environment.clone(), revision.to_owned());
        *self.sent.get_mut(&(environment, text)).unwrap() += 1;
        Ok(())
    }
}

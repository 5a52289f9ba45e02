//! The errands of the leaders: how they end, and what those do who are told of a promotion.

use sluice_core::delivery::pipeline::{Errand, Outcome};

use super::World;
use super::setup::NAMES;

/// A notification, or a report, that was begun.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) environment: String,
    pub(super) revision: String,
    /// It is for a gatekeeper.
    pub(super) is_report: bool,
    /// How often it was sent.
    pub(super) sent: u32,
    /// How often a process was killed that had begun it, or did not learn what came of it.
    pub(super) lost: u32,
}

impl World {
    /// A leader begins to send something. That it is to be sent has to be in a status that was accepted.
    pub(super) fn begin(
        &mut self,
        leader: usize,
        errand: Errand,
        new: Sending,
    ) -> Result<(), String> {
        if let Errand::Try(key, _) = &errand
            && !self.intents.contains(key)
        {
            return Err(format!("begun before the status was accepted: {new:?}"));
        }
        let known = self.leaders[leader].entry(errand.clone());
        known.or_insert(Outcome::UnderWay);
        self.sendings.entry(errand).or_insert(new);
        Ok(())
    }

    /// A leader is killed, and knows of nothing that it has begun.
    pub(super) fn crash(&mut self, leader: usize) {
        for errand in std::mem::take(&mut self.leaders[leader]).into_keys() {
            if let Some(sending) = self.sendings.get_mut(&errand) {
                sending.lost += 1;
            }
        }
    }

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
            Errand::Try(..) => match how {
                0..32 => Some(failed),
                // It has an effect, and the answer is lost.
                32..64 => {
                    self.send(&errand, true, true)?;
                    None
                }
                // Nobody listens.
                64..96 => {
                    self.send(&errand, false, false)?;
                    Some(Outcome::Done)
                }
                _ => {
                    self.send(&errand, true, false)?;
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

    /// It is sent. The same is sent again only if it was lost, or by the other leader.
    fn send(&mut self, errand: &Errand, is_heard: bool, is_lost: bool) -> Result<(), String> {
        let Some(sending) = self.sendings.get_mut(errand) else {
            return Err(format!("{errand:?} was never begun"));
        };
        sending.sent += 1;
        if !self.setup.wipes && sending.sent > 2 + sending.lost {
            return Err(format!("sent again and again: {sending:?}"));
        }
        sending.lost += u32::from(is_lost);
        let Sending {
            environment,
            revision,
            is_report,
            ..
        } = sending.clone();
        if is_report {
            let place = NAMES.iter().position(|name| **name == environment);
            self.change(|present| present.reports[place.unwrap_or_default()] = Some(revision));
        } else if is_heard {
            self.forge.base.insert(environment, revision);
        }
        Ok(())
    }
}

//! What gatekeepers that measure something see where nothing is measured: somebody states what it would
//! be.
//!
//! What comes in: [`Given`], as it is written in a file. What goes out: a [`World`] in which the
//! gatekeeper has seen just that, from the first instant of the simulation to the last.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::ExternalReport;

use super::{Key, World};
use crate::gatekeeper::{Course, Given, GivenReport};

impl World {
    /// From `start` on the gatekeeper of that name sees what is given.
    ///
    /// # Errors
    /// There is no such gatekeeper; it is of a kind that sees something else, or nothing.
    pub fn give(&mut self, key: &Key, given: Given, start: Timestamp) -> Result<(), String> {
        let Some(object) = self.gatekeepers.get_mut(key) else {
            let known: Vec<String> = self.gatekeepers.keys().map(Key::to_string).collect();
            return Err(format!(
                "there is no such gatekeeper; there are {}",
                known.join(", ")
            ));
        };
        if let Some(report) = given.report()? {
            return self::report(Arc::make_mut(object), report);
        }
        let namespace = &key.namespace;
        let evidence = given.evidence(object, &Course { namespace, start })?;
        self.given.insert(key.clone(), evidence);
        Ok(())
    }
}

/// Writes a report into the status of a gatekeeper, as one of its writers would.
fn report(gatekeeper: &mut Gatekeeper, report: GivenReport) -> Result<(), String> {
    let Some(external) = &gatekeeper.spec.external else {
        return Err("report: only a gatekeeper of the kind external has reports".to_owned());
    };
    let by = external.writers.first().cloned().unwrap_or_default();
    // The API server has yet to count its generations.
    let generation = *gatekeeper.metadata.generation.get_or_insert(1);
    let written = ExternalReport {
        state: report.state,
        revisions: report.revisions,
        reason: report.reason,
        expires_at: Time(report.expires_at.unwrap_or(FAR)),
        for_generation: generation,
        by,
    };
    gatekeeper.status.get_or_insert_default().report = Some(Box::new(written));
    Ok(())
}

/// The latest instant that the definition of a report admits.
const FAR: Timestamp = Timestamp::constant(253_402_127_999, 0);

#[cfg(test)]
mod tests;

//! Decisions at the instant, from the caches of a controller that stands by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gate_controller::clock::{Clock, SystemClock};
use gate_controller::{Controller, Settings, start};
use jiff::Timestamp;
use kube::Client;
use sluice_crds::State;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::NAMESPACE;

/// A controller in this process that fills its caches and never writes.
pub(super) struct Standby {
    controller: Controller,
    _shutdown: DropGuard,
}

/// How long decisions took, in seconds.
pub(super) struct Decisions {
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// From the instant until the last gate was decided.
    pub(super) all: f64,
}

impl Standby {
    pub(super) async fn start(client: &Client) -> Result<Self> {
        let namespace = format!("--runtime-namespace={NAMESPACE}");
        let settings = Settings::try_parse_from([
            "gate-controller",
            "--metrics-addr=0",
            "--health-addr=0",
            "--trust-unverified-identity",
            "--standby",
            "--watch-all-namespaces=false",
            &namespace,
        ])?;
        let shutdown = CancellationToken::new();
        let controller = start(
            settings,
            client.clone(),
            Arc::new(SystemClock),
            shutdown.clone(),
        )
        .await?;
        let synced = tokio::time::timeout(Duration::from_secs(60), controller.world.synced());
        synced.await.context("the standby's caches do not sync")?;
        Ok(Self {
            controller,
            _shutdown: shutdown.drop_guard(),
        })
    }

    /// Decides every gate as soon as the instant has come.
    pub(super) async fn decide_all_at(&self, instant: Timestamp) -> Result<Decisions> {
        let world = &self.controller.world;
        let gates = world.gates.objects();
        // Once before, as any consumer would have.
        for gate in &gates {
            let answer = world.answer(gate, SystemClock.now());
            ensure!(
                answer.state == State::Closed,
                "a gate is open before its instant"
            );
        }
        while SystemClock.now() < instant {
            SystemClock.wait_until(instant).await;
        }
        let mut took = Vec::with_capacity(gates.len());
        for gate in &gates {
            let began = Instant::now();
            let answer = world.answer(gate, SystemClock.now());
            took.push(began.elapsed().as_secs_f64());
            ensure!(
                answer.state == State::Open,
                "a gate is closed at its instant"
            );
        }
        let all = SystemClock.now().duration_since(instant).as_secs_f64();
        took.sort_by(f64::total_cmp);
        let at = |percent: usize| took[(took.len() - 1) * percent / 100];
        Ok(Decisions {
            p50: at(50),
            p99: at(99),
            all,
        })
    }
}

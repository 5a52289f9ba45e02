//! A controller that stands by, in this process: what it decides from its caches, and whom it answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use gate_controller::observe::clock::{Clock, SystemClock};
use gate_controller::{Controller, Settings, start};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use sluice_crds::State;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ordered::Ordered;

/// A controller in this process that fills its caches and never writes.
pub(super) struct Standby {
    controller: Controller,
    _shutdown: DropGuard,
}

/// How long decisions took, in seconds.
pub(super) struct Decisions {
    pub(super) each: Ordered,
    /// From the instant until the last gate was decided.
    pub(super) all: f64,
}

impl Standby {
    pub(super) async fn start(client: &Client, namespace: &str, flags: &[&str]) -> Result<Self> {
        let namespace = format!("--runtime-namespace={namespace}");
        let common = [
            "gate-controller",
            "--metrics-addr=0",
            "--health-addr=0",
            "--trust-unverified-identity",
            "--standby",
            "--watch-all-namespaces=false",
            &namespace,
        ];
        let settings = Settings::try_parse_from([&common, flags].concat())?;
        let shutdown = CancellationToken::new();
        let controller = start(
            settings,
            client.clone(),
            Arc::new(SystemClock),
            shutdown.clone(),
        )
        .await?;
        let synced = async {
            controller.world.synced().await;
            controller.world.policies.synced().await;
            controller.world.namespaces.synced().await;
        };
        let synced = tokio::time::timeout(Duration::from_secs(60), synced);
        synced.await.context("the standby's caches do not sync")?;
        Ok(Self {
            controller,
            _shutdown: shutdown.drop_guard(),
        })
    }

    /// Where it answers those who ask, if a flag has it do so.
    pub(super) fn check(&self) -> Option<SocketAddr> {
        self.controller.check
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
        Ok(Decisions {
            each: Ordered::new(took),
            all,
        })
    }

    /// Decides so many times, by turns, every gate whose name begins so, one after the other.
    pub(super) fn decide(&self, prefix: &str, times: usize) -> Ordered {
        let world = &self.controller.world;
        let gates: Vec<_> = (world.gates.objects().into_iter())
            .filter(|gate| gate.name_any().starts_with(prefix))
            .collect();
        let mut took = Vec::with_capacity(times * gates.len());
        for _ in 0..times {
            for gate in &gates {
                let began = Instant::now();
                std::hint::black_box(world.answer(gate, SystemClock.now()));
                took.push(began.elapsed().as_secs_f64());
            }
        }
        Ordered::new(took)
    }
}

//! What the controller serves, and where.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use axum::Router;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Parts;
use super::settings::Settings;
use crate::act::reconcile::git_repository_access::concerns_us;
use crate::serve;
use crate::serve::approval::Approving;
use crate::serve::asking::Asking;
use crate::serve::auth::{Kept, Reviews};
use crate::serve::decider::Decider;
use crate::serve::hooks::Hooks;
use crate::serve::limit::Rate;
use crate::serve::tls::{Certificates, LOOK_AGAIN};
use crate::tell::metrics::Sources;

/// Serves metrics and health at the addresses of the settings. Says where: port 0 is any that is
/// free.
pub(super) async fn serve(
    parts: &Parts,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Option<SocketAddr>, Option<SocketAddr>)> {
    let metrics = serve_one(
        "--metrics-addr",
        parts.settings.metrics_addr.0,
        shutdown,
        || serve::metrics(parts.counters.registry(sources(parts))),
    );
    let health = serve_one(
        "--health-addr",
        parts.settings.health_addr.0,
        shutdown,
        || {
            let world = Arc::clone(&parts.world);
            let audit = parts.audit.clone();
            serve::health(move || {
                if !world.is_ready() {
                    return Err("the caches have not synced yet".to_owned());
                }
                if let Some(why) = world.silence() {
                    return Err(why);
                }
                match audit.obstacle() {
                    None => Ok(()),
                    Some(why) => Err(format!("the audit log cannot be written: {why}")),
                }
            })
        },
    );
    let (metrics, health) = (metrics.await?, health.await?);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        metrics = metrics.map(tracing::field::display),
        health = health.map(tracing::field::display),
        "starting"
    );
    Ok((metrics, health))
}

fn sources(parts: &Parts) -> Sources {
    let (load, leading) = (parts.load(), parts.load());
    Sources {
        world: Arc::clone(&parts.world),
        decisions: Arc::clone(&parts.decisions),
        clock: Arc::clone(&parts.clock),
        backlog: Box::new(move || load.backlog()),
        leads: Box::new(move || leading.leads()),
    }
}

async fn serve_one(
    flag: &str,
    address: Option<SocketAddr>,
    shutdown: &CancellationToken,
    router: impl FnOnce() -> Router,
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = serve::serve(address, router(), shutdown.clone()).await;
    let bound = bound.with_context(|| format!("{flag}: cannot listen at {address}"))?;
    Ok(Some(bound))
}

/// Serves those who ask, at the address of the settings if there is one, until `shutdown`. What is
/// under way then belongs to `tasks`.
pub(super) async fn serve_check(
    parts: &Parts,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<SocketAddr>> {
    let settings = &parts.settings;
    let Some(address) = settings.check_addr.0 else {
        return Ok(None);
    };
    let certificates = certificates(settings, address).await?;
    let audiences = settings.check_audience.clone();
    let decider = Decider {
        world: Arc::clone(&parts.world),
        clock: Arc::clone(&parts.clock),
    };
    let asking = Asking::new(
        Arc::new(decider),
        Arc::clone(&parts.decisions),
        Reviews::new(parts.client.clone(), audiences, Kept::default()),
        Rate {
            rate: NonZeroU32::new(settings.check_rate).unwrap_or(NonZeroU32::MIN),
            burst: NonZeroU32::new(settings.check_burst).unwrap_or(NonZeroU32::MIN),
        },
        settings.flagger_without_token,
    );
    let world = Arc::clone(&parts.world);
    let approving = Approving::new(
        parts.client.clone(),
        Arc::clone(&parts.world),
        Arc::clone(&parts.clock),
        move || world.is_ready(),
    );
    let router = asking.router(approving);
    let served = serve::server::serve(
        address,
        router,
        certificates.clone(),
        tasks,
        shutdown.clone(),
    );
    let bound = served
        .await
        .with_context(|| format!("--check-addr: cannot listen at {address}"))?;
    let tls = certificates.is_some();
    tracing::info!(address = %bound, tls, "answering those who ask");
    if let Some(certificates) = certificates {
        let shutdown = shutdown.clone();
        tasks.spawn(async move {
            let following = certificates.follow(LOOK_AGAIN);
            shutdown.run_until_cancelled(following).await;
        });
    }
    Ok(Some(bound))
}

/// Takes webhooks of forges, at the address of the settings if there is one, until `shutdown`.
pub(super) async fn serve_hooks(
    parts: &Parts,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(address) = parts.settings.webhook_addr.0 else {
        return Ok(None);
    };
    let (load, world) = (parts.load(), Arc::clone(&parts.world));
    let context = Arc::clone(&parts.context);
    let concerned = Arc::clone(&context);
    let hooks = Hooks::new(
        parts.client.clone(),
        Arc::clone(&parts.world),
        Arc::clone(&parts.clock),
        move || load.leads() && world.accesses.is_synced(),
        move |access| concerns_us(&concerned, access),
        move |access| {
            context.repositories.list_now(access);
            context.at_forges.look_now_by(&context, access);
        },
    );
    let served = serve::server::serve(address, hooks.router(), None, tasks, shutdown.clone()).await;
    let bound = served.with_context(|| format!("--webhook-addr: cannot listen at {address}"))?;
    tracing::info!(address = %bound, "taking webhooks of forges");
    Ok(Some(bound))
}

/// The certificates of the settings. Without any, only this machine may ask, unless the operator
/// says otherwise.
async fn certificates(
    settings: &Settings,
    address: SocketAddr,
) -> anyhow::Result<Option<Arc<Certificates>>> {
    if let (Some(certificate), Some(key)) = (&settings.tls_cert_file, &settings.tls_key_file) {
        let read = Certificates::read(certificate.clone(), key.clone()).await;
        let read = read.context("--tls-cert-file, --tls-key-file")?;
        return Ok(Some(Arc::new(read)));
    }
    ensure!(
        address.ip().is_loopback() || settings.check_insecure,
        "--check-addr: {address} can be reached by others, and tokens would pass in plain text; \
         give --tls-cert-file and --tls-key-file, or listen at 127.0.0.1, or, where something in \
         front of it encrypts, give --check-insecure"
    );
    Ok(None)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    async fn tls(flags: &[&str]) -> Result<bool, String> {
        let settings = Settings::try_parse_from([&["gate-controller"], flags].concat()).unwrap();
        let address = settings.check_addr.0.unwrap();
        let certificates = certificates(&settings, address).await;
        certificates
            .map(|certificates| certificates.is_some())
            .map_err(|why| format!("{why:#}"))
    }

    #[tokio::test]
    async fn tokens_pass_in_plain_text_only_where_nobody_else_hears_them() {
        assert_eq!(tls(&["--check-addr=127.0.0.1:0"]).await, Ok(false));
        assert_eq!(tls(&["--check-addr=[::1]:0"]).await, Ok(false));
        let refused = tls(&["--check-addr=:8443"]).await.unwrap_err();
        assert!(
            refused.contains("0.0.0.0:8443 can be reached by others"),
            "{refused}"
        );
        let insecure = ["--check-addr=:8443", "--check-insecure"];
        assert_eq!(tls(&insecure).await, Ok(false));
    }

    #[tokio::test]
    async fn certificates_that_cannot_be_read_are_refused_at_start() {
        let flags = [
            "--check-addr=127.0.0.1:0",
            "--tls-cert-file=no/such.crt",
            "--tls-key-file=no/such.key",
        ];
        let refused = tls(&flags).await.unwrap_err();
        assert!(
            refused.starts_with("--tls-cert-file, --tls-key-file: no/such.crt: No such file"),
            "{refused}"
        );
    }
}

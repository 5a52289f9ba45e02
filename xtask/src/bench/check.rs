//! `cargo xtask bench check`: how fast questions over HTTP are answered.
//!
//! In one run, by one client with connections that it keeps: the controller's service, with tokens,
//! rights and a gate of a real API server, and a bare axum handler that returns the bytes of one of
//! its answers. First so many questions a second, each counted from the instant at which it was due;
//! then as many as the machine answers. The client has one thread, and shares the machine with the
//! servers. Without TLS.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use clap::Args;
use kube::Client;
use sluice_tests::progress::{Progress, Stderr};
use sluice_tests::{Options, poll};
use tokio::net::TcpListener;

use crate::server::Server;

mod client;
mod service;

use client::{Load, Times};
use service::Service;

/// Where the gate lives.
const NAMESPACE: &str = "sluice-check";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: Server,
    /// How many questions a second.
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// For how many seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Over how many connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let open = arguments.server.open(Options::default()).await?;
    let client = open.cluster.client().await?;
    let measuring = measure(&arguments, &client);
    if let Some(table) = super::measure_in(&open, &client, NAMESPACE, measuring).await? {
        print!("{table}");
    }
    Ok(())
}

async fn measure(arguments: &Arguments, client: &Client) -> Result<String> {
    let progress = Stderr::new();
    let service = Service::start(client).await?;
    let request = service.request();
    let body = first(service.address, &request).await?;
    let bare = bare(body.clone()).await?;

    let paced = Load {
        rate: Some(arguments.rate),
        lasts: Duration::from_secs(arguments.seconds),
        connections: arguments.connections,
    };
    let flat_out = Load {
        rate: None,
        lasts: Duration::from_secs(arguments.seconds.div_ceil(2)),
        ..paced
    };
    let mut rows = Vec::new();
    for load in [paced, flat_out] {
        for (name, address) in [("bare handler", bare), ("controller", service.address)] {
            // Warm, and then for the record.
            let warm = Load {
                lasts: Duration::from_secs(1),
                ..load
            };
            client::run(address, &request, warm).await?;
            let times = client::run(address, &request, load).await?;
            progress.say(&format!("{name}: {:.0} answers a second", times.rate()));
            rows.push(times);
        }
    }
    table(arguments, body.len(), &rows)
}

/// The first answer, as soon as the right to it is there. Refusals are kept for ten seconds.
async fn first(address: SocketAddr, request: &Bytes) -> Result<Bytes> {
    let deadline = Duration::from_secs(30);
    poll(deadline, "the first answer", async || {
        client::once(address, request).await
    })
    .await
}

/// A handler that does nothing but return these bytes.
async fn bare(body: Bytes) -> Result<SocketAddr> {
    let answer = move || {
        let body = body.clone();
        async move { ([(CONTENT_TYPE, "application/json")], body) }
    };
    let router = Router::new().route("/v1/check", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

fn table(arguments: &Arguments, bytes: usize, rows: &[Times]) -> Result<String> {
    let [bare, ours, bare_most, ours_most] = rows else {
        bail!("{} rows", rows.len());
    };
    let line = |what: &str, bare: String, ours: String, ratio: f64| {
        format!("| {what} | {bare} | {ours} | {ratio:.2} |\n")
    };
    let duration = |what: &str, part: f64| {
        let (bare, ours) = (bare.each.at(part), ours.each.at(part));
        let [shown_bare, shown_ours] =
            [bare, ours].map(|length| format!("{:.0?}", Duration::from_secs_f64(length)));
        line(what, shown_bare, shown_ours, ours / bare)
    };
    let rate = |what: &str, bare: &Times, ours: &Times| {
        let (bare, ours) = (bare.rate(), ours.rate());
        line(
            what,
            format!("{bare:.0}/s"),
            format!("{ours:.0}/s"),
            ours / bare,
        )
    };
    let Arguments {
        rate: due,
        seconds,
        connections,
        server: _,
    } = arguments;
    let mut table = format!(
        "\n{due} checks a second for {seconds} s over {connections} connections, {bytes} bytes each\n\n\
         | | bare axum handler | /v1/check | ratio |\n|---|---|---|---|\n"
    );
    table += &rate("answered", bare, ours);
    table += &duration("p50", 0.5);
    table += &duration("p99", 0.99);
    table += &duration("last", 1.0);
    table += &rate("as many as the machine answers", bare_most, ours_most);
    Ok(table)
}

//! The log.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::controller::settings::{LogEncoding, LogLevel, Settings};

/// Has everything logged as the flags say, to standard error as Flux does.
pub fn start(settings: &Settings) {
    let level = match settings.log_level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Error => LevelFilter::ERROR,
    };
    // What libraries say below a warning is of use to those who ask for everything.
    let libraries = match settings.log_level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug | LogLevel::Info => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let requests = match settings.log_level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug | LogLevel::Info | LogLevel::Error => LevelFilter::OFF,
    };
    let filter = tracing_subscriber::filter::Targets::new()
        .with_default(libraries)
        // It logs each failed try. Our own watch reports that too, and says what to do.
        .with_target("kube_runtime::watcher", libraries.min(LevelFilter::ERROR))
        // It writes the whole text of an answer that it cannot read.
        .with_target("kube_client::client", libraries.min(LevelFilter::ERROR))
        // It logs each request that fails. The caller logs that too, and says what to do.
        .with_target("kube_client::client::builder", requests)
        .with_target("gate_controller", level)
        .with_target("sluice_egress", level)
        .with_target("sluice_gatekeepers", level)
        .with_target("decision", level)
        .with_target("definition", level);
    let registry = tracing_subscriber::registry().with(filter);
    match settings.log_encoding {
        LogEncoding::Json => {
            let json = fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(false);
            registry.with(json.with_writer(std::io::stderr)).init();
        }
        LogEncoding::Console => registry
            .with(fmt::layer().with_writer(std::io::stderr))
            .init(),
    }
}

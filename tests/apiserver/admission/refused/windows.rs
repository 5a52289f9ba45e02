//! Mistakes in the windows of a schedule.

use anyhow::Result;

use super::{Judge, Mistake};

/// Mistakes in one window, which is put under `open`.
#[rustfmt::skip]
const WINDOWS: &[Mistake] = &[
    ("{}", "", "given in exactly one way; write cron, or from and until, or calendar", "="),
    ("{name: a}", "", "given in exactly one way", "="),
    ("{cron: null, from: null, until: null, calendar: null}", "", "given in exactly one way", "="),
    ("{cron: '* * * * *', from: 2026-12-19T00:00:00, until: 2026-12-20T00:00:00}", "", "exactly one way", "="),
    ("{cron: '* * * * *', calendar: {url: 'https://example.com/'}}", "", "exactly one way", "="),
    ("{cron: ''}", ".cron", "at least 1 chars long", "="),
    ("{from: 2026-12-19T00:00:00}", "", "from and until belong together; write both", "="),
    ("{until: 2026-12-19T00:00:00}", "", "from and until belong together", "="),
    ("{from: 2026-12-20T00:00:00, until: 2026-12-19T00:00:00}", ".until", "must be later than from", "="),
    ("{from: 2026-12-20T00:00:00, until: 2026-12-20T00:00:00}", ".until", "must be later than from", "="),
    ("{from: 2026-12-19, until: 2026-12-20T00:00:00}", ".from", "should match", "="),
    ("{from: '2026-12-19T00:00:00Z', until: 2026-12-20T00:00:00}", ".from", "Too long", "="),
    ("{from: '2026-12-19T00:00+01', until: 2026-12-20T00:00:00}", ".from", "should match", "="),
    ("{duration: 8h}", ".duration", "belongs to cron", "="),
    ("{from: 2026-12-19T00:00:00, until: 2026-12-20T00:00:00, duration: 8h}", ".duration", "belongs to cron", "="),
    ("{cron: '0 9 * * 1', duration: 0s}", ".duration", "longer than zero", "="),
    ("{cron: '0 9 * * 1', duration: -1h}", ".duration", "should match", "="),
    ("{cron: '0 9 * * 1', duration: 2a}", ".duration", "should match", "="),
    ("{cron: '0 9 * * 1', duration: 1000days}", ".duration", "should match", "="),
    ("{cron: '0 9 * * 1', duration: 8785h}", ".duration", "at most 8784h (366 days)", "="),
    ("{cron: '0 9 * * 1', duration: 366d1ms}", ".duration", "at most 8784h (366 days)", "="),
    ("{cron: '0 9 * * 1', duration: 2h, until: '11:00'}", ".until", "give either duration or until", "="),
    ("{cron: '0 9 * * 1', until: '24:00'}", ".until", "write 00:00", "="),
    ("{cron: '0 9 * * 1', until: '9:00'}", ".until", "should match", "="),
    ("{cron: '0 9 * * 1', until: '25:00'}", ".until", "should match", "="),
    ("{cron: '0 9 * * 1', until: 2026-12-20T00:00:00}", ".until", "it is a time of day; write one such as 04:00", "="),
    ("{from: 2026-12-19T00:00:00, until: '04:00'}", ".until", "write one such as 2026-12-19T00:00:00", "="),
    ("{until: '04:00'}", "", "or cron with until as a time of day", "="),
    ("{cron: '* * * * *', from: 2026-12-19T00:00:00, until: '04:00'}", "", "exactly one way", "="),
    ("{calendar: {url: 'https://example.com/'}, until: '04:00'}", "", "exactly one way", "="),
    ("{cron: '0 9 * * 1', until: '17:00', lastStart: 0s}", ".lastStart", "longer than zero", "="),
    ("{cron: '0 9 * * 1', lastStart: 30m}", ".lastStart", "write duration or until too", "="),
    ("{cron: '0 9 * * 1', duration: 8h, lastStart: 0s}", ".lastStart", "longer than zero", "="),
    ("{cron: '0 9 * * 1', duration: 8h, lastStart: 8h}", ".lastStart", "shorter than duration", "="),
    ("{cron: '0 9 * * 1', duration: 24h, lastStart: 1d}", ".lastStart", "shorter than duration", "="),
    ("{name: Office Hours, cron: '* * * * *'}", ".name", "should match", "="),
    ("{name: '', cron: '* * * * *'}", ".name", "at least 1 chars long", "="),
    ("{reason: '', cron: '* * * * *'}", ".reason", "at least 1 chars long", "="),
    ("{calendar: {}}", ".calendar", "read from exactly one place; write configMapRef or url", "="),
    ("{calendar: {url: 'https://example.com/', configMapRef: {name: a, key: b}}}", ".calendar", "exactly one place", "="),
    ("{calendar: {url: 'http://example.com/'}}", ".calendar.url", "should match", "="),
    ("{calendar: {url: 'https://user:pass@example.com/'}}", ".calendar.url", "should match", "="),
    ("{calendar: {configMapRef: {name: a}}}", ".calendar.configMapRef.key", "Required value", "="),
    ("{calendar: {configMapRef: {name: '', key: b}}}", ".calendar.configMapRef.name", "at least 1 chars long", "="),
    ("{calendar: {configMapRef: {name: a, key: b}, certSecretRef: {name: c}}}", ".calendar.certSecretRef", "belongs to url; remove it", "="),
    ("{calendar: {url: 'https://example.com/', interval: 30s}}", ".calendar.interval", "between 1m and 168h", "="),
    ("{calendar: {url: 'https://example.com/', interval: 169h}}", ".calendar.interval", "between 1m and 168h", "="),
    ("{calendar: {url: 'https://example.com/', interval: 7d1s}}", ".calendar.interval", "between 1m and 168h", "="),
];

#[tokio::test]
async fn mistakes_in_windows_are_refused() -> Result<()> {
    let judge = Judge::new().await?;
    let whole = |mistake: &Mistake| format!("{{schedule: {{open: [{}]}}}}", mistake.0);
    let table = WINDOWS.iter().map(|mistake| (whole(mistake), mistake));
    judge
        .refuses_all("Gatekeeper", "spec.schedule.open[0]", table)
        .await
}

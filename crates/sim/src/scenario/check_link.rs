//! What table `[link]` may say, and what may stand beside it.

use super::check::{Problem, RATE, range, rate_ok};
use super::{CELL_KEYS, CELL_TABLES, Cellular, FixedLink, Link, Scenario};
use paceline_net::{Bytes, Duration};

/// Which tables and keys exclude each other. `given` says whether the file or an override has a key.
pub(super) fn tables(scenario: &Scenario, given: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
    let Some(link) = &scenario.link else { return Ok(()) };
    let refuse = |key: String, allowed: &str| Problem { key, value: String::new(), allowed: allowed.into() };
    if let Some(name) = CELL_TABLES.iter().find(|name| given(name)) {
        let allowed = "[cell], [deployment] and [ack_filter], or [link]: a scenario has a cell or another link, not both";
        return Err(refuse((*name).to_owned(), allowed));
    }
    for index in 0..scenario.stations.len() {
        let keys = CELL_KEYS.iter().map(|name| format!("station.{index}.{name}"));
        if let Some(key) = keys.into_iter().find(|key| given(key)) {
            return Err(refuse(key, "left out beside [link], where nothing is said of a radio"));
        }
    }
    let kinds = [
        ("link.fixed", link.fixed.is_some()),
        ("link.trace", link.trace.is_some()),
        ("link.hspa", link.hspa.is_some()),
        ("link.lte_early", link.lte_early.is_some()),
    ];
    let present: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if present.len() != 1 {
        let key = present.get(1).copied().unwrap_or("link");
        let allowed =
            "exactly one of the tables [link.fixed], [link.trace], [link.hspa] and [link.lte_early]";
        return Err(refuse(key.to_owned(), allowed));
    }
    if given("link.queue") && given("link.queue_packets") {
        return Err(refuse("link.queue_packets".into(), "link.queue or link.queue_packets, not both"));
    }
    if given("link.trace.uplink") && given("link.trace.uplink_rate") {
        return Err(refuse(
            "link.trace.uplink_rate".into(),
            "link.trace.uplink or link.trace.uplink_rate, not both",
        ));
    }
    Ok(())
}

/// The values.
pub(super) fn check(scenario: &Scenario) -> Result<(), Problem> {
    let Some(link) = &scenario.link else { return Ok(()) };
    let delay = link.delay.unwrap_or_default();
    range("link.delay", delay, delay <= Duration::from_secs(10), "0 s to 10 s")?;
    if let Some(queue) = link.queue {
        range("link.queue", queue, queue >= Bytes(1_504) && queue <= Bytes(1 << 30), "1504 B to 1 GiB")?;
    }
    if let Some(queue) = link.queue_packets {
        range("link.queue_packets", queue, (1..=1_000_000).contains(&queue), "1 to 1000000 packets")?;
    }
    if let Some(threshold) = link.ecn_threshold {
        let ok = link.queue.is_none_or(|queue| threshold <= queue);
        range("link.ecn_threshold", threshold, ok, "no more than link.queue")?;
    }
    for (key, percent) in [
        ("link.loss_percent", link.loss_percent),
        ("link.burst_loss_percent", link.burst_loss_percent),
        ("link.duplicate_percent", link.duplicate_percent),
        ("link.reorder_percent", link.reorder_percent),
    ] {
        range(key, percent, (0.0..=100.0).contains(&percent), "0 to 100")?;
    }
    let (share, burst) = (link.burst_loss_percent / 100.0, link.burst_packets);
    range("link.burst_packets", burst, (1.0..=1e6).contains(&burst), "1 to 1000000")?;
    // Otherwise the time between two bursts would be less than a packet.
    let apart = share >= 1.0 || share / (1.0 - share) <= burst;
    let allowed = "at least b / (100 - b), b being link.burst_loss_percent";
    range("link.burst_packets", burst, apart, allowed)?;
    for (key, span) in [("link.jitter", link.jitter), ("link.reorder_delay", link.reorder_delay)] {
        range(key, span, span <= Duration::from_secs(10), "0 s to 10 s")?;
    }
    if let Some(rate) = link.trace.as_ref().and_then(|trace| trace.uplink_rate) {
        range("link.trace.uplink_rate", rate, rate_ok(rate), RATE)?;
    }
    link.fixed.as_ref().map_or(Ok(()), fixed)?;
    cellular(link)
}

fn fixed(fixed: &FixedLink) -> Result<(), Problem> {
    range("link.fixed.downlink_rate", fixed.downlink_rate, rate_ok(fixed.downlink_rate), RATE)?;
    if let Some(rate) = fixed.uplink_rate {
        range("link.fixed.uplink_rate", rate, rate_ok(rate), RATE)?;
    }
    range("link.fixed.frame", fixed.frame, fixed.frame <= Duration::from_secs(1), "0 s to 1 s")?;
    let length = fixed.interruption;
    range("link.fixed.interruption", length, length <= Duration::from_secs(60), "0 s to 60 s")?;
    let interval = fixed.interruption_interval;
    let ok = interval >= Duration::from_millis(1) && interval <= Duration::from_secs(86_400);
    range("link.fixed.interruption_interval", interval, ok, "1 ms to 86400 s")
}

fn cellular(link: &Link) -> Result<(), Problem> {
    let (name, Some(of)) = (if link.hspa.is_some() { "hspa" } else { "lte_early" }, link.cellular()) else {
        return Ok(());
    };
    let Cellular { rate, peak_rate, rate_sigma, coherence, uplink_rate, load_delay, .. } = of.clone();
    let key = |key: &str| format!("link.{name}.{key}");
    range(&key("rate"), rate, rate_ok(rate), RATE)?;
    range(
        &key("peak_rate"),
        peak_rate,
        rate_ok(peak_rate) && peak_rate >= rate,
        "at least rate, to 1000 Gb/s",
    )?;
    range(&key("rate_sigma"), rate_sigma, (0.0..=3.0).contains(&rate_sigma), "0 to 3")?;
    let ok = coherence >= Duration::from_millis(1) && coherence <= Duration::from_secs(1000);
    range(&key("coherence"), coherence, ok, "1 ms to 1000 s")?;
    range(&key("uplink_rate"), uplink_rate, rate_ok(uplink_rate), RATE)?;
    for (name, delay) in [("load_delay", load_delay), ("error_delay", of.error_delay)] {
        range(&key(name), delay, delay <= Duration::from_secs(10), "0 s to 10 s")?;
    }
    let percents = [
        ("error_percent", of.error_percent),
        ("loss_percent", of.loss_percent),
        ("load_loss_percent", of.load_loss_percent),
    ];
    for (name, percent) in percents {
        range(&key(name), percent, (0.0..=99.0).contains(&percent), "0 to 99")?;
    }
    let within = of.burst_loss_percent;
    range(&key("burst_loss_percent"), within, within > 0.0 && within <= 100.0, "more than 0, to 100")?;
    let from = of.load_loss_from;
    range(&key("load_loss_from"), from, (0.0..1.0).contains(&from), "0 to less than 1")?;
    let full_ok = of.load_full >= from && of.load_full <= 1.0;
    range(&key("load_full"), of.load_full, full_ok, "load_loss_from to 1")?;
    let burst = of.loss_burst;
    let ok = burst >= Duration::from_micros(1) && burst <= Duration::from_secs(60);
    range(&key("loss_burst"), burst, ok, "1 us to 60 s")?;
    let share = of.congested_share;
    range(&key("congested_share"), share, (0.001..=1.0).contains(&share), "0.001 to 1")
}

//! What a scenario's values may be, beyond their types.

use super::{Direction, Scenario, SinrRange, Stations, Tcp};
use paceline_net::units::Hertz;
use paceline_net::{Bytes, Duration, Rate};
use paceline_ran::resource_blocks;
use paceline_tcp::Pacing;
use std::fmt::Display;

/// Most stations of one cell.
const MAX_STATIONS: u64 = 1000;
/// Longest simulated time.
const MAX_DURATION: Duration = Duration::from_secs(86_400);

/// A value that is not allowed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Problem {
    /// Dotted path, as `--set` takes it.
    pub key: String,
    /// The value found.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

pub(super) const RATE: &str = "1 kb/s to 1000 Gb/s";

pub(super) fn rate_ok(rate: Rate) -> bool {
    rate.0 >= 1_000 && rate.0 <= 1_000_000_000_000
}

/// The first value that is not allowed.
pub(super) fn check(scenario: &Scenario) -> Result<(), Problem> {
    run(scenario)?;
    let hops = scenario.core.hops.len();
    if let Some(after) = scenario.core.path_after {
        range("core.path_after", after, after <= hops, &format!("0 to {hops}, the hops in core.hops"))?;
    }
    for (index, hop) in scenario.core.hops.iter().enumerate() {
        let key = |name: &str| format!("core.hops.{index}.{name}");
        range(&key("rate"), hop.rate, rate_ok(hop.rate), RATE)?;
        range(&key("delay"), hop.delay, hop.delay <= Duration::from_secs(10), "0 s to 10 s")?;
        range(&key("queue"), hop.queue, hop.queue >= Bytes(1_500), "at least 1500 B")?;
        if let Some(threshold) = hop.ecn_threshold {
            let ok = threshold <= hop.queue;
            range(&key("ecn_threshold"), threshold, ok, "no more than the hop's queue")?;
        }
        let behind_shared = hop.per_cell || scenario.core.hops[..index].iter().all(|hop| !hop.per_cell);
        let allowed = "true, since a hop before it has per_cell = true: hops that all cells share come first";
        range(&key("per_cell"), hop.per_cell, behind_shared, allowed)?;
    }
    super::check_link::check(scenario)?;
    super::path::check(scenario)?;
    cell_radio(scenario)?;
    cell_rlc(scenario)?;
    cell_access(scenario)?;
    cell_random_access(scenario)?;
    tcp(scenario)?;
    deployment(scenario)?;
    if scenario.deployment.is_some() {
        scenario.stations.iter().enumerate().try_for_each(|(index, group)| nothing_stated(index, group))?;
    }
    scenario.stations.iter().enumerate().try_for_each(|(index, group)| stations(index, group))?;
    let count = scenario.station_count();
    let allowed = format!("1 to {MAX_STATIONS} stations in all [[station]] tables");
    range("station.count", count, (1..=MAX_STATIONS).contains(&count), &allowed)
}

pub(super) fn range(key: &str, value: impl Display, ok: bool, allowed: &str) -> Result<(), Problem> {
    if ok {
        return Ok(());
    }
    Err(Problem { key: key.to_owned(), value: value.to_string(), allowed: allowed.to_owned() })
}

/// A number that is one of these.
fn one_of(key: &str, value: u32, allowed: &[u32]) -> Result<(), Problem> {
    let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
    range(key, value, allowed.contains(&value), &format!("one of {}", list.join(", ")))
}

/// A duration that is one of these numbers of milliseconds.
fn one_of_ms(key: &str, value: Duration, allowed: &[u64]) -> Result<(), Problem> {
    let list: Vec<String> = allowed.iter().map(u64::to_string).collect();
    let ok = allowed.iter().any(|ms| Duration::from_millis(*ms) == value);
    range(key, value, ok, &format!("one of {} ms", list.join(", ")))
}

/// A duration of whole milliseconds within bounds.
fn whole_ms(key: &str, value: Duration, low: u64, high: u64) -> Result<(), Problem> {
    let ok = value.as_nanos().is_multiple_of(1_000_000) && (low..=high).contains(&value.as_millis());
    range(key, value, ok, &format!("{low} to {high} ms, whole milliseconds"))
}

fn run(scenario: &Scenario) -> Result<(), Problem> {
    let run = &scenario.run;
    let duration_ok = run.duration >= Duration::from_millis(1) && run.duration <= MAX_DURATION;
    range("run.duration", run.duration, duration_ok, "1 ms to 86400 s")?;
    range("run.warmup", run.warmup, run.warmup < run.duration, "less than run.duration")?;
    let samples = run.duration.as_nanos() / run.sample.as_nanos().max(1);
    range(
        "run.sample",
        run.sample,
        run.sample >= Duration::from_millis(1) && samples <= 1_000_000,
        "1 ms or more, and at most 1,000,000 samples in a run",
    )
}

fn cell_radio(scenario: &Scenario) -> Result<(), Problem> {
    const BANDWIDTHS: &str = "1.4, 3, 5, 10, 15 or 20 MHz (TS 36.104 Table 5.6-1)";
    let cell = &scenario.cell;
    let blocks =
        |hertz: Hertz| hertz.0.is_multiple_of(1000).then(|| resource_blocks(hertz.0 / 1000)).flatten();
    range("cell.bandwidth", cell.bandwidth, blocks(cell.bandwidth).is_some(), BANDWIDTHS)?;
    let uplink = cell.uplink_bandwidth.unwrap_or(cell.bandwidth);
    range("cell.uplink_bandwidth", uplink, blocks(uplink).is_some(), BANDWIDTHS)?;
    let uplink_prb = blocks(uplink).unwrap_or(0);
    let pucch_ok = cell.pucch_prb < uplink_prb;
    let allowed =
        format!("0 to {}, less than the uplink's {uplink_prb} resource blocks", uplink_prb.saturating_sub(1));
    range("cell.pucch_prb", cell.pucch_prb, pucch_ok, &allowed)?;
    range("cell.downlink_grants", cell.downlink_grants, (1..=40).contains(&cell.downlink_grants), "1 to 40")?;
    range("cell.uplink_grants", cell.uplink_grants, (1..=40).contains(&cell.uplink_grants), "1 to 40")?;
    range("cell.max_harq_tx", cell.max_harq_tx, (1..=8).contains(&cell.max_harq_tx), "1 to 8")?;
    whole_ms("cell.t_reordering", cell.t_reordering, 0, 200)?;
    whole_ms("cell.decode_delay", cell.decode_delay, 0, 10)?;
    whole_ms("cell.cqi_period", cell.cqi_period, 1, 160)?;
    whole_ms("cell.cqi_delay", cell.cqi_delay, 0, 40)
}

/// The values of TS 36.331 v15.6.0 §6.3.2, RLC-Config and PDCP-Config.
fn cell_rlc(scenario: &Scenario) -> Result<(), Problem> {
    let cell = &scenario.cell;
    let steps = |from: u64, more: &[u64]| -> Vec<u64> {
        (from..=250).step_by(5).chain([300, 350, 400, 450, 500]).chain(more.iter().copied()).collect()
    };
    let poll_retransmit = steps(5, &[800, 1000, 2000, 4000]);
    one_of_ms("cell.t_poll_retransmit", cell.t_poll_retransmit, &poll_retransmit)?;
    let status_prohibit = steps(0, &[800, 1000, 1200, 1600, 2000, 2400]);
    one_of_ms("cell.t_status_prohibit", cell.t_status_prohibit, &status_prohibit)?;
    let pdu_ok = [0, 4, 8, 16, 32, 64, 128, 256].contains(&cell.poll_pdu);
    let allowed = "one of 4, 8, 16, 32, 64, 128, 256 PDUs, or 0 for infinity";
    range("cell.poll_pdu", cell.poll_pdu, pdu_ok, allowed)?;
    const POLL_KB: [u64; 15] = [0, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000];
    let byte_ok = POLL_KB.iter().any(|kb| Bytes(kb * 1000) == cell.poll_byte);
    let allowed = "one of 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000 kB, or 0 B for infinity";
    range("cell.poll_byte", cell.poll_byte, byte_ok, allowed)?;
    let retx_ok = [1, 2, 3, 4, 6, 8, 16, 32].contains(&cell.max_retx_threshold);
    range("cell.max_retx_threshold", cell.max_retx_threshold, retx_ok, "one of 1, 2, 3, 4, 6, 8, 16, 32")?;
    whole_ms("cell.cell_selection", cell.cell_selection, 0, 10_000)?;
    whole_ms("cell.reestablishment_signalling", cell.reestablishment_signalling, 0, 10_000)?;
    cell.discard_timer
        .map_or(Ok(()), |timer| one_of_ms("cell.discard_timer", timer, &[50, 100, 150, 300, 500, 750, 1500]))
}

fn cell_access(scenario: &Scenario) -> Result<(), Problem> {
    let cell = &scenario.cell;
    for (key, buffer) in
        [("cell.downlink_buffer", cell.downlink_buffer), ("cell.uplink_buffer", cell.uplink_buffer)]
    {
        range(key, buffer, buffer >= Bytes(2_000) && buffer <= Bytes(1 << 30), "2000 B to 1 GiB")?;
    }
    one_of_ms("cell.sr_period", cell.sr_period, &[1, 2, 5, 10, 20, 40, 80])?;
    range("cell.sr_prohibit", cell.sr_prohibit, cell.sr_prohibit <= 7, "0 to 7 scheduling request periods")?;
    let periodic = [5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560];
    one_of_ms("cell.periodic_bsr_timer", cell.periodic_bsr_timer, &periodic)?;
    one_of_ms("cell.retx_bsr_timer", cell.retx_bsr_timer, &[320, 640, 1280, 2560, 5120, 10240])?;
    let grant_ok = cell.sr_grant >= Bytes(7) && cell.sr_grant <= Bytes(2_000);
    range("cell.sr_grant", cell.sr_grant, grant_ok, "7 B (a BSR and a byte of data) to 2000 B")?;
    let header = scenario.ack_filter.header;
    range("ack_filter.header", header, header >= Bytes(1) && header <= Bytes(1000), "1 B to 1000 B")
}

/// The values of TS 36.331 v15.6.0 §6.3.2, RACH-ConfigCommon and PRACH-Config, and TS 36.321 Table 7.2-1.
fn cell_random_access(scenario: &Scenario) -> Result<(), Problem> {
    let cell = &scenario.cell;
    let heard = cell.sr_detection > 0.0 && cell.sr_detection <= 1.0;
    range("cell.sr_detection", cell.sr_detection, heard, "more than 0, at most 1")?;
    one_of("cell.dsr_trans_max", cell.dsr_trans_max, &[4, 8, 16, 32, 64])?;
    whole_ms("cell.connection_setup", cell.connection_setup, 0, 10_000)?;
    let index = cell.prach_config_index;
    range("cell.prach_config_index", index, index <= 15, "0 to 15 (preamble format 0)")?;
    let preambles_ok = (4..=64).contains(&cell.ra_preambles) && cell.ra_preambles.is_multiple_of(4);
    range("cell.ra_preambles", cell.ra_preambles, preambles_ok, "4 to 64 in steps of 4")?;
    let tries = [3, 4, 5, 6, 7, 8, 10, 20, 50, 100, 200];
    one_of("cell.preamble_trans_max", cell.preamble_trans_max, &tries)?;
    one_of_ms("cell.ra_response_window", cell.ra_response_window, &[2, 3, 4, 5, 6, 7, 8, 10])?;
    range("cell.ra_responses", cell.ra_responses, (1..=16).contains(&cell.ra_responses), "1 to 16")?;
    let backoffs = [0, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 960];
    one_of_ms("cell.backoff_indicator", cell.backoff_indicator, &backoffs)?;
    let timers = [8, 16, 24, 32, 40, 48, 56, 64];
    one_of_ms("cell.contention_resolution_timer", cell.contention_resolution_timer, &timers)?;
    let msg3_ok = (1..=8).contains(&cell.max_harq_msg3_tx);
    range("cell.max_harq_msg3_tx", cell.max_harq_msg3_tx, msg3_ok, "1 to 8")?;
    // Index 14 has the PRACH in every subframe: something must be left beside it.
    let uplink = cell.uplink_bandwidth.unwrap_or(cell.bandwidth);
    let blocks = resource_blocks(uplink.0 / 1000).unwrap_or(0);
    let room_ok = !cell.initial_access || index != 14 || blocks >= cell.pucch_prb + 6 + 3;
    range(
        "cell.prach_config_index",
        index,
        room_ok,
        "other than 14, which leaves this uplink no blocks for data",
    )
}

fn deployment(scenario: &Scenario) -> Result<(), Problem> {
    let Some(deployment) = &scenario.deployment else { return Ok(()) };
    range("deployment.sites", deployment.sites, [1, 7, 19].contains(&deployment.sites), "1, 7 or 19")?;
    let served = deployment.served_sites;
    let allowed = format!("1 to deployment.sites, {}", deployment.sites);
    range("deployment.served_sites", served, (1..=deployment.sites).contains(&served), &allowed)?;
    let wrap_ok = !deployment.wrap_around || deployment.sites > 1;
    range("deployment.wrap_around", deployment.wrap_around, wrap_ok, "false with one site")?;
    let load_ok = (0.0..=1.0).contains(&deployment.neighbour_load);
    range("deployment.neighbour_load", deployment.neighbour_load, load_ok, "0 to 1")?;
    let speed_ok = (0.0..=500.0).contains(&deployment.speed_kmh);
    range("deployment.speed_kmh", deployment.speed_kmh, speed_ok, "0 to 500")?;
    let p0_ok = (-134.0..=31.0).contains(&deployment.p0_dbm);
    range(
        "deployment.p0_dbm",
        deployment.p0_dbm,
        p0_ok,
        "-134 to 31 (TS 36.331 p0-NominalPUSCH and p0-UE-PUSCH)",
    )?;
    let alpha_ok = paceline_ran::radio::power_control::ALPHAS.contains(&deployment.alpha);
    range(
        "deployment.alpha",
        deployment.alpha,
        alpha_ok,
        "0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 or 1 (TS 36.331)",
    )?;
    if let Some(target) = deployment.tpc_target {
        range("deployment.tpc_target", target, (-10.0..=40.0).contains(&target.0), "-10 dB to 40 dB")?;
    }
    let timers = [0, 10, 20, 50, 100, 200, 500, 1000];
    one_of_ms("deployment.periodic_phr_timer", deployment.periodic_phr_timer, &timers)?;
    one_of_ms("deployment.prohibit_phr_timer", deployment.prohibit_phr_timer, &timers)?;
    one_of("deployment.path_loss_change_db", deployment.path_loss_change_db, &[0, 1, 3, 6])
}

fn tcp(scenario: &Scenario) -> Result<(), Problem> {
    let tcp = &scenario.tcp;
    let segment_ok = tcp.segment_size >= Bytes(64) && tcp.segment_size <= Bytes(8_948);
    range("tcp.segment_size", tcp.segment_size, segment_ok, "64 B to 8948 B")?;
    range(
        "tcp.initial_window",
        tcp.initial_window,
        (1..=1000).contains(&tcp.initial_window),
        "1 to 1000 segments",
    )?;
    for (key, buffer) in [("tcp.receive_buffer", tcp.receive_buffer), ("tcp.send_buffer", tcp.send_buffer)] {
        range(
            key,
            buffer,
            buffer >= tcp.segment_size && buffer <= Bytes(1 << 30),
            "tcp.segment_size to 1 GiB",
        )?;
    }
    tcp_receiver(tcp)?;
    tcp_timers(tcp)
}

fn tcp_receiver(tcp: &Tcp) -> Result<(), Problem> {
    let segments_ok = |segments| (1..=64).contains(&segments);
    let segments = tcp.delayed_ack_segments;
    range("tcp.delayed_ack_segments", segments, segments_ok(segments), "1 to 64")?;
    let timeout_ok = tcp.delayed_ack_timeout <= Duration::from_millis(500);
    range("tcp.delayed_ack_timeout", tcp.delayed_ack_timeout, timeout_ok, "0 to 500 ms (RFC 9293 §3.8.6.3)")?;
    range("tcp.quick_acks", tcp.quick_acks, tcp.quick_acks <= 1000, "0 to 1000")?;
    let segments = tcp.stretch_ack_segments;
    range("tcp.stretch_ack_segments", segments, segments_ok(segments), "1 to 64; 1 lets every ACK pass")?;
    let timeout_ok = tcp.stretch_ack_timeout <= Duration::from_millis(500);
    range("tcp.stretch_ack_timeout", tcp.stretch_ack_timeout, timeout_ok, "0 to 500 ms")?;
    let Some(rate) = tcp.read_rate else { return Ok(()) };
    range("tcp.read_rate", rate, rate_ok(rate), RATE)
}

fn tcp_timers(tcp: &Tcp) -> Result<(), Problem> {
    let rto_ok = |rto| rto >= Duration::from_millis(1) && rto <= Duration::from_secs(60);
    range("tcp.min_rto", tcp.min_rto, rto_ok(tcp.min_rto), "1 ms to 60 s")?;
    range("tcp.initial_rto", tcp.initial_rto, rto_ok(tcp.initial_rto), "1 ms to 60 s")?;
    for (key, count) in [
        ("tcp.retries", tcp.retries),
        ("tcp.syn_retries", tcp.syn_retries),
        ("tcp.syn_linear_timeouts", tcp.syn_linear_timeouts),
        ("tcp.keepalive_probes", tcp.keepalive_probes),
    ] {
        range(key, count, count <= 255, "0 to 255")?;
    }
    for (key, span) in
        [("tcp.keepalive_idle", tcp.keepalive_idle), ("tcp.keepalive_interval", tcp.keepalive_interval)]
    {
        range(key, span, span >= Duration::from_millis(1) && span <= MAX_DURATION, "1 ms to 86400 s")?;
    }
    let Pacing::External(rate) = tcp.pacing else { return Ok(()) };
    range("tcp.pacing", rate, rate_ok(rate), &format!("none, linux, or {RATE}"))
}

/// In a deployment a station's radio link follows from its place: what would be ignored is refused.
fn nothing_stated(index: usize, group: &Stations) -> Result<(), Problem> {
    const ALLOWED: &str = "left out beside [deployment], where a station's place decides";
    let (key, unset) = (|name: &str| format!("station.{index}.{name}"), Stations::default());
    let same = group.downlink_sinr == unset.downlink_sinr;
    range(&key("downlink_sinr"), group.downlink_sinr, same, ALLOWED)?;
    range(&key("uplink_sinr"), group.uplink_sinr, group.uplink_sinr == unset.uplink_sinr, ALLOWED)?;
    range(&key("fading"), group.fading, group.fading == unset.fading, "left out; see deployment.fading")?;
    range(
        &key("coherence"),
        group.coherence,
        group.coherence == unset.coherence,
        "left out; see deployment.speed_kmh",
    )
}

fn stations(index: usize, group: &Stations) -> Result<(), Problem> {
    let key = |name: &str| format!("station.{index}.{name}");
    udp(index, group)?;
    let count_ok = (1..=MAX_STATIONS).contains(&group.count);
    range(&key("count"), group.count, count_ok, &format!("1 to {MAX_STATIONS}"))?;
    let sinr_ok =
        |range: &SinrRange| range.low.0 <= range.high.0 && range.low.0 >= -30.0 && range.high.0 <= 60.0;
    const SINR: &str = "-30 dB to 60 dB, the lower end of a range first";
    range(&key("downlink_sinr"), group.downlink_sinr, sinr_ok(&group.downlink_sinr), SINR)?;
    range(&key("uplink_sinr"), group.uplink_sinr, sinr_ok(&group.uplink_sinr), SINR)?;
    range(&key("fading"), group.fading, (0.0..=20.0).contains(&group.fading.0), "0 dB to 20 dB")?;
    let coherence_ok =
        group.coherence >= Duration::from_millis(1) && group.coherence <= Duration::from_secs(100);
    range(&key("coherence"), group.coherence, coherence_ok, "1 ms to 100 s")?;
    range(
        &key("flows"),
        group.flows,
        (1..=1000).contains(&group.flows),
        "1 to 1000 connections per station",
    )?;
    if let Some(file) = group.file {
        range(&key("file"), file, file >= Bytes(1) && file <= Bytes(1 << 40), "1 B to 1024 GiB")?;
    }
    if let Some(request) = group.request {
        let of = group.direction == Direction::Download && group.traffic == super::Traffic::Tcp;
        range(&key("request"), request, of, "left out but for downloads by TCP")?;
        range(&key("request"), request, request >= Bytes(1) && request <= Bytes(1 << 20), "1 B to 1 MiB")?;
    }
    if let Some(chunk) = group.chunk {
        range(&key("chunk"), chunk, chunk >= Bytes(1) && chunk <= Bytes(1 << 30), "1 B to 1 GiB")?;
        let whole = group.file.is_none_or(|file| file.0.is_multiple_of(chunk.0));
        range(&key("chunk"), chunk, whole, "what station.file is a multiple of")?;
    }
    let interval_ok =
        group.chunk_interval >= Duration::from_micros(1) && group.chunk_interval <= MAX_DURATION;
    range(&key("chunk_interval"), group.chunk_interval, interval_ok, "1 us to 86400 s")?;
    range(&key("start"), group.start, group.start <= MAX_DURATION, "0 s to 86400 s")?;
    range(&key("start_spread"), group.start_spread, group.start_spread <= MAX_DURATION, "0 s to 86400 s")
}

fn udp(index: usize, group: &Stations) -> Result<(), Problem> {
    let key = |name: &str| format!("station.{index}.{name}");
    range(&key("udp_rate"), group.udp_rate, rate_ok(group.udp_rate), RATE)?;
    let payload_ok = group.udp_payload >= Bytes(1) && group.udp_payload <= Bytes(8_972);
    range(&key("udp_payload"), group.udp_payload, payload_ok, "1 B to 8972 B")?;
    if group.traffic == super::Traffic::Tcp {
        return Ok(());
    }
    let chunk = group.chunk.unwrap_or(Bytes::ZERO);
    range(&key("chunk"), chunk, group.chunk.is_none(), "left out with traffic = \"udp\"")
}

#[cfg(test)]
mod tests {
    use super::super::load;

    #[test]
    fn rlc_and_pdcp_take_the_values_of_the_standard() {
        let with = |set: &str| load("test.toml", "[[station]]\n", &[set.to_owned()]);
        for good in [
            "cell.rlc=am",
            "cell.t_poll_retransmit=5 ms",
            "cell.t_poll_retransmit=4000 ms",
            "cell.t_status_prohibit=0 ms",
            "cell.t_status_prohibit=2400 ms",
            "cell.poll_pdu=0",
            "cell.poll_pdu=256",
            "cell.poll_byte=25 kB",
            "cell.poll_byte=0 B",
            "cell.max_retx_threshold=32",
            "cell.discard_timer=1500 ms",
        ] {
            let scenario = with(good).unwrap_or_else(|error| panic!("{good}: {error}"));
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{good}");
        }
        for (bad, part) in [
            ("cell.rlc=tm", "um"),
            ("cell.t_poll_retransmit=0 ms", "one of 5, 10"),
            ("cell.t_poll_retransmit=255 ms", "one of 5, 10"),
            ("cell.t_status_prohibit=4000 ms", "one of 0, 5"),
            ("cell.poll_pdu=5", "4, 8, 16"),
            ("cell.poll_byte=25 KiB", "infinity"),
            ("cell.max_retx_threshold=5", "1, 2, 3, 4, 6"),
            ("cell.discard_timer=200 ms", "50, 100, 150"),
            ("cell.cell_selection=11 s", "0 to 10000 ms"),
            ("cell.reestablishment_signalling=1500 us", "0 to 10000 ms, whole"),
        ] {
            let error = with(bad).expect_err(bad).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

//! Rows of the network's parts beside the stations.

use super::columns::row;
use super::csv::Decimals;
use crate::results::network::handover::HandoverResult;
use crate::results::network::paths::{PathResult, SwitchResult};
use crate::results::network::queue::QueueResult;
use crate::results::network::router::{PolicerResult, RouterResult};
use crate::results::ping::{PingResult, Times};
use crate::results::run::RunResult;

row! {
    /// A row of `queues.csv`.
    pub(super) struct QueueRow {
        seed: u64,
        queue: String,
        discipline: String,
        packets: u64,
        marks: u64,
        drops: u64,
        overflows: u64,
        new_flows: u64,
        sojourn_mean_ms: Decimals<3>,
        sojourn_p50_ms: Decimals<3>,
        sojourn_p95_ms: Decimals<3>,
        sojourn_p99_ms: Decimals<3>,
    }
}

impl QueueRow {
    pub(super) fn new(run: &RunResult, q: &QueueResult) -> Self {
        Self {
            seed: run.seed,
            queue: q.queue.clone(),
            discipline: q.discipline.clone(),
            packets: q.packets,
            marks: q.marks,
            drops: q.drops,
            overflows: q.overflows,
            new_flows: q.new_flows,
            sojourn_mean_ms: Decimals(q.sojourn_mean_ms),
            sojourn_p50_ms: Decimals(q.sojourn_p50_ms),
            sojourn_p95_ms: Decimals(q.sojourn_p95_ms),
            sojourn_p99_ms: Decimals(q.sojourn_p99_ms),
        }
    }
}

row! {
    /// A row of `paths.csv`.
    pub(super) struct PathRow<'a> {
        seed: u64,
        station: usize,
        direction: &'a str,
        path: &'a str,
        packets: u64,
        bytes: u64,
    }
}

impl<'a> PathRow<'a> {
    pub(super) fn new(seed: u64, own: &'a PathResult) -> Self {
        let PathResult { station, direction, path, packets, bytes } = own;
        Self { seed, station: *station, direction, path, packets: *packets, bytes: *bytes }
    }
}

row! {
    /// A row of `switches.csv`.
    pub(super) struct SwitchRow<'a> {
        seed: u64,
        time_s: Decimals<6>,
        station: usize,
        direction: &'a str,
        path: &'a str,
        direct_cqi: u8,
        uplink_cqi: u8,
        dropped_packets: u64,
        dropped_bytes: u64,
    }
}

impl<'a> SwitchRow<'a> {
    pub(super) fn new(seed: u64, own: &'a SwitchResult) -> Self {
        Self {
            seed,
            time_s: Decimals(own.time_s),
            station: own.station,
            direction: &own.direction,
            path: &own.path,
            direct_cqi: own.direct_cqi,
            uplink_cqi: own.uplink_cqi,
            dropped_packets: own.dropped_packets,
            dropped_bytes: own.dropped_bytes,
        }
    }
}

row! {
    /// A row of `routers.csv`.
    pub(super) struct RouterRow {
        seed: u64,
        router: String,
        busy_share: Decimals<4>,
        packets_per_s: Decimals<1>,
        downlink_packets: u64,
        uplink_packets: u64,
        downlink_drops: u64,
        uplink_drops: u64,
        most_waiting: u64,
    }
}

impl RouterRow {
    pub(super) fn new(run: &RunResult, r: &RouterResult) -> Self {
        Self {
            seed: run.seed,
            router: r.router.clone(),
            busy_share: Decimals(r.busy_share),
            packets_per_s: Decimals(r.packets_per_s),
            downlink_packets: r.downlink_packets,
            uplink_packets: r.uplink_packets,
            downlink_drops: r.downlink_drops,
            uplink_drops: r.uplink_drops,
            most_waiting: r.most_waiting,
        }
    }
}

row! {
    /// A row of `policers.csv`.
    pub(super) struct PolicerRow {
        seed: u64,
        policer: String,
        decision: String,
        acks: u64,
    }
}

impl PolicerRow {
    pub(super) fn of_policer(run: &RunResult, p: &PolicerResult) -> Vec<Self> {
        let row = |(decision, acks): (&str, u64)| Self {
            seed: run.seed,
            policer: p.policer.clone(),
            decision: decision.to_owned(),
            acks,
        };
        let kept = p.kept.iter().map(|(reason, acks)| (reason.as_str(), *acks));
        std::iter::once(("dropped", p.dropped)).chain(kept).map(row).collect()
    }
}

row! {
    /// A row of `pings.csv`.
    pub(super) struct PingRow<'a> {
        seed: u64,
        station: usize,
        part: &'a str,
        count: u64,
        mean_ms: Decimals<3>,
        min_ms: Decimals<3>,
        p5_ms: Decimals<3>,
        p50_ms: Decimals<3>,
        p95_ms: Decimals<3>,
        p99_ms: Decimals<3>,
        max_ms: Decimals<3>,
    }
}

impl<'a> PingRow<'a> {
    pub(super) fn of_station(seed: u64, ping: &'a PingResult) -> Vec<Self> {
        let row = |(part, count, times): (&'a str, u64, &Times)| Self {
            seed,
            station: ping.station,
            part,
            count,
            mean_ms: Decimals(times.mean_ms),
            min_ms: Decimals(times.min_ms),
            p5_ms: Decimals(times.p5_ms),
            p50_ms: Decimals(times.p50_ms),
            p95_ms: Decimals(times.p95_ms),
            p99_ms: Decimals(times.p99_ms),
            max_ms: Decimals(times.max_ms),
        };
        let whole = [("round trip", &ping.rtt), ("request", &ping.there), ("answer", &ping.back)];
        let whole = whole.map(|(part, times)| (part, ping.answered, times));
        let parts = ping.parts.iter().map(|part| (part.part.as_str(), part.count, &part.times));
        whole.into_iter().chain(parts).map(row).collect()
    }
}

row! {
    /// A row of `handovers.csv`.
    pub(super) struct HandoverRow<'a> {
        seed: u64,
        time_s: Decimals<6>,
        station: usize,
        from_cell: usize,
        to_cell: usize,
        cause: &'a str,
        outcome: &'a str,
        interruption_ms: Option<Decimals<3>>,
        from_gain_db: Decimals<2>,
        to_gain_db: Decimals<2>,
        dropped_packets: u64,
        dropped_bytes: u64,
        forwarded_packets: u64,
        x_m: Option<Decimals<1>>,
        y_m: Option<Decimals<1>>,
    }
}

impl<'a> HandoverRow<'a> {
    pub(super) fn new(seed: u64, own: &'a HandoverResult) -> Self {
        Self {
            seed,
            time_s: Decimals(own.time_s),
            station: own.station,
            from_cell: own.from_cell,
            to_cell: own.to_cell,
            cause: &own.cause,
            outcome: &own.outcome,
            interruption_ms: own.interruption_ms.map(Decimals),
            from_gain_db: Decimals(own.from_gain_db),
            to_gain_db: Decimals(own.to_gain_db),
            dropped_packets: own.dropped_packets,
            dropped_bytes: own.dropped_bytes,
            forwarded_packets: own.forwarded_packets,
            x_m: own.x_m.map(Decimals),
            y_m: own.y_m.map(Decimals),
        }
    }
}

//! Figures of all stations of a run together.

use super::limits::{LimitShares, SenderSums};
use super::statistics::{jain, mbps, mean_ms, number_or_nan, ratio};
use crate::counters::{Counters, RadioCapacity};
use paceline_net::Duration;
use serde::{Deserialize, Serialize};

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Figures of all stations of a run together. NaN: not measured in an emulation; `null` in JSON.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Totals {
            $($(#[$doc])* #[serde(deserialize_with = "number_or_nan")] pub $field: f64,)*
        }
        impl Totals {
            /// Names of all figures, in order.
            pub fn names() -> &'static [&'static str] {
                &[$(stringify!($field)),*]
            }
            /// Values of all figures, in this order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$field),*]
            }
            /// Figures from their values in this order.
            pub fn from_values(values: &[f64]) -> Self {
                let mut values = values.iter().copied();
                Self { $($field: values.next().unwrap_or_default()),* }
            }
        }
    };
}

totals! {
    /// Downloaded payload that the stations acknowledged, Mb/s.
    goodput_mbps,
    /// Uploaded payload that the servers acknowledged, Mb/s.
    upload_mbps,
    /// Pure ACKs that arrived at the uplink buffers, per second.
    acks_in_per_s,
    /// Pure ACKs that the ACK filter discarded, per second.
    acks_discarded_per_s,
    /// Pure ACKs that left the uplink buffers, per second.
    acks_sent_per_s,
    /// Mean round-trip time from data segment to ACK at the servers, with a proxy on its stations' side, ms.
    rtt_mean_ms,
    /// 95th percentile of this round-trip time, ms.
    rtt_p95_ms,
    /// Share of data segments that are retransmissions.
    retransmission_share,
    /// Jain's fairness index of the stations' acknowledged bytes, both directions.
    jain_index,
    /// Mean size of downlink transport blocks, bytes.
    downlink_block_bytes,
    /// Share of the downlink PRBs that were used.
    downlink_prb_share,
    /// Share of the uplink PRBs that were used.
    uplink_prb_share,
    /// Uplink grants as a share of the most that the configured grants per slot allow.
    uplink_grant_share,
    /// Share of transport block transmissions that are HARQ retransmissions, both directions.
    harq_retransmission_share,
    /// Scheduling requests per second.
    scheduling_requests_per_s,
    /// Mean time from data in an empty uplink buffer to the transport block that the scheduling request led
    /// to, ms.
    sr_wait_mean_ms,
    /// Random access procedures started, per second.
    random_accesses_per_s,
    /// Mean time from the start of a random access to contention resolution, ms.
    random_access_mean_ms,
    /// Share of preambles that collided.
    preamble_collision_share,
    /// Share of uplink grants that were limited by the number of free PRBs.
    uplink_block_limited_share,
    /// Share of uplink grants that were limited by the stations' transmit power.
    uplink_power_limited_share,
    /// Stations with simulated traffic and no acknowledged payload: out of coverage, or not scheduled.
    stations_without_service,
    /// Packets dropped by the eNB's full downlink buffers, or by a link's downlink queue, per second.
    downlink_queue_drops_per_s,
    /// Packets lost by HARQ, RLC reassembly and radio-link failures, or by a link, per second, both
    /// directions.
    radio_losses_per_s,
    /// Packets dropped by PDCP's discard timer, per second, both directions.
    pdcp_discards_per_s,
    /// Packets dropped by the uplink queue of a link, per second; 0 for a cell.
    uplink_queue_drops_per_s,
    /// Capacity of a link's downlinks, Mb/s, headers included; 0 for a cell.
    link_capacity_mbps,
    /// Rate that a link's downlinks sent, Mb/s, headers and lost packets included; 0 for a cell.
    link_sent_mbps,
    /// Mean time of a packet from its arrival at a link's downlink queue to its last byte sent, ms; 0 for a
    /// cell.
    link_delay_mean_ms,
    /// 95th percentile of this time, ms.
    link_delay_p95_ms,
    /// Share of UDP datagrams that did not arrive by the end of the run.
    udp_loss_share,
    /// Mean one-way delay of UDP datagrams, ms.
    udp_delay_mean_ms,
    /// Share of the connections' lifetimes, over the whole run, in which the handshake was not complete.
    handshake_share,
    /// Share in which all data that the application had written was sent.
    application_share,
    /// Share in which the send buffer was full.
    send_buffer_share,
    /// Share in which the receiver's window was used up.
    receive_window_share,
    /// Share in which the congestion window was used up.
    congestion_window_share,
    /// Share in which pacing delayed the next segment.
    pacing_share,
    /// Share in which the sender was in fast recovery.
    recovery_share,
    /// Share in which the sender waited for its retransmission timer, or was in recovery after its expiry.
    timeout_share,
    /// Mean time of packets in the eNB's downlink buffer, as a share of the senders' mean round-trip time.
    rtt_downlink_queue_share,
    /// Mean time of packets in the uplink buffers until the first transport block, as such a share.
    rtt_grant_share,
    /// Mean other time of packets in the uplink buffers, as such a share.
    rtt_uplink_queue_share,
    /// Mean time of transport blocks in HARQ, both directions, as such a share.
    rtt_harq_share,
}

/// Figures that follow from counters over the measured interval `span`. Those of senders, distributions and a
/// link's capacity are left at zero.
pub(super) fn of_counters(stations: &[Counters], span: Duration, capacity: RadioCapacity) -> Totals {
    let seconds = span.as_secs_f64();
    let mut all = Counters::default();
    stations.iter().for_each(|station| all.add(station));
    let per_second = |count: u64| count as f64 / seconds;
    let harq = all.downlink_harq_retransmissions + all.uplink_harq_retransmissions;
    let slots = seconds * capacity.slots_per_second;
    let of_slots =
        |used: u64, per_slot: f64| if per_slot == 0.0 { 0.0 } else { used as f64 / (slots * per_slot) };
    Totals {
        goodput_mbps: mbps(all.downloaded, seconds),
        upload_mbps: mbps(all.uploaded, seconds),
        acks_in_per_s: per_second(all.acks_in),
        acks_discarded_per_s: per_second(all.acks_discarded),
        acks_sent_per_s: per_second(all.acks_sent),
        rtt_mean_ms: ratio(all.rtt_ns, all.rtt_samples) / 1e6,
        retransmission_share: ratio(all.retransmissions, all.segments),
        jain_index: jain(stations.iter().map(|s| (s.downloaded + s.uploaded) as f64)),
        downlink_block_bytes: ratio(all.downlink_block_bytes, all.downlink_blocks),
        downlink_prb_share: of_slots(all.downlink_prbs, capacity.downlink_prbs),
        uplink_prb_share: of_slots(all.uplink_prbs, capacity.uplink_prbs),
        uplink_grant_share: of_slots(all.grants, capacity.uplink_grants),
        harq_retransmission_share: ratio(harq, all.downlink_blocks + all.uplink_blocks + harq),
        scheduling_requests_per_s: per_second(all.scheduling_requests),
        sr_wait_mean_ms: ratio(all.request_wait_ns, all.request_waits) / 1e6,
        random_accesses_per_s: per_second(all.random_accesses),
        random_access_mean_ms: mean_ms(all.contention_resolution_ns, all.contention_resolutions),
        preamble_collision_share: ratio(all.preamble_collisions, all.preambles),
        uplink_block_limited_share: ratio(all.prb_limited_grants, all.grants),
        uplink_power_limited_share: ratio(all.power_limited_grants, all.grants),
        downlink_queue_drops_per_s: per_second(all.downlink_queue_drops),
        radio_losses_per_s: per_second(all.radio_losses),
        pdcp_discards_per_s: per_second(all.pdcp_discards),
        uplink_queue_drops_per_s: per_second(all.uplink_queue_drops),
        link_sent_mbps: mbps(all.link_bytes, seconds),
        link_delay_mean_ms: ratio(all.link_queued_ns, all.link_sent) / 1e6,
        udp_loss_share: ratio(all.udp_sent.saturating_sub(all.udp_received), all.udp_sent),
        udp_delay_mean_ms: ratio(all.udp_delay_ns, all.udp_received) / 1e6,
        ..Totals::default()
    }
}

/// `totals` with the figures of the applications' ends, and of the senders whose round-trip time includes the
/// radio.
pub(super) fn with_senders(totals: Totals, ends: &SenderSums, over_radio: &SenderSums) -> Totals {
    let (limits, rtt) = (LimitShares::new(&ends.times), over_radio.round_trip());
    Totals {
        handshake_share: limits.handshake,
        application_share: limits.application,
        send_buffer_share: limits.send_buffer,
        receive_window_share: limits.receive_window,
        congestion_window_share: limits.congestion_window,
        pacing_share: limits.pacing,
        recovery_share: limits.recovery,
        timeout_share: limits.timeout,
        rtt_downlink_queue_share: rtt.downlink_queue,
        rtt_grant_share: rtt.grant,
        rtt_uplink_queue_share: rtt.uplink_queue,
        rtt_harq_share: rtt.downlink_harq + rtt.uplink_harq,
        ..totals
    }
}

/// `totals` of an emulation, with NaN for figures that were not measured: TCP's limits without simulated
/// senders, and shares and means of nothing. `simulated` says whether there was simulated traffic.
pub(super) fn of_emulation(
    mut totals: Totals,
    stations: &[Counters],
    senders: &SenderSums,
    simulated: bool,
) -> Totals {
    let mut all = Counters::default();
    stations.iter().for_each(|station| all.add(station));
    let mut blank = |measured: bool, figures: &[fn(&mut Totals) -> &mut f64]| {
        if !measured {
            figures.iter().for_each(|figure| *figure(&mut totals) = f64::NAN);
        }
    };
    blank(all.rtt_samples > 0, &[|t| &mut t.rtt_mean_ms, |t| &mut t.rtt_p95_ms]);
    blank(all.segments > 0, &[|t| &mut t.retransmission_share]);
    blank(all.downloaded + all.uploaded > 0, &[|t| &mut t.jain_index]);
    blank(all.udp_sent > 0, &[|t| &mut t.udp_loss_share, |t| &mut t.udp_delay_mean_ms]);
    blank(simulated, &[|t| &mut t.stations_without_service]);
    blank(
        senders.any(),
        &[
            |t| &mut t.handshake_share,
            |t| &mut t.application_share,
            |t| &mut t.send_buffer_share,
            |t| &mut t.receive_window_share,
            |t| &mut t.congestion_window_share,
            |t| &mut t.pacing_share,
            |t| &mut t.recovery_share,
            |t| &mut t.timeout_share,
            |t| &mut t.rtt_downlink_queue_share,
            |t| &mut t.rtt_grant_share,
            |t| &mut t.rtt_uplink_queue_share,
            |t| &mut t.rtt_harq_share,
        ],
    );
    totals
}

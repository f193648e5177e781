//! What is read off a model at one moment: per station, everything that only ever grows. The figures of a run are
//! differences between two readings.

use crate::link::Link;
use crate::model::{Access, Model};
use paceline_net::{DropReason, SduQueue};
use paceline_ran::{Cell, LinkStats};

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }
        impl $name {
            /// What was counted since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field - earlier.$field,)* }
            }
            /// Adds `other` to every counter.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counters! {
    /// Counters of one station.
    Counters {
        /// Payload bytes acknowledged towards the station.
        downloaded,
        /// Payload bytes acknowledged from the station.
        uploaded,
        /// Data segments that passed the monitor.
        segments,
        /// Of these, sent before.
        retransmissions,
        /// UDP datagrams sent.
        udp_sent,
        /// UDP datagrams received, either side.
        udp_received,
        /// Sum of their one-way delays in nanoseconds.
        udp_delay_ns,
        /// Sum of round-trip times in nanoseconds.
        rtt_sum,
        /// Number of round-trip times.
        rtt_count,
        /// Pure ACKs that reached the uplink buffer.
        acks_in,
        /// Pure ACKs that the filter discarded.
        acks_discarded,
        /// Pure ACKs that left the uplink buffer.
        acks_sent,
        /// Scheduling requests.
        scheduling_requests,
        /// Times that dsr-TransMax scheduling requests were in vain.
        request_failures,
        /// Waits for a grant that a scheduling request ended.
        request_waits,
        /// Their sum in nanoseconds.
        request_wait_ns,
        /// Random access procedures begun.
        random_accesses,
        /// Of these, ended by contention resolution.
        resolved,
        /// Sum of their durations in TTIs.
        resolved_ttis,
        /// Preambles sent.
        preambles,
        /// Of these, collided.
        collisions,
        /// Times that preambleTransMax preambles were in vain.
        access_failures,
        /// Connections re-established.
        reestablishments,
        /// Sum of the times without service in TTIs.
        reestablishment_ttis,
        /// Uplink grants.
        grants,
        /// Of these, kept small by the station's power.
        power_limited,
        /// Of these, kept small by a shortage of resource blocks.
        block_limited,
        /// Power headroom reports sent.
        headroom_reports,
        /// Sum of their values 0..=63.
        headroom_sum,
        /// Packets dropped at the eNB's buffer, or at a link's queue in its place.
        downlink_queue_drops,
        /// Packets dropped at the uplink queue of a link in place of the cell.
        uplink_queue_drops,
        /// Packets lost below the buffers, both directions.
        radio_losses,
        /// Packets that a link's downlink has sent.
        link_sent,
        /// Their bytes, headers included.
        link_bytes,
        /// Sum of their times from arrival at the queue to last byte sent, ns.
        link_queued_ns,
        /// Packets that PDCP's discard timer ended, both directions.
        pdcp_discards,
        /// Downlink transport blocks.
        downlink_blocks,
        /// Their bytes.
        downlink_block_bytes,
        /// Sum of their MCS indices.
        downlink_mcs_sum,
        /// Downlink resource blocks, retransmissions included.
        downlink_prb,
        /// Downlink HARQ retransmissions.
        downlink_harq_retransmissions,
        /// Uplink transport blocks.
        uplink_blocks,
        /// Their bytes.
        uplink_block_bytes,
        /// Of these, padding.
        uplink_padding_bytes,
        /// Sum of their MCS indices.
        uplink_mcs_sum,
        /// Uplink resource blocks, retransmissions included.
        uplink_prb,
        /// Uplink HARQ retransmissions.
        uplink_harq_retransmissions,
        /// Packets that left the eNB's buffer, or the downlink's queue of a link.
        downlink_packets,
        /// Time that they had spent there, over all of them, in nanoseconds.
        downlink_buffer_wait_ns,
        /// From the first transmission of a decoded downlink block to the last, in TTIs.
        downlink_harq_wait_ttis,
        /// Packets that left the station's buffer, or the uplink's queue of a link.
        uplink_packets,
        /// Time that they had spent there, over all of them, in nanoseconds.
        uplink_buffer_wait_ns,
        /// Time that packets spent there waiting for the first block since the buffer was empty.
        grant_wait_ns,
        /// From the first transmission of a decoded uplink block to the last, in TTIs.
        uplink_harq_wait_ttis,
    }
}

fn radio_losses(stats: &LinkStats) -> u64 {
    use DropReason::{HarqFailed, RadioLinkFailure, RlcReassembly};
    [HarqFailed, RlcReassembly, RadioLinkFailure].iter().map(|reason| stats.dropped.of(*reason)).sum()
}

/// Reads every station.
pub fn read(model: &Model) -> Vec<Counters> {
    let flows = model.monitor().counters();
    let read_station = |station: usize| {
        let mut counters = match model.access() {
            Access::Cell(cell) => of_cell(cell, station),
            Access::Link(link) => of_link(link, station, flows[station].acks),
        };
        let flow = &flows[station];
        counters.downloaded = flow.downloaded;
        counters.uploaded = flow.uploaded;
        counters.segments = flow.segments;
        counters.retransmissions = flow.retransmissions;
        counters.rtt_sum = flow.rtt_sum;
        counters.rtt_count = flow.rtt_count;
        if let Some((server, host)) = model.udp(station) {
            counters.downloaded += host.received_bytes;
            counters.uploaded += server.received_bytes;
            counters.rtt_sum += server.rtt_ns + host.rtt_ns;
            counters.rtt_count += server.answers + host.answers;
            counters.udp_sent = server.sent + host.sent;
            counters.udp_received = server.received + host.received;
            counters.udp_delay_ns = server.delay_ns + host.delay_ns;
        }
        counters
    };
    (0..model.stations()).map(read_station).collect()
}

fn of_link(link: &Link, station: usize, acks: u64) -> Counters {
    let (down, up) = (link.downlink(station), link.uplink(station));
    Counters {
        acks_in: acks,
        acks_sent: acks,
        downlink_queue_drops: down.queue_drops,
        uplink_queue_drops: up.queue_drops,
        radio_losses: down.losses + up.losses,
        link_sent: down.sent,
        link_bytes: down.sent_bytes,
        link_queued_ns: down.queued_ns,
        downlink_packets: down.sent,
        downlink_buffer_wait_ns: down.queued_ns,
        uplink_packets: up.sent,
        uplink_buffer_wait_ns: up.queued_ns,
        ..Counters::default()
    }
}

fn of_cell(cell: &Cell, station: usize) -> Counters {
    let (down, up) = (cell.downlink(station), cell.uplink(station));
    let access = cell.access(station);
    let buffer = cell.uplink_buffer(station).counters();
    let waits = [cell.downlink_buffer(station), cell.uplink_buffer(station)].map(SduQueue::waited);
    Counters {
        acks_in: buffer.acks_in,
        acks_discarded: buffer.acks_discarded,
        acks_sent: buffer.acks_out,
        scheduling_requests: access.requests,
        request_failures: access.request_failures,
        request_waits: access.request_waits,
        request_wait_ns: access.request_wait_ns,
        random_accesses: access.random_accesses,
        resolved: access.resolved,
        resolved_ttis: access.resolved_ttis,
        preambles: access.preambles,
        collisions: access.collisions,
        access_failures: access.access_failures,
        reestablishments: access.reestablishments,
        reestablishment_ttis: access.reestablishment_ttis,
        grants: access.grants,
        power_limited: access.power_limited,
        block_limited: access.block_limited,
        headroom_reports: access.headroom_reports,
        headroom_sum: access.headroom_sum,
        downlink_queue_drops: down.dropped.of(DropReason::QueueFull),
        radio_losses: radio_losses(down) + radio_losses(up),
        pdcp_discards: down.dropped.of(DropReason::PdcpDiscard) + up.dropped.of(DropReason::PdcpDiscard),
        downlink_blocks: down.blocks,
        downlink_block_bytes: down.block_bytes,
        downlink_mcs_sum: down.mcs_sum,
        downlink_prb: down.prb,
        downlink_harq_retransmissions: down.retransmissions,
        uplink_blocks: up.blocks,
        uplink_block_bytes: up.block_bytes,
        uplink_padding_bytes: up.padding_bytes,
        uplink_mcs_sum: up.mcs_sum,
        uplink_prb: up.prb,
        uplink_harq_retransmissions: up.retransmissions,
        downlink_packets: waits[0].packets,
        downlink_buffer_wait_ns: waits[0].ns,
        downlink_harq_wait_ttis: down.harq_wait_ttis,
        uplink_packets: waits[1].packets,
        uplink_buffer_wait_ns: waits[1].ns,
        grant_wait_ns: up.grant_wait_ns,
        uplink_harq_wait_ttis: up.harq_wait_ttis,
        ..Counters::default()
    }
}

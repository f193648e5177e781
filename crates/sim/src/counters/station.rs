//! Counters of one station since the start of the run. Every field only grows: a figure over an interval is
//! the difference between two readings.

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }
        impl $name {
            /// Difference to an earlier reading of the same counters.
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
        /// Downloaded payload bytes that the station acknowledged; for UDP, payload bytes that it received.
        downloaded,
        /// Uploaded payload bytes that the server acknowledged; for UDP, payload bytes that it received.
        uploaded,
        /// TCP segments with payload that passed the monitor, both directions.
        segments,
        /// Of these, retransmissions.
        retransmissions,
        /// UDP datagrams sent by the station and its server.
        udp_sent,
        /// UDP datagrams received by the station and its server.
        udp_received,
        /// Sum of the one-way delays of received UDP datagrams, ns.
        udp_delay_ns,
        /// Sum of the measured round-trip times, ns.
        rtt_ns,
        /// Number of measured round-trip times.
        rtt_samples,
        /// Pure ACKs that arrived at the uplink buffer.
        acks_in,
        /// Pure ACKs that the ACK filter discarded.
        acks_discarded,
        /// Pure ACKs that left the uplink buffer.
        acks_sent,
        /// Scheduling requests sent.
        scheduling_requests,
        /// Times that dsr-TransMax scheduling requests were sent without a grant (TS 36.321 5.4.4).
        scheduling_request_failures,
        /// Waits for a grant that began with a scheduling request and have ended.
        request_waits,
        /// Sum of these waits, ns.
        request_wait_ns,
        /// Random access procedures started.
        random_accesses,
        /// Of these, completed by contention resolution.
        contention_resolutions,
        /// Sum of the durations of completed procedures, ns.
        contention_resolution_ns,
        /// Preambles sent.
        preambles,
        /// Of these, chosen by another station in the same PRACH occasion.
        preamble_collisions,
        /// Times that preambleTransMax preambles were sent without success (TS 36.321 5.1.5).
        random_access_failures,
        /// RRC connections re-established after a radio-link failure.
        reestablishments,
        /// Sum of the times from failure to service, ns.
        reestablishment_ns,
        /// Uplink grants for new transmissions.
        grants,
        /// Of these, limited by the station's transmit power.
        power_limited_grants,
        /// Of these, limited by the number of free resource blocks.
        prb_limited_grants,
        /// Power headroom reports sent.
        headroom_reports,
        /// Sum of the reported values, 0 to 63 each (TS 36.133 9.1.8.4).
        headroom_index_sum,
        /// Packets dropped by the full downlink buffer of the eNB, or by the downlink queue of a link.
        downlink_queue_drops,
        /// Packets dropped by the full uplink queue of a link; 0 for a cell.
        uplink_queue_drops,
        /// Packets lost by HARQ, RLC reassembly or radio-link failure, or by a link; both directions.
        radio_losses,
        /// Packets that the downlink of a link has sent; 0 for a cell.
        link_sent,
        /// Bytes of these packets, headers included.
        link_bytes,
        /// Sum of the times of these packets from arrival at the queue to the last byte sent, ns.
        link_queued_ns,
        /// Packets dropped by PDCP's discard timer (TS 36.323 5.4), both directions.
        pdcp_discards,
        /// Downlink transport blocks, without retransmissions.
        downlink_blocks,
        /// Bytes of these blocks.
        downlink_block_bytes,
        /// Sum of the MCS indices of these blocks.
        downlink_mcs_index_sum,
        /// Sum of the effective SINRs of these blocks above [`paceline_ran::SINR_ORIGIN_DB`], 1/1000 dB.
        downlink_sinr_millidecibels,
        /// Slots in which the station had downlink data and its SINR allowed no MCS.
        downlink_slots_without_mcs,
        /// Sum of the times in which a full window of RLC AM held downlink data back, ns.
        downlink_window_stall_ns,
        /// Downlink resource blocks, retransmissions included.
        downlink_prbs,
        /// Downlink HARQ retransmissions.
        downlink_harq_retransmissions,
        /// Uplink transport blocks, without retransmissions.
        uplink_blocks,
        /// Bytes of these blocks.
        uplink_block_bytes,
        /// Padding in these blocks, bytes.
        uplink_padding_bytes,
        /// Sum of the MCS indices of these blocks.
        uplink_mcs_index_sum,
        /// Sum of the effective SINRs of these blocks above [`paceline_ran::SINR_ORIGIN_DB`], 1/1000 dB.
        uplink_sinr_millidecibels,
        /// Slots in which the station had uplink data and its SINR allowed no MCS.
        uplink_slots_without_mcs,
        /// Sum of the times in which a full window of RLC AM held uplink data back, ns.
        uplink_window_stall_ns,
        /// Uplink resource blocks, retransmissions included.
        uplink_prbs,
        /// Uplink HARQ retransmissions.
        uplink_harq_retransmissions,
        /// Packets that left the eNB's downlink buffer, or the downlink queue of a link.
        downlink_packets,
        /// Sum of the times that these packets were in the buffer, ns.
        downlink_buffer_wait_ns,
        /// Sum over decoded downlink blocks of the time from first to last transmission, ns.
        downlink_harq_wait_ns,
        /// Packets that left the station's uplink buffer, or the uplink queue of a link.
        uplink_packets,
        /// Sum of the times that these packets were in the buffer, ns.
        uplink_buffer_wait_ns,
        /// Part of this sum before the first transport block after the buffer was empty, ns.
        grant_wait_ns,
        /// Sum over decoded uplink blocks of the time from first to last transmission, ns.
        uplink_harq_wait_ns,
    }
}

//! From Msg3 to the end of contention, at one station. Msg3 is a block of the station's uplink HARQ process.

use super::formats::{self, MSG3_PROCESS};
use crate::cell::config::Carrier;
use crate::cell::station::Station;
use crate::mac::buffer_report::BufferReport;
use crate::mac::harq::BlockKind;
use crate::mac::pdu as mac;
use crate::mac::random_access::{Cause, Procedure};
use crate::rat::Rat;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Output;
use std::collections::VecDeque;

/// Bytes of the C-RNTI control element with its sub-header (TS 36.321 §6.1.3.2).
const C_RNTI_BYTES: u32 = 3;
/// Bytes of the short BSR with its sub-header (TS 36.321 §6.1.3.1).
const BSR_BYTES: u32 = 2;

/// Starts Msg3 in the station's HARQ process if this is its slot; a block in the process is given up.
/// Returns whether it starts.
pub fn start_msg3(
    slot: Slot,
    carrier: &Carrier,
    station: &mut Station,
    output: &mut VecDeque<Output>,
) -> bool {
    let Some(procedure) = &mut station.procedure else { return false };
    let Some(grant) = procedure.msg3(slot) else { return false };
    let access = &carrier.config.access;
    let ((mcs, n_prb), size) = (formats::msg3(carrier), carrier.pusch_size);
    let process = carrier.timing.uplink.process_in(slot).unwrap_or(MSG3_PROCESS);
    procedure.on_msg3(slot, process, carrier.config.random_access.contention_timer);
    let cause = procedure.cause;
    if let Some(old) = station.uplink.mac.harq.block(process) {
        station.estimate.on_lost(old.first_sent_at, access.sr_grant);
        station.uplink.give_up(process, output);
    }
    let bits = mcs.block_bits(size, n_prb);
    let mut pdu = mac::Pdu { padding: bits / 8, ..mac::Pdu::default() };
    if cause == Cause::SchedulingRequest {
        let bytes = station.uplink_available();
        pdu.bsr = Some(match carrier.config.rat {
            Rat::Lte => BufferReport::lte(bytes),
            Rat::Nr(_) => BufferReport::nr_short(bytes),
        });
        pdu.padding = (bits / 8).saturating_sub(C_RNTI_BYTES + BSR_BYTES);
        station.access.on_block(slot, carrier.start(slot), access, true, || false);
    }
    let kind = if grant.collided { BlockKind::CollidedMsg3 } else { BlockKind::Msg3 };
    let block = station.uplink.mac.start(process, pdu, mcs, size, grant.prbs.len() as u16);
    block.set_signalling(kind, grant.prbs);
    true
}
/// A grant to a station whose Msg3 carried its C-RNTI resolves contention.
pub fn resolve_by_grant(slot: Slot, station: &mut Station) {
    let of_request = |procedure: &&mut Box<Procedure>| {
        procedure.cause == Cause::SchedulingRequest && procedure.contending()
    };
    if let Some(procedure) = station.procedure.as_mut().filter(of_request) {
        procedure.resolve(slot);
        station.access.stats.contention_resolutions += 1;
        station.access.stats.contention_resolution_slots += slot.since(procedure.started_at);
    }
}
/// A downlink block of a station was decoded. If it was Msg4, contention is resolved, and service begins
/// after the signalling.
pub fn resolve_by_msg4(slot: Slot, carrier: &Carrier, station: &mut Station, process: usize) {
    let config = &carrier.config.random_access;
    let of_msg4 = |procedure: &&mut Box<Procedure>| procedure.contending() && procedure.msg4 == Some(process);
    if let Some(procedure) = station.procedure.as_mut().filter(of_msg4) {
        // The station acts on Msg4 when it acknowledges it.
        let resolved_at = carrier.timing.acknowledged_at(slot);
        let signalling = match procedure.cause {
            Cause::Reestablishment => config.reestablishment,
            Cause::Initial | Cause::SchedulingRequest => config.setup,
            // RRCConnectionReconfigurationComplete is in Msg3.
            Cause::Handover => SlotSpan(0),
        };
        procedure.resolve(resolved_at + signalling);
        station.access.stats.contention_resolutions += 1;
        station.access.stats.contention_resolution_slots += resolved_at.since(procedure.started_at);
    }
}

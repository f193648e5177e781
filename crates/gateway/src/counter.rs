//! The gateway's counters: their identifiers in the program ([`Counter`]), their names in a status and in
//! metrics, and their values.

use paceline_pep::accelerator::BypassReason;
use paceline_pep::{AcceleratorStats, KeepReason};
use std::collections::BTreeMap;

macro_rules! counters {
    (plain { $($plain:ident = $text:literal, $help:literal;)* } labelled { $($name:ident = $labelled:literal in $family:ident;)* }) => {
        /// One counter. The order is that of the metrics.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Counter {
            /// Connections that were not accelerated, by reason.
            Bypassed(BypassReason),
            $(#[doc = concat!("Counter `", $labelled, "`.")] $name,)*
            /// ACKs that the filter forwarded, by reason.
            Kept(KeepReason),
            $(#[doc = $help] $plain,)*
        }

        impl Counter {
            /// Counters that are a metric of their own.
            pub const PLAIN: &'static [Self] = &[$(Self::$plain),*];
            /// Counters that share a metric with others, without those by reason.
            pub const LABELLED: &'static [Self] = &[$(Self::$name),*];

            /// The name in a status.
            pub fn name(self) -> &'static str {
                match self {
                    Self::Bypassed(reason) => reason.name(),
                    Self::Kept(reason) => reason.name(),
                    $(Self::$name => $labelled,)*
                    $(Self::$plain => $text,)*
                }
            }
            /// The metric of which this counter is one label value; None for a metric of its own.
            pub fn family(self) -> Option<Family> {
                match self {
                    Self::Bypassed(_) => Some(Family::Bypassed),
                    Self::Kept(_) => Some(Family::Kept),
                    $(Self::$name => Some(Family::$family),)*
                    $(Self::$plain => None,)*
                }
            }
            /// The help text of the metric, without a full stop.
            pub fn help(self) -> &'static str {
                match self {
                    $(Self::$plain => $help,)*
                    labelled => labelled.family().map_or("", Family::help),
                }
            }
        }
    };
}

counters! {
    plain {
        Flows = "flows", "Connections accelerated so far";
        FlowsEnded = "flows-ended", "Accelerated connections that ended";
        FlowsDetached = "flows-detached", "Accelerated connections that went on end to end";
        FlowsReset = "flows-reset", "Connections reset at both ends by the gateway";
        BytesIn = "bytes-in", "Payload bytes taken from servers";
        BytesDelivered = "bytes-delivered", "Payload bytes acknowledged by mobile devices";
        AcksSent = "acks-sent", "Acknowledgments sent to servers";
        EarlyAcks = "early-acks", "Acknowledgments sent to servers for data that devices had not acknowledged";
        AcksAbsorbed = "acks-absorbed", "Pure acknowledgments of devices that were not forwarded";
        DuplicatesSuppressed = "duplicates-suppressed", "Duplicate acknowledgments of devices that were not forwarded";
        SegmentsSent = "segments-sent", "Segments sent to devices for the first time";
        Retransmissions = "retransmissions", "Segments retransmitted to devices";
        Timeouts = "timeouts", "Retransmission timeouts";
        TailProbes = "tail-probes", "Tail loss probes";
        WindowProbes = "window-probes", "Probes of zero windows of devices";
        ServerRetransmissions = "server-retransmissions", "Segments of servers without new data";
        Conflicts = "conflicts", "Segments of servers with other bytes under known sequence numbers";
        Corrupt = "corrupt", "Segments with a wrong checksum";
        Invalid = "invalid", "Segments with sequence numbers outside every window";
        OptimisticAcks = "optimistic-acks", "Acknowledgments of devices for bytes that were never sent";
        Refused = "refused", "Segments dropped because buffers were full";
        OvershootDrops = "overshoot-drops", "Times that data past the window of a device was dropped, or answered by a reset";
        BlackHoles = "black-holes", "Connections whose full segments were lost without a packet-too-big message";
        OpeningsForgotten = "openings-forgotten", "Handshakes forgotten to make room";
        AmbiguousNetworks = "ambiguous-networks", "Packets of two networks under the same addresses and ports";
        UnknownLinks = "unknown-links", "Packets dropped because the link header of their connection is unknown";
        ServerProbes = "server-probes", "Probes of servers because the tunnel towards a device was doubtful";
        FramesTunnelled = "frames-tunnelled", "Frames received in a GTP-U tunnel or a PPPoE session";
        FilterAcksIn = "filter-acks-in", "Pure acknowledgments that entered the ACK filter";
        FilterAcksDiscarded = "filter-acks-discarded", "Acknowledgments that the ACK filter discarded";
        FilterQueueDrops = "filter-queue-drops", "Packets dropped because the ACK filter's queue was full";
        FramesIn = "frames-in", "Frames received by the workers";
        FramesOut = "frames-out", "Frames sent by the workers";
        FrameBytesIn = "frame-bytes-in", "Bytes of frames received by the workers";
        FrameBytesFromServers = "frame-bytes-from-servers", "Bytes of frames received on the servers' side";
        FrameBytesFromDevices = "frame-bytes-from-devices", "Bytes of frames received on the devices' side";
        FramesUnreadable = "frames-unreadable", "Frames that could not be parsed and were forwarded unchanged";
        FramesLostIn = "frames-lost-in", "Frames lost because a worker was too slow";
        FramesLostOut = "frames-lost-out", "Frames lost because an interface was too slow";
        AcksOut = "acks-out", "Empty segments that the workers sent towards servers";
        FramesRefused = "frames-refused", "Times that the queue of an interface refused a frame, which was kept and sent later";
        ConnectionsLeftAlone = "connections-left-alone", "Connections left to the kernel after their first packets";
        UploadsLeftAlone = "uploads-left-alone", "Times that a connection's upload was left to the kernel";
        Turns = "turns", "Turns of the workers";
        Absences = "absences", "Pauses of a worker in which the kernel may have forwarded packets past it";
        JournalWrites = "journal-writes", "Records written to the journal of exposed connections";
        FlowsDetachedAtEnd = "flows-detached-at-end", "Connections that went on end to end while the gateway was being stopped";
        FlowsResetAtEnd = "flows-reset-at-end", "Connections reset while the gateway was being stopped";
        PacketsTaken = "packets-taken", "Packets given to the workers by the kernel program";
        AcksLeft = "acks-left", "Acknowledgments of the gateway that left this machine towards servers, in routed mode";
        PacketsSentAcross = "packets-sent-across", "Packets of uploads redirected from port to port in the kernel, past the bridge";
    }
    labelled {
        LeftByPolicy = "packets-left-by-policy" in LeftBy;
        LeftByConnection = "packets-left-by-connection" in LeftBy;
        LeftByOverload = "packets-left-by-overload" in LeftBy;
        LeftByExperiment = "packets-left-by-experiment" in LeftBy;
        ComparedBytesFiltered = "compared-bytes-filtered" in ComparedBytes;
        ComparedBytesHeldOut = "compared-bytes-held-out" in ComparedBytes;
        ComparedRepeatedFiltered = "compared-repeated-filtered" in ComparedRepeated;
        ComparedRepeatedHeldOut = "compared-repeated-held-out" in ComparedRepeated;
        ComparedTimeoutsFiltered = "compared-timeouts-filtered" in ComparedTimeouts;
        ComparedTimeoutsHeldOut = "compared-timeouts-held-out" in ComparedTimeouts;
        LeftWithoutPulse = "packets-left-without-pulse" in LeftWithout;
    }
}

/// Counters that are one metric with a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Connections that are not accelerated.
    Bypassed,
    /// Packets left to the kernel, by cause.
    LeftBy,
    /// Payload bytes of compared connections.
    ComparedBytes,
    /// Retransmitted payload bytes of compared connections.
    ComparedRepeated,
    /// Retransmission timeouts of compared connections.
    ComparedTimeouts,
    /// ACKs that the filter forwarded.
    Kept,
    /// Packets left to the kernel because their worker had no heartbeat.
    LeftWithout,
}

impl Family {
    /// All families, by definition in the order of the metrics.
    pub const ALL: [Self; 7] = [
        Self::Bypassed,
        Self::LeftBy,
        Self::ComparedBytes,
        Self::ComparedRepeated,
        Self::ComparedTimeouts,
        Self::Kept,
        Self::LeftWithout,
    ];

    /// Name of the metric and of its label.
    pub fn metric(self) -> (&'static str, &'static str) {
        match self {
            Self::Bypassed => ("bypassed", "reason"),
            Self::LeftBy => ("packets_left", "by"),
            Self::ComparedBytes => ("filter_compared_bytes", "group"),
            Self::ComparedRepeated => ("filter_repeated_bytes", "group"),
            Self::ComparedTimeouts => ("filter_timeouts", "group"),
            Self::Kept => ("filter_acks_kept", "reason"),
            Self::LeftWithout => ("packets_left_without", "missing"),
        }
    }
    /// The common prefix of the counters' names; the rest of a name is the label's value.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Bypassed => "bypassed-",
            Self::LeftBy => "packets-left-by-",
            Self::ComparedBytes => "compared-bytes-",
            Self::ComparedRepeated => "compared-repeated-",
            Self::ComparedTimeouts => "compared-timeouts-",
            Self::Kept => "kept-",
            Self::LeftWithout => "packets-left-without-",
        }
    }
    /// The help text of the metric, without a full stop.
    pub fn help(self) -> &'static str {
        match self {
            Self::Bypassed => "Connections that are not accelerated (mid-flow: their data segments)",
            Self::LeftBy => "Packets left to the kernel",
            Self::ComparedBytes => "Payload bytes that servers sent to connections that are compared",
            Self::ComparedRepeated => {
                "Retransmitted payload bytes that servers sent to connections that are compared"
            }
            Self::ComparedTimeouts => {
                "Retransmissions after 200 ms of silence that servers sent to connections that are compared"
            }
            Self::Kept => "Acknowledgments that the ACK filter forwarded, by the last rule that required it",
            Self::LeftWithout => "Packets left to the kernel because their worker had no heartbeat",
        }
    }
}

/// Values of counters. Counters of a function that the gateway does not have, such as the ACK filter, are
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterValues(BTreeMap<Counter, u64>);

impl CounterValues {
    /// The value of a counter; 0 if it is absent.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(&counter).copied().unwrap_or(0)
    }
    /// Adds to counters.
    pub fn extend(&mut self, values: impl IntoIterator<Item = (Counter, u64)>) {
        for (counter, value) in values {
            *self.0.entry(counter).or_default() += value;
        }
    }
    /// Adds another worker's values.
    pub fn add(&mut self, other: &Self) {
        self.extend(other.iter());
    }
    /// Counters with their values, in the order of [`Counter`].
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> {
        self.0.iter().map(|(counter, value)| (*counter, *value))
    }
    /// Values by name, for a status.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        self.iter().map(|(counter, value)| (counter.name().to_owned(), value)).collect()
    }
    /// Adds the counters of an accelerator.
    pub fn add_accelerator(&mut self, stats: &AcceleratorStats) {
        use Counter as C;
        self.extend([
            (C::Flows, stats.flows),
            (C::FlowsEnded, stats.flows_ended),
            (C::FlowsDetached, stats.flows_detached),
            (C::FlowsReset, stats.flows_reset),
            (C::BytesIn, stats.bytes_in),
            (C::BytesDelivered, stats.bytes_delivered),
            (C::AcksSent, stats.acks_sent),
            (C::EarlyAcks, stats.early_acks),
            (C::AcksAbsorbed, stats.acks_absorbed),
            (C::DuplicatesSuppressed, stats.duplicates_suppressed),
            (C::SegmentsSent, stats.segments_sent),
            (C::Retransmissions, stats.retransmissions),
            (C::Timeouts, stats.timeouts),
            (C::TailProbes, stats.tail_probes),
            (C::WindowProbes, stats.window_probes),
            (C::ServerRetransmissions, stats.server_retransmissions),
            (C::Conflicts, stats.conflicts),
            (C::Corrupt, stats.corrupt),
            (C::Invalid, stats.invalid),
            (C::OptimisticAcks, stats.optimistic_acks),
            (C::Refused, stats.refused),
            (C::OvershootDrops, stats.overshoot_drops),
            (C::BlackHoles, stats.black_holes),
            (C::OpeningsForgotten, stats.openings_forgotten),
        ]);
        self.extend(BypassReason::ALL.map(|reason| (C::Bypassed(reason), stats.bypassed(reason))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_family_begin_with_its_prefix_and_no_name_is_there_twice() {
        let mut counters = CounterValues::default();
        counters.add_accelerator(&AcceleratorStats::default());
        counters.extend(Counter::PLAIN.iter().chain(Counter::LABELLED).map(|counter| (*counter, 0)));
        counters.extend(KeepReason::ALL.map(|reason| (Counter::Kept(reason), 0)));
        for (counter, _) in counters.iter() {
            if let Some(family) = counter.family() {
                assert!(counter.name().starts_with(family.prefix()), "{counter:?}");
            }
        }
        assert_eq!(counters.by_name().len(), counters.iter().count());
    }
}

//! The counters of a gateway: their names and help texts for a status and for metrics, and a worker's values.
//!
//! Only text for people and monitoring systems has names: inside the program a counter is a [`Counter`].

use paceline_pep::accelerator::BypassReason;
use paceline_pep::{AcceleratorStats, KeepReason};
use std::collections::BTreeMap;

macro_rules! counters {
    (plain { $($plain:ident = $text:literal, $help:literal;)* } labelled { $($name:ident = $labelled:literal in $family:ident;)* }) => {
        /// One counter. The order is that of the metrics.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Counter {
            /// Connections that passed untouched, by reason.
            Bypassed(BypassReason),
            $(#[doc = concat!("Counter `", $labelled, "`.")] $name,)*
            /// ACKs that the filter let through, by reason.
            Kept(KeepReason),
            $(#[doc = $help] $plain,)*
        }

        impl Counter {
            /// Counters that have a metric of their own.
            pub const PLAIN: &'static [Self] = &[$(Self::$plain),*];
            /// Counters that share a metric with others, except those by reason.
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
            /// The metric that has this counter under a label; none for a metric of its own.
            pub fn family(self) -> Option<Family> {
                match self {
                    Self::Bypassed(_) => Some(Family::Bypassed),
                    Self::Kept(_) => Some(Family::Kept),
                    $(Self::$name => Some(Family::$family),)*
                    $(Self::$plain => None,)*
                }
            }
            /// A sentence for the metric, without a full stop.
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
        Flows = "flows", "Connections taken into acceleration";
        FlowsEnded = "flows-ended", "Accelerated connections that ended";
        FlowsDetached = "flows-detached", "Accelerated connections that went on end to end";
        FlowsReset = "flows-reset", "Connections reset at both ends by the gateway";
        BytesIn = "bytes-in", "Payload bytes taken from servers";
        BytesDelivered = "bytes-delivered", "Payload bytes acknowledged by mobile devices";
        AcksSent = "acks-sent", "Acknowledgments sent to servers";
        EarlyAcks = "early-acks", "Acknowledgments sent to servers for what devices did not have yet";
        AcksAbsorbed = "acks-absorbed", "Empty acknowledgments of devices that were not passed on";
        DuplicatesSuppressed = "duplicates-suppressed", "Duplicate acknowledgments of devices that were not passed on";
        SegmentsSent = "segments-sent", "Segments sent to devices for the first time";
        Retransmissions = "retransmissions", "Segments sent to devices again";
        Timeouts = "timeouts", "Retransmission timeouts";
        TailProbes = "tail-probes", "Probes of a tail that was not acknowledged";
        WindowProbes = "window-probes", "Probes of devices' zero windows";
        ServerRetransmissions = "server-retransmissions", "Segments of servers that brought nothing new";
        Conflicts = "conflicts", "Segments of servers that brought other bytes under known numbers";
        Corrupt = "corrupt", "Segments with a wrong checksum";
        Invalid = "invalid", "Segments with numbers that no endpoint would accept";
        OptimisticAcks = "optimistic-acks", "Acknowledgments of bytes that were never sent";
        Refused = "refused", "Segments not taken because buffers were full";
        OvershootDrops = "overshoot-drops", "Times that a device dropped what was sent past its window";
        BlackHoles = "black-holes", "Connections whose full segments were swallowed on the way to the device";
        OpeningsForgotten = "openings-forgotten", "Handshakes forgotten to make room";
        AmbiguousNetworks = "ambiguous-networks", "Packets of two networks under the same addresses and ports";
        UnknownLinks = "unknown-links", "Packets made for a connection whose link header is forgotten";
        FilterAcksIn = "filter-acks-in", "Empty acknowledgments that came to the ACK filter";
        FilterAcksDiscarded = "filter-acks-discarded", "Acknowledgments that the ACK filter took out";
        FilterQueueDrops = "filter-queue-drops", "Packets dropped because the filtered line's queue was full";
        FramesIn = "frames-in", "Frames received by the workers";
        FramesOut = "frames-out", "Frames sent by the workers";
        FrameBytesIn = "frame-bytes-in", "Bytes of frames received by the workers";
        FrameBytesFromServers = "frame-bytes-from-servers", "Bytes of frames received on the servers' side";
        FrameBytesFromDevices = "frame-bytes-from-devices", "Bytes of frames received on the devices' side";
        FramesLostIn = "frames-lost-in", "Frames lost because a worker was too slow";
        FramesLostOut = "frames-lost-out", "Frames lost because an interface was too slow";
        ConnectionsLeftAlone = "connections-left-alone", "Connections handed back to the kernel";
        UploadsLeftAlone = "uploads-left-alone", "Times that the kernel was given a connection's upload";
        Turns = "turns", "Turns of the workers";
        Absences = "absences", "Times that a worker was away for so long that packets may have passed it";
        JournalWrites = "journal-writes", "Records written to the journal of exposed connections";
        FlowsDetachedAtEnd = "flows-detached-at-end", "Connections that went on end to end while the gateway was being stopped";
        FlowsResetAtEnd = "flows-reset-at-end", "Connections reset while the gateway was being stopped";
        PacketsTaken = "packets-taken", "Packets taken out of the kernel's way";
        PacketsSentAcross = "packets-sent-across", "Packets of uploads sent from port to port in the kernel, past the bridge";
    }
    labelled {
        LeftByPolicy = "packets-left-by-policy" in LeftBy;
        LeftByConnection = "packets-left-by-connection" in LeftBy;
        LeftByOverload = "packets-left-by-overload" in LeftBy;
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
    /// Connections that pass untouched.
    Bypassed,
    /// Packets left to the kernel, by what decided so.
    LeftBy,
    /// Payload bytes of compared connections.
    ComparedBytes,
    /// Retransmitted payload bytes of compared connections.
    ComparedRepeated,
    /// Retransmission timeouts of compared connections.
    ComparedTimeouts,
    /// ACKs that the filter let through.
    Kept,
    /// Packets left to the kernel because a worker was absent.
    LeftWithout,
}

impl Family {
    /// All families, in the order of the metrics.
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
    /// The part that the names of the counters have in common; the rest is the label's value.
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
    /// A sentence for the metric, without a full stop.
    pub fn help(self) -> &'static str {
        match self {
            Self::Bypassed => "Connections that pass untouched (mid-flow: their data segments)",
            Self::LeftBy => "Packets left to the kernel",
            Self::ComparedBytes => "Payload bytes that servers sent to connections that are compared",
            Self::ComparedRepeated => {
                "Of the bytes that servers sent to connections that are compared, such as had been sent before"
            }
            Self::ComparedTimeouts => {
                "Times that servers sent something again to connections that are compared, after a silence"
            }
            Self::Kept => {
                "Acknowledgments that the ACK filter let through, by the rule that spoke for them last"
            }
            Self::LeftWithout => "Packets left to the kernel, a worker being absent",
        }
    }
}

/// Values of counters. A counter that does not exist in a gateway (those of an ACK filter, without one) is absent.
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
    /// Adds all values of another worker.
    pub fn add(&mut self, other: &Self) {
        self.extend(other.iter());
    }
    /// Counters with their values, in order.
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

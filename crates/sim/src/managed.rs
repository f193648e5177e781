//! A queue with active management in a link or a hop, with the distribution of the times that packets were in
//! it.

use hdrhistogram::Histogram;
use paceline_net::{Bytes, CodelConfig, DropReason, Instant, ManagedCounters, ManagedQueue, Packet, Queued};

/// A managed queue with its figures.
#[derive(Debug)]
pub(crate) struct Managed {
    queue: ManagedQueue,
    /// Times of the packets that left, us and as a sum in ns, since the last restart.
    sojourns_us: Histogram<u64>,
    sojourn_ns: u64,
    /// Counters at the last restart.
    before: ManagedCounters,
}

/// Figures of one or several like queues since the last restart.
#[derive(Clone, Debug)]
pub(crate) struct ManagedReading {
    /// Place in the model.
    pub name: String,
    /// Word of the discipline in a scenario.
    pub discipline: &'static str,
    pub counters: ManagedCounters,
    /// Sum of the times of the packets that left, ns.
    pub sojourn_ns: u64,
    /// Median, 95th and 99th percentile of these times, us.
    pub percentiles_us: [u64; 3],
}

impl Managed {
    /// A queue; `seed` determines the hash of the flows.
    pub fn new(config: &CodelConfig, seed: u64) -> Self {
        Self {
            queue: ManagedQueue::new(config, seed),
            sojourns_us: new_histogram(),
            sojourn_ns: 0,
            before: ManagedCounters::default(),
        }
    }
    /// A packet arrives.
    pub fn push(&mut self, now: Instant, packet: Packet, owner: usize) {
        self.queue.push(now, packet, owner);
    }
    /// The packet to send from `now` on.
    pub fn pop(&mut self, now: Instant) -> Option<Queued> {
        let queued = self.queue.pop(now)?;
        let sojourn = now.since(queued.arrived).as_nanos();
        self.sojourn_ns += sojourn;
        self.sojourns_us.saturating_record(sojourn / 1000);
        Some(queued)
    }
    /// The next dropped packet.
    pub fn pop_dropped(&mut self) -> Option<(Queued, DropReason)> {
        self.queue.pop_dropped()
    }
    /// Whether no packet is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Bytes of all queued packets.
    pub fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
    /// Starts the figures anew.
    pub fn restart(&mut self) {
        (self.sojourns_us, self.sojourn_ns, self.before) = (new_histogram(), 0, *self.queue.counters());
    }
    /// Figures of like queues together; none without queues.
    pub fn read<'a>(
        name: &str,
        discipline: &'static str,
        queues: impl IntoIterator<Item = &'a Self>,
    ) -> Option<ManagedReading> {
        let mut all: Option<(ManagedCounters, u64, Histogram<u64>)> = None;
        for queue in queues {
            let (now, before) = (queue.queue.counters(), queue.before);
            let (counters, ns, times) = all.get_or_insert_with(|| (Default::default(), 0, new_histogram()));
            counters.packets_in += now.packets_in - before.packets_in;
            counters.packets_out += now.packets_out - before.packets_out;
            counters.marks += now.marks - before.marks;
            counters.drops += now.drops - before.drops;
            counters.overflows += now.overflows - before.overflows;
            counters.new_flows += now.new_flows - before.new_flows;
            *ns += queue.sojourn_ns;
            times.add(&queue.sojourns_us).expect("the bounds are the same");
        }
        let (counters, sojourn_ns, times) = all?;
        let percentiles_us = [0.5, 0.95, 0.99].map(|share| times.value_at_quantile(share));
        Some(ManagedReading { name: name.to_owned(), discipline, counters, sojourn_ns, percentiles_us })
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}

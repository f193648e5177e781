//! The clock and the learned period, which the program gets from its loader.

use super::layout::{Acked, Hint, Settings};
use super::maps::{ONLY, read_hint};
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};
use nix::time::{ClockId, clock_gettime};
use paceline_net::pacing::Learner;
use paceline_net::{Duration, Instant};
use std::cell::RefCell;

/// Writes the program's hint.
pub struct ClockAndLearner {
    hint: MapHandle,
    learner: RefCell<Learner>,
}

impl ClockAndLearner {
    pub fn new(hint: MapHandle) -> Self {
        Self { hint, learner: RefCell::default() }
    }
    /// Learns from the ACKs that the program reported.
    pub fn read(&self, acks: &MapHandle) -> anyhow::Result<()> {
        let learn = |bytes: &[u8]| {
            if let Some(Acked { at_ns, rtt_us }) = Acked::from_bytes(bytes) {
                let rtt = (rtt_us > 0).then(|| Duration::from_micros(rtt_us));
                self.learner.borrow_mut().on_ack(Instant::from_nanos(at_ns), rtt);
            }
            0
        };
        let mut builder = RingBufferBuilder::new();
        builder.add(acks, learn).context("cannot read ACKs")?;
        builder.build().and_then(|ring| ring.consume()).context("cannot read ACKs")
    }
    /// Passes on the distance of the clocks and the period.
    pub fn tell(&mut self, settings: &Settings) -> anyhow::Result<()> {
        let ns = |clock| -> anyhow::Result<i128> {
            let time = clock_gettime(clock).context("cannot read a clock")?;
            Ok(i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec()))
        };
        let realtime_ns = (ns(ClockId::CLOCK_REALTIME)? - ns(ClockId::CLOCK_MONOTONIC)?).max(0) as u64;
        let learned = self.learner.borrow().learned().filter(|_| settings.learn != 0);
        let period_ns = learned.map_or(0, |learned| learned.period.as_nanos());
        let hint = Hint { realtime_ns, period_ns };
        if read_hint(&self.hint).ok() != Some(hint) {
            self.hint.update(&ONLY, &hint.to_bytes(), MapFlags::ANY).context("cannot pass on the period")?;
        }
        Ok(())
    }
}

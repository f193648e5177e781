//! Time of accelerated connections by the limit of the accelerator's sender: data of the server, the client's
//! window, or the accelerator's rate.
//!
//! The limit of a connection is read whenever a packet of it has passed, so that every moment between two
//! packets has the limit that applied after the first one.

use paceline_net::{Duration, FlowKey, Instant};
use paceline_pep::Accelerator;
use paceline_pep::accelerator::ClientLimit;
use paceline_tcp::{Limit, LimitTimes};
use std::collections::BTreeMap;

/// Times of all accelerated connections, by the key from server to station.
#[derive(Default)]
pub(crate) struct Ledger {
    flows: BTreeMap<FlowKey, Account>,
    /// Connections with packets since the last [`Ledger::update`].
    touched: Vec<FlowKey>,
}

/// Times of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    times: LimitTimes,
    /// The present limit, and since when; none while the connection is not accelerated.
    current: Option<(Limit, Instant)>,
    /// Largest window that the client has offered, bytes.
    window: u64,
    /// Sum of the times for which data was stored, and the packets that carried them.
    stored: Duration,
    data_packets: u64,
}

/// The accelerator's sender of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceleratedSender {
    pub times: LimitTimes,
    /// Largest window that the station has offered, bytes.
    pub window: u64,
    /// Mean time for which data was stored; none before the first.
    pub stored: Option<Duration>,
}

impl Ledger {
    /// A packet of a connection passes.
    pub fn touch(&mut self, key: FlowKey) {
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }
    /// Reads the limits of the connections with packets. Call when the accelerator has no more output.
    pub fn update(&mut self, now: Instant, accelerator: &mut Accelerator) {
        while let Some(key) = self.touched.pop() {
            let limit = accelerator.client_limit(&key);
            match (limit, self.flows.get_mut(&key)) {
                (limit, Some(account)) => account.set(now, limit),
                (None, None) => {}
                (limit, None) => self.flows.entry(key).or_default().set(now, limit),
            }
        }
    }
    /// The sender of a connection until `now`; none if it was never accelerated.
    pub fn account(&self, key: &FlowKey, now: Instant) -> Option<AcceleratedSender> {
        self.flows.get(key).map(|account| AcceleratedSender {
            times: account.times(now),
            window: account.window,
            stored: (account.data_packets > 0).then(|| account.stored / account.data_packets),
        })
    }
    /// A packet with data leaves for a station, after its data was stored for `age`.
    pub fn on_data(&mut self, key: &FlowKey, age: Duration) {
        if let Some(account) = self.flows.get_mut(key) {
            account.stored += age;
            account.data_packets += 1;
        }
    }
}

impl Account {
    fn set(&mut self, now: Instant, limit: Option<(ClientLimit, u64)>) {
        self.count(now);
        self.current = limit.map(|(limit, window)| {
            self.window = self.window.max(window);
            let limit = match limit {
                ClientLimit::Server | ClientLimit::Memory => Limit::Application,
                ClientLimit::Window => Limit::ReceiveWindow,
                ClientLimit::Rate => Limit::Pacing,
            };
            (limit, now)
        });
    }
    /// Adds the time until `now`.
    fn count(&mut self, now: Instant) {
        if let Some((limit, since)) = self.current {
            self.times.add(&LimitTimes::only(limit, now.since(since)));
            self.current = Some((limit, now));
        }
    }
    /// The times until `now`. A wait for the server without an end is left out: the server may have sent
    /// everything.
    fn times(&self, now: Instant) -> LimitTimes {
        let mut account = *self;
        account.current = account.current.filter(|(limit, _)| *limit != Limit::Application);
        account.count(now);
        account.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_between_packets_has_the_limit_after_the_first_one() {
        let ms = Instant::from_millis;
        let mut account = Account::default();
        account.set(ms(10), Some((ClientLimit::Rate, 5_000)));
        account.set(ms(40), Some((ClientLimit::Window, 8_000)));
        account.set(ms(50), Some((ClientLimit::Server, 7_000)));
        account.set(ms(55), Some((ClientLimit::Server, 7_000)));
        let of = |limit| account.times(ms(90)).of(limit).as_millis();
        assert_eq!([Limit::Pacing, Limit::ReceiveWindow, Limit::Application].map(of), [30, 10, 5]);
        assert_eq!(account.window, 8_000);
        account.set(ms(60), None);
        account.set(ms(95), Some((ClientLimit::Rate, 0)));
        assert_eq!(account.times(ms(100)).life().as_millis(), 55);
    }
}

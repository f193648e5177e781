//! Rate control: window and pacing rate of the connections of some stations.

use super::{Stepped, group_of, refused};
use crate::results::RunResult;
use crate::scenario::{Direction, Scenario, ScenarioError, Traffic};
use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_tcp::{Interval, Setting};

/// The least pacing rate. Chosen: a segment of 1,448 bytes leaves within twelve seconds.
const LEAST_RATE: Rate = Rate(1000);

/// The senders of a station over one step: sums over its connections.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RateReport {
    /// Simulated time at the end of the step.
    pub at: Instant,
    /// Length of the step.
    pub step: Duration,
    /// Payload bytes sent, retransmissions included.
    pub sent: Bytes,
    /// Payload bytes newly delivered.
    pub acked: Bytes,
    /// Payload bytes marked as lost.
    pub lost: Bytes,
    /// Mean of the round-trip times in seconds; none without samples.
    pub rtt_mean_s: Option<f64>,
    /// The least of them in seconds; none without samples.
    pub rtt_least_s: Option<f64>,
    /// Trend of the round-trip times: seconds per second.
    pub rtt_gradient: f64,
    /// The least round-trip time of the connections so far in seconds; none before the first sample.
    pub rtt_min_s: Option<f64>,
    /// Bytes in flight at the end of the step.
    pub in_flight: Bytes,
    /// Congestion windows in force at the end of the step.
    pub cwnd: Bytes,
    /// Connections that are open at the end of the step.
    pub connections: u64,
    /// Whether every transfer of the station is complete.
    pub complete: bool,
    /// Whether the run is over.
    pub over: bool,
}

/// A run in which the caller sets window and pacing rate of some stations' senders between steps.
pub struct RateEpisode {
    run: Stepped,
    senders: Vec<Senders>,
}

/// The senders of one station: its servers, or with an upload its own.
#[derive(Clone, Copy)]
struct Senders {
    station: usize,
    upload: bool,
}

impl RateEpisode {
    /// The start of a run, in which the senders of `stations` have no congestion control of their own.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        stations: &[usize],
        step: Duration,
    ) -> Result<Self, ScenarioError> {
        let senders =
            stations.iter().map(|&station| Senders::of(scenario, station)).collect::<Result<Vec<_>, _>>()?;
        let repeated =
            stations.iter().enumerate().find(|(index, station)| stations[..*index].contains(station));
        if let Some((_, station)) = repeated {
            return Err(refused("station", &station.to_string(), "each station once"));
        }
        let mut run = Stepped::new(scenario, seed, step)?;
        for Senders { station, upload } in &senders {
            run.model.change_senders(*station, *upload, |endpoint| endpoint.control_externally());
        }
        Ok(Self { run, senders })
    }
    /// Sets window and pacing rate of each station's connections, in their order, and advances by a step:
    /// a report for each station.
    pub fn step(&mut self, settings: &[Setting]) -> Vec<RateReport> {
        assert_eq!(settings.len(), self.senders.len(), "one setting for each station");
        let now = self.run.now();
        for (senders, setting) in self.senders.iter().zip(settings) {
            let setting = Setting { rate: setting.rate.map(|rate| rate.max(LEAST_RATE)), ..*setting };
            self.run.model.change_senders(senders.station, senders.upload, |endpoint| {
                endpoint.set_external(now, setting)
            });
        }
        let step = self.run.advance();
        self.senders.iter().map(|senders| senders.report(&mut self.run, step)).collect()
    }
    /// The figures of the run so far.
    pub fn finish(self) -> RunResult {
        self.run.finish()
    }
}

impl Senders {
    fn of(scenario: &Scenario, station: usize) -> Result<Self, ScenarioError> {
        let group = group_of(scenario, station)?;
        let stations = &scenario.stations[group];
        if stations.traffic != Traffic::Tcp {
            return Err(refused(&format!("station.{group}.traffic"), "udp", "tcp, whose senders are set"));
        }
        if stations.direction == Direction::None {
            let allowed = "download or upload, whose senders are set";
            return Err(refused(&format!("station.{group}.direction"), "none", allowed));
        }
        Ok(Self { station, upload: stations.direction == Direction::Upload })
    }
    fn report(self, run: &mut Stepped, step: Duration) -> RateReport {
        let mut all = Interval::default();
        let mut report =
            RateReport { at: run.now(), step, complete: true, over: run.is_over(), ..RateReport::default() };
        let mut least: Option<Duration> = None;
        run.model.read_senders(self.station, self.upload, |endpoint| {
            let interval = endpoint.take_interval().unwrap_or_default();
            let state = endpoint.snapshot();
            all.sent += interval.sent;
            all.acked += interval.acked;
            all.lost += interval.lost;
            all.rtt.merge(&interval.rtt);
            least = [least, state.min_rtt].into_iter().flatten().min();
            report.in_flight += state.in_flight;
            report.cwnd += state.cwnd;
            report.connections += u64::from(state.established);
            report.complete &= endpoint.is_complete();
        });
        RateReport {
            sent: all.sent,
            acked: all.acked,
            lost: all.lost,
            rtt_mean_s: all.rtt.mean_s(),
            rtt_least_s: all.rtt.least.map(Duration::as_secs_f64),
            rtt_gradient: all.rtt.gradient(),
            rtt_min_s: least.map(Duration::as_secs_f64),
            ..report
        }
    }
}

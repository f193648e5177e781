//! The scenario of a fit.
//!
//! A network with slots or scheduling requests becomes a cell, another one a link. A cell's bandwidth and
//! SINR are one of many pairs with the measured capacity: the narrowest channel that carries it, and the SINR
//! at which the simulated cell does. The delay of the core is the part of the measured round trip that the
//! simulated cell does not have.

use crate::estimate::pattern::{LTE as LTE_LETTERS, Slots};
use crate::fit::{Fit, Position};
use paceline_net::trace::Trace;
use paceline_net::{Duration, Instant};
use paceline_sim::{Scenario, ScenarioError, scenario, simulate};
use std::fmt::Write;

/// Name of the trace beside the scenario.
pub const TRACE: &str = "fit.trace";
/// Channel bandwidths in MHz of NR by subcarrier spacing (TS 38.101-1 Table 5.3.2-1 and 38.101-2), and of
/// LTE (TS 36.104 Table 5.6-1), of which the narrowest that carries the capacity is taken.
const NR_15: [u32; 8] = [5, 10, 15, 20, 25, 30, 40, 50];
const NR_30: [u32; 8] = [10, 15, 20, 40, 50, 60, 80, 100];
const NR_60: [u32; 5] = [10, 20, 40, 60, 100];
const NR_120: [u32; 4] = [50, 100, 200, 400];
const LTE: [u32; 4] = [5, 10, 15, 20];
/// Resource blocks and MHz of channels of LTE, and of NR at 30 kHz (TS 36.104 Table 5.6-1, TS 38.101-1 Table
/// 5.3.2-1).
const LTE_PRB: [(f64, u32); 5] = [(15.0, 3), (25.0, 5), (50.0, 10), (75.0, 15), (100.0, 20)];
const NR_PRB: [(f64, u32); 9] = [
    (24.0, 10),
    (38.0, 15),
    (51.0, 20),
    (78.0, 30),
    (106.0, 40),
    (133.0, 50),
    (162.0, 60),
    (217.0, 80),
    (273.0, 100),
];
/// SINR that a channel may need at most, dB. Chosen: above it more SINR gives no higher MCS.
const HIGHEST_SINR: f64 = 40.0;
const LOWEST_SINR: f64 = -5.0;
/// Steps of the search for the SINR. Chosen: 45 dB in steps of 0.1 dB.
const STEPS: usize = 9;
/// Ratio of the 90th to the 10th percentile of the rates of 100 ms from which on a link follows a trace.
const VARIES: f64 = 1.3;
/// Rate of the wired path, as a multiple of the capacity. Chosen: it must not limit.
const CORE_FACTOR: f64 = 10.0;

/// A scenario with its trace.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The scenario file.
    pub toml: String,
    /// The file [`TRACE`] beside it.
    pub trace: Option<Vec<u8>>,
    /// Assumptions that the inputs do not support.
    pub assumptions: Vec<String>,
}

impl Fitted {
    /// The scenario with these settings, read and checked.
    pub fn load(&self, set: &[String]) -> Result<Scenario, ScenarioError> {
        let read = |name: &str| match &self.trace {
            Some(trace) if name == TRACE => Ok(trace.clone()),
            _ => Err(format!("{name}: is not there")),
        };
        scenario::load_with("scenario.toml", &self.toml, set, &read)
    }
}

/// The parts of the file.
#[derive(Clone, Debug, Default)]
struct Parts {
    run: String,
    core: String,
    access: String,
    station: String,
}

impl Parts {
    fn text(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.run, self.core, self.access, self.station)
    }
}

impl Fit {
    /// The scenario; none without a round trip and a rate.
    pub fn scenario(&self) -> Option<Fitted> {
        if let Some(fitted) = self.radio_scenario() {
            return Some(fitted);
        }
        let capacity =
            self.capacity_mbps.as_ref().map(|capacity| capacity.value).or_else(|| self.busiest())?;
        let rtt = self.base_rtt_ms.as_ref().map_or(50.0, |rtt| rtt.value);
        let mut assumptions = Vec::new();
        if self.base_rtt_ms.is_none() {
            assumptions.push("base round trip of 50 ms: the inputs have none".to_owned());
        }
        if self.capacity_mbps.is_none() {
            assumptions.push("capacity: the highest rate of a second that was seen".to_owned());
        }
        let period = self.sr_period_ms.as_ref().filter(|period| period.confidence.is_claim());
        // Without slots and without scheduling requests, a link behaves alike.
        let slots = self.pattern.as_ref().filter(|pattern| {
            pattern.confidence.is_claim() && (period.is_some() || !pattern.value.letters.is_empty())
        });
        let seconds = self.rates.last().map_or(20.0, |last| last.time_s.clamp(5.0, 60.0));
        let mut parts = Parts {
            run: format!("[run]\nduration = \"{:.0} s\"\nwarmup = \"1 s\"\n", seconds.ceil()),
            ..Parts::default()
        };
        let direction = if self.direction == "upload" { "direction = \"upload\"\n" } else { "" };
        parts.station = format!("[[station]]\n{direction}");
        let mut trace = None;
        let is_cell = slots.is_some() || period.is_some();
        let mut cell = (parts.clone(), assumptions.clone());
        let slots = slots.map(|slots| &slots.value);
        if is_cell && self.cell(slots, (capacity, rtt), &mut cell.0, &mut cell.1).is_some() {
            (parts, assumptions) = cell;
        } else {
            if is_cell {
                assumptions.push("a link: no cell with these slots, requests and capacity is allowed".into());
            }
            trace = self.link((capacity, rtt), &mut parts, &mut assumptions);
        }
        Some(Fitted { toml: parts.text(), trace, assumptions })
    }
    /// A cell with the SINR of a log, where no capacity is claimed.
    fn radio_scenario(&self) -> Option<Fitted> {
        if self.capacity_mbps.as_ref().is_some_and(|capacity| capacity.confidence.is_claim()) {
            return None;
        }
        let sinr = self.sinr_db.as_ref()?;
        let mut assumptions = Vec::new();
        let prb = self.prb.as_ref().map(|prb| prb.value);
        let is_nr = self.is_nr == Some(true);
        let widths: &[(f64, u32)] = if is_nr { &NR_PRB } else { &LTE_PRB };
        let mhz = prb.and_then(|prb| widths.iter().find(|(most, _)| prb <= *most)).map_or_else(
            || {
                assumptions.push("bandwidth of 20 MHz: the log has no resource blocks".to_owned());
                20
            },
            |(_, mhz)| *mhz,
        );
        let mut cell = format!("[cell]\nbandwidth = \"{mhz} MHz\"\n");
        if is_nr {
            cell += "rat = \"nr\"\nsubcarrier_spacing = \"30 kHz\"\npattern = \"DDDSU 10:2:2\"\n";
            assumptions.push("pattern DDDSU at 30 kHz: the log does not tell".into());
        }
        self.buffer(&mut cell, "downlink_buffer", 2000.0, &mut assumptions);
        let mut station =
            format!("[[station]]\ndownlink_sinr = \"{:.1} dB\"\n", sinr.value.clamp(-30.0, 60.0));
        if let Some(uplink) = &self.uplink_sinr_db {
            let _ = writeln!(station, "uplink_sinr = \"{:.1} dB\"", uplink.value.clamp(-30.0, 60.0));
        }
        if let Some(deviation) = self.sinr_deviation_db.as_ref().filter(|deviation| deviation.value > 0.0) {
            let _ =
                writeln!(station, "fading = \"{:.1} dB\"\ncoherence = \"1 s\"", deviation.value.min(20.0));
            assumptions.push("coherence of the SINR of 1 s: of the order of the log's interval".into());
        }
        let mut parts = Parts {
            run: "[run]\nduration = \"20 s\"\nwarmup = \"1 s\"\n".into(),
            core: hop(1000.0, 0.0),
            access: cell,
            station,
        };
        let idle = idle_rtt(&parts, self.position)?;
        match &self.base_rtt_ms {
            Some(rtt) => parts.core = hop(1000.0, ((rtt.value - idle) / 2.0).max(0.0)),
            None => assumptions.push("core without delay: the inputs have no round trip".into()),
        }
        Some(Fitted { toml: parts.text(), trace: None, assumptions })
    }
    /// The highest rate of a second, Mb/s.
    fn busiest(&self) -> Option<f64> {
        let seconds = self.rates.chunks(10);
        seconds
            .map(|second| second.iter().map(|w| w.mbps).sum::<f64>() / 10.0)
            .reduce(f64::max)
            .filter(|r| *r > 0.0)
    }
    fn link(
        &self,
        (capacity, rtt): (f64, f64),
        parts: &mut Parts,
        assumptions: &mut Vec<String>,
    ) -> Option<Vec<u8>> {
        let (core, link) = match (self.position, &self.server_side_ms, &self.client_side_ms) {
            (Position::Between, Some(server), Some(client)) => (server.value / 2.0, client.value / 2.0),
            _ => {
                assumptions
                    .push("all of the delay is that of the link: the inputs do not tell its place".into());
                (0.0, rtt / 2.0)
            }
        };
        parts.core = hop(capacity, core);
        let mut access = format!("[link]\ndelay = \"{:.0} us\"\n", link * 1e3);
        self.buffer(&mut access, "queue", 2000.0, assumptions);
        if let Some(loss) =
            self.loss_percent.as_ref().filter(|loss| loss.value > 0.0 && loss.confidence.is_claim())
        {
            let _ = writeln!(access, "loss_percent = {:.4}", loss.value);
        }
        let trace = self.rate_trace().filter(|_| self.direction == "download");
        let uplink = "uplink_rate";
        if self.direction == "upload" {
            let _ = write!(
                access,
                "[link.fixed]\ndownlink_rate = \"{0:.0} kb/s\"\n{uplink} = \"{0:.0} kb/s\"\n",
                capacity * 1e3
            );
            assumptions.push("rate of the downlink: as that of the uplink".into());
        } else if trace.is_some() {
            let _ = write!(
                access,
                "[link.trace]\ndownlink = \"{TRACE}\"\n{uplink} = \"{:.0} kb/s\"\n",
                capacity * 1e3
            );
            assumptions.push("rate of the uplink: the mean of the downlink".into());
        } else {
            let _ = write!(access, "[link.fixed]\ndownlink_rate = \"{:.0} kb/s\"\n", capacity * 1e3);
            assumptions.push("rate of the uplink: as that of the downlink".into());
        }
        parts.access = access;
        trace.map(|trace| trace.to_file())
    }
    /// The trace of the rates, if they vary. Where there was no queue, the last capacity holds.
    fn rate_trace(&self) -> Option<Trace> {
        let queued: Vec<f64> = self.rates.iter().filter(|w| w.queued).map(|w| w.mbps).collect();
        let quantile = |share| crate::estimate::quantile(&queued, share);
        if queued.len() < 20 || quantile(0.9)? < VARIES * quantile(0.1)? {
            return None;
        }
        let mut rate = quantile(0.5)?;
        let (mut bytes, mut list) = (0.0, Vec::new());
        for window in &self.rates {
            rate = if window.queued { window.mbps } else { rate.max(window.mbps) };
            for ms in 0..100u64 {
                bytes += rate * 1e3 / 8.0;
                let at = (window.time_s * 1e3 + 0.5) as u64 + ms + 1;
                list.push((Instant::from_millis(at), bytes as u64));
                bytes -= (bytes as u64) as f64;
            }
        }
        let length = Duration::from_millis(100 * self.rates.len() as u64);
        Trace::of_deliveries(list, length).ok()
    }
    fn buffer(&self, access: &mut String, key: &str, least: f64, assumptions: &mut Vec<String>) {
        match &self.buffer_bytes {
            Some(buffer) => {
                let _ = writeln!(access, "{key} = \"{:.0} B\"", buffer.value.max(least));
            }
            None => assumptions.push(format!("{key}: the default, since the buffer never overflowed")),
        }
    }
    fn cell(
        &self,
        slots: Option<&Slots>,
        (capacity, rtt): (f64, f64),
        parts: &mut Parts,
        assumptions: &mut Vec<String>,
    ) -> Option<()> {
        let sr = self.sr_period_ms.as_ref().filter(|period| period.confidence.is_claim());
        let mut keys = String::new();
        let bandwidths: &[u32] = match slots {
            Some(Slots { letters, slot_ms, special }) if !letters.is_empty() && *slot_ms < 0.9 => {
                // 12 symbols of a full block carry data, of a special one two fewer than it has.
                let down = special.map_or(10, |share| ((2.0 + 12.0 * share + 0.5) as u32).clamp(1, 12));
                let up = 2.min(14 - down - 1);
                let split = format!("{down}:{}:{up}", 14 - down - up);
                let _ = writeln!(keys, "rat = \"nr\"\npattern = \"{letters} {split}\"");
                let khz = (15.0 / slot_ms + 0.5) as u32;
                let _ = writeln!(keys, "subcarrier_spacing = \"{khz} kHz\"");
                if khz == 120 {
                    keys += "frequency = \"27 GHz\"\n";
                }
                match khz {
                    30 => &NR_30,
                    60 => &NR_60,
                    _ => &NR_120,
                }
            }
            Some(Slots { letters, .. }) if !letters.is_empty() => {
                let found = lte_configuration(letters);
                match found {
                    Some(configuration) => {
                        let _ = writeln!(keys, "tdd_configuration = {configuration}");
                        &LTE
                    }
                    None => {
                        let _ = writeln!(
                            keys,
                            "rat = \"nr\"\nsubcarrier_spacing = \"15 kHz\"\npattern = \"{letters}\""
                        );
                        &NR_15
                    }
                }
            }
            _ => {
                assumptions
                    .push("FDD with slots of 1 ms: LTE or NR at 15 kHz, here as its rate needs".into());
                if capacity > 70.0 {
                    keys += "rat = \"nr\"\n";
                    &NR_15
                } else {
                    &LTE
                }
            }
        };
        if let Some(sr) = sr {
            let _ = writeln!(keys, "sr_period = \"{} us\"", (sr.value * 1e3) as u64);
        } else {
            assumptions.push("period of scheduling requests: the default".into());
        }
        let key = if self.direction == "upload" { "uplink_buffer" } else { "downlink_buffer" };
        self.buffer(&mut keys, key, 2000.0, assumptions);
        let station = parts.station.clone();
        parts.core = hop(capacity, 0.0);
        let (mhz, sinr) = self.bandwidth(&keys, bandwidths, capacity)?;
        assumptions.push(format!(
            "bandwidth of {mhz} MHz and SINR of {sinr:.1} dB: one of many pairs with this capacity"
        ));
        let rate_keys = self.sinr_keys(sinr);
        parts.access = format!("[cell]\nbandwidth = \"{mhz} MHz\"\n{keys}");
        parts.station = format!("{station}{rate_keys}");
        let idle = idle_rtt(parts, self.position)?;
        let rest = (rtt - idle) / 2.0;
        if rest < 0.0 {
            assumptions.push(format!(
                "core without delay: the simulated cell alone has a round trip of {idle:.1} ms"
            ));
        }
        parts.core = hop(capacity, rest.max(0.0));
        Some(())
    }
    fn sinr_keys(&self, sinr: f64) -> String {
        if self.direction == "upload" {
            format!("uplink_sinr = \"{sinr:.1} dB\"\n")
        } else {
            format!("downlink_sinr = \"{sinr:.1} dB\"\n")
        }
    }
    /// The narrowest channel that carries the capacity, in MHz, and its SINR, dB.
    fn bandwidth(&self, keys: &str, bandwidths: &[u32], capacity: f64) -> Option<(u32, f64)> {
        let rate = |mhz: u32, sinr: f64| {
            let parts = Parts {
                run: "[run]\nduration = \"700 ms\"\nwarmup = \"200 ms\"\n".into(),
                core: hop(capacity * 2.0, 0.0),
                access: format!("[cell]\nbandwidth = \"{mhz} MHz\"\n{keys}"),
                station: format!(
                    "[[station]]\ntraffic = \"udp\"\nudp_rate = \"{:.0} kb/s\"\ndirection = \"{}\"\n{}",
                    capacity * 1.5e3,
                    self.direction,
                    self.sinr_keys(sinr)
                ),
            };
            let scenario = scenario::load("fit", &parts.text(), &[]).ok()?;
            let totals = simulate(&scenario, 1, None, &mut |_| {}).stations;
            let payload = totals.first().map(|s| s.goodput_mbps + s.upload_mbps)?;
            // Datagrams of 1472 bytes of payload and 28 of headers.
            Some(payload * 1500.0 / 1472.0)
        };
        let widest = bandwidths.last().copied()?;
        // A channel with some reserve: its SINR is one at which the MCS can rise.
        let mhz = bandwidths
            .iter()
            .copied()
            .find(|mhz| rate(*mhz, 25.0).is_some_and(|rate| rate >= capacity))
            .unwrap_or(widest);
        let (mut low, mut high) = (LOWEST_SINR, HIGHEST_SINR);
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            if rate(mhz, middle)? < capacity { low = middle } else { high = middle }
        }
        Some((mhz, high))
    }
}

fn hop(capacity: f64, delay_ms: f64) -> String {
    let rate = (CORE_FACTOR * capacity).clamp(100.0, 1e6);
    format!("[core]\nhops = [{{ rate = \"{rate:.0} Mb/s\", delay = \"{:.0} us\" }}]\n", delay_ms * 1e3)
}

/// The least round trip of pings in an idle scenario, ms.
fn idle_rtt(parts: &Parts, position: Position) -> Option<f64> {
    let mut parts = parts.clone();
    parts.run = "[run]\nduration = \"20 s\"\nwarmup = \"0 s\"\n".into();
    let mut station: String = parts
        .station
        .lines()
        .filter(|line| !line.starts_with("direction"))
        .fold(String::new(), |text, line| text + line + "\n");
    // At all phases of every period.
    station += "traffic = \"ping\"\nping_interval = \"184.72 ms\"\n";
    // In TDD, requests of the other end come at other phases of the pattern.
    station += if position == Position::NearClient { "direction = \"upload\"\n" } else { "" };
    parts.station = station;
    let scenario = scenario::load("fit", &parts.text(), &[]).ok()?;
    let result = simulate(&scenario, 1, None, &mut |_| {});
    result.pings.first().map(|pings| pings.rtt.min_ms)
}

/// The configuration of LTE with these letters.
fn lte_configuration(letters: &str) -> Option<u8> {
    u8::try_from(LTE_LETTERS.iter().position(|known| *known == letters)?).ok()
}

//! The experiment with the kernel's TCP and forwarding: its settings, and their figures beside the published
//! ones. `paceline_emulate::router` measures a setting.

use super::parts::{DROPS, SHAPED};
use super::rows::{COLLAPSE, SHARES, UNCHANGED, judged, mean, with_equality};
use crate::host::{Figures, Setting};
use crate::{Estimate, Row, Value};
use paceline_pep::ack_policer::Mode;

/// Shares above and at the published limit of 85%, percent.
const COLLAPSE_DROPS: [u32; 4] = [85, 90, 95, 98];
/// Rates at which they are measured, Mb/s.
const COLLAPSE_RATES: [u32; 3] = [1, 8, 90];
/// Rate of 100 Mb/s Ethernet, Mb/s: no shaping but the line's.
const LINE: u32 = 100;
/// Rate at which the load is compared, Mb/s.
const LOAD_RATE: u32 = 90;
/// Pairs of runs without and with the policer in row 5c. Chosen: a median and an interval.
const PAIRS: u32 = 5;
/// Queue of the shaper in bytes. Chosen: 5 ms at 100 Mb/s, and 0.5 s at 1 Mb/s.
const SHAPER_QUEUE: u32 = 64_000;
/// Queue in bytes where nothing shapes: 1000 frames, the txqueuelen of Ethernet in Linux.
const INTERFACE_QUEUE: u32 = 1_514_000;
/// Reduction of the load that was published, percent, at loads of 25% and 60%.
const REDUCTION: (f64, f64) = (30.0, 32.0);
/// Least reduction at which row 5c holds, percent. Chosen: the published 30% less 5 points.
const LEAST_REDUCTION: f64 = 25.0;

impl Setting {
    fn one(rate_mbps: u32, drop_percent: u32) -> Self {
        Self {
            rate_mbps,
            queue_bytes: SHAPER_QUEUE,
            sessions: 1,
            control: String::from("cubic"),
            drop_percent,
            mode: Mode::Published,
            per_flow: false,
            exempt: false,
            run: 0,
        }
    }
    fn safe(self) -> Self {
        Self { mode: Mode::Safe, ..self }
    }
    fn two(queue_bytes: u32, drop_percent: u32) -> Self {
        Self { sessions: 2, queue_bytes, ..Self::one(LINE, drop_percent) }
    }
}

/// All settings. One without a policer comes before those with one: its ACK rate sizes their buckets.
/// `quick` has two rates and two shares.
pub fn settings(quick: bool) -> Vec<Setting> {
    let (rates, drops): (&[u32], &[u32]) = if quick { (&[8, 90], &[0, 80]) } else { (&SHAPED, &DROPS) };
    let collapse: &[(u32, &[u32])] =
        if quick { &[(1, &[95])] } else { &COLLAPSE_RATES.map(|rate| (rate, &COLLAPSE_DROPS[..])) };
    let mut all = Vec::new();
    for rate in rates {
        all.extend(drops.iter().map(|drop| Setting::one(*rate, *drop)));
    }
    for (rate, drops) in collapse {
        all.push(Setting::one(*rate, 0));
        all.extend(
            drops.iter().flat_map(|drop| [Setting::one(*rate, *drop), Setting::one(*rate, *drop).safe()]),
        );
    }
    for run in 1..if quick { 2 } else { PAIRS } {
        all.extend([0, 80].map(|drop| Setting { run, ..Setting::one(LOAD_RATE, drop) }));
    }
    if !quick {
        for (control, sessions) in OTHERS {
            let other = |drop| Setting { sessions, control: control.into(), ..Setting::one(LOAD_RATE, drop) };
            all.extend([0, 80].map(other));
        }
        all.push(Setting::one(LOAD_RATE, 80).safe());
    }
    all.extend(two_sessions());
    let mut once: Vec<Setting> = Vec::new();
    for setting in all {
        if !once.contains(&setting) {
            once.push(setting);
        }
    }
    once
}

/// Other controls and numbers of sessions of row 5c. Chosen: those of today's servers, and many at once.
const OTHERS: [(&str, u32); 3] = [("reno", 1), ("bbr", 1), ("cubic", 16)];

/// Settings of rows 5d and 5e, and of 5e behind a short queue.
fn two_sessions() -> Vec<Setting> {
    let mut all = Vec::new();
    for (queue, exempts) in [(INTERFACE_QUEUE, &[false, true][..]), (SHAPER_QUEUE, &[true])] {
        all.push(Setting::two(queue, 0));
        for per_flow in [false, true] {
            let policed = |exempt: &bool| Setting { per_flow, exempt: *exempt, ..Setting::two(queue, 80) };
            all.extend(exempts.iter().map(policed));
        }
    }
    all
}

/// Settings with their figures.
pub struct Measured<'a>(pub &'a [(Setting, Figures)]);

impl Measured<'_> {
    /// The figures of a setting.
    pub fn of(&self, setting: &Setting) -> Option<&Figures> {
        self.0.iter().find(|(own, _)| own == setting).map(|(_, figures)| figures)
    }
    /// All rows.
    pub fn rows(&self) -> Vec<Row> {
        vec![
            self.plain(
                ("5a-rate-measured", "data rate over that without drops", "unchanged from 0 to 80% dropped"),
                "",
                |with, without| with.rate() / without.rate(),
                |ratio| ratio >= UNCHANGED,
            ),
            self.plain(
                (
                    "5a-retransmissions-measured",
                    "retransmissions beyond those without drops",
                    "no more from 0 to 80% dropped",
                ),
                "segments",
                |with, without| with.retransmissions as f64 - without.retransmissions as f64,
                |more| more <= 0.0,
            ),
            self.plain(
                (
                    "5a-growth-measured",
                    "data of the first 3 s over that without drops",
                    "the same growth in the first 3 s",
                ),
                "",
                |with, without| with.first_3_s_mb / without.first_3_s_mb,
                |ratio| ratio >= UNCHANGED,
            ),
            self.collapse(Mode::Published),
            self.collapse(Mode::Safe),
            self.load(),
            self.load_over_rate(),
            self.both_filtered(),
            self.one_filtered(),
        ]
    }

    /// Settings with figures that meet a condition, each beside the one without a policer.
    fn beside(
        &self,
        wanted: impl Fn(&Setting) -> bool,
    ) -> impl Iterator<Item = (&Setting, &Figures, &Figures)> {
        let all = self.0.iter().filter(move |(setting, _)| wanted(setting));
        all.filter_map(|(setting, figures)| Some((setting, figures, self.of(&setting.without_policer())?)))
    }
    /// A row over shares of dropped ACKs up to the published limit, with a line for each rate.
    fn plain(
        &self,
        (id, quantity, published): (&'static str, &str, &'static str),
        unit: &'static str,
        of: impl Fn(&Figures, &Figures) -> f64,
        condition: impl Fn(f64) -> bool,
    ) -> Row {
        let wanted = |setting: &Setting| is_plain(setting) && setting.drop_percent <= 80 && setting.run == 0;
        let value = |(setting, with, without): (&Setting, &Figures, &Figures)| {
            over_drops(setting, unit, of(with, without))
        };
        let values = self.beside(wanted).map(value).collect();
        judged(id, quantity, published, values, condition)
    }
    fn collapse(&self, mode: Mode) -> Row {
        let wanted =
            |setting: &Setting| setting.mode == mode && setting.drop_percent > 80 && setting.sessions == 1;
        let value = |(setting, with, without): (&Setting, &Figures, &Figures)| {
            over_drops(setting, "", with.rate() / without.rate())
        };
        let values = self.beside(wanted).map(value).collect();
        if mode == Mode::Safe {
            let quantity = "data rate over that without drops, mode safe at the same shares";
            let row = judged("5b-safe-measured", quantity, "", values, |ratio| ratio >= UNCHANGED);
            let all: Vec<_> = self.beside(wanted).map(|(_, with, _)| with).collect();
            let sum = |of: fn(&Figures) -> u64| all.iter().map(|figures| of(figures)).sum::<u64>();
            let (dropped, seen) = (sum(|figures| figures.acks_dropped), sum(|figures| figures.acks_seen));
            return Row { why: format!("{dropped} of {seen} ACKs dropped"), ..row };
        }
        let quantity = "data rate over that without drops, above 85%";
        judged("5b-measured", quantity, "the rate collapses", values, |ratio| ratio < COLLAPSE)
    }
    /// Reductions of the load and of the packets for a byte, percent: one for each pair of runs.
    fn reductions(&self, wanted: impl Fn(&Setting) -> bool) -> [Estimate; 2] {
        let all: Vec<_> = self.beside(wanted).collect();
        [|figures: &Figures| figures.load, |figures: &Figures| figures.packets_per_s].map(|of| {
            let per_byte = |figures: &Figures| of(figures) / figures.rate();
            let lower = |(_, with, without): &(_, &Figures, &Figures)| {
                100.0 * (1.0 - per_byte(with) / per_byte(without))
            };
            Estimate::of(all.iter().map(lower))
        })
    }
    fn load(&self) -> Row {
        let pairs =
            |setting: &Setting| *setting == Setting { run: setting.run, ..Setting::one(LOAD_RATE, 80) };
        let [load, packets] = self.reductions(pairs);
        let (low, high) = REDUCTION;
        let mut values = vec![
            Value::new("CUBIC, 1 session, load", "%", None, load).within(low, high),
            Value::new("CUBIC, 1 session, packets", "%", None, packets),
        ];
        for (control, sessions) in OTHERS {
            let own = Setting { sessions, control: control.into(), ..Setting::one(LOAD_RATE, 80) };
            let [load, packets] = self.reductions(|setting| *setting == own);
            if load.mean.is_some() {
                let name = |of: &str| {
                    let s = if sessions == 1 { "" } else { "s" };
                    format!("{}, {sessions} session{s}, {of}", control.to_uppercase())
                };
                values.push(Value::new(name("load"), "%", None, load));
                values.push(Value::new(name("packets"), "%", None, packets));
            }
        }
        let without: Vec<f64> = self.beside(pairs).map(|(_, _, without)| 100.0 * without.load).collect();
        let time: Vec<f64> =
            self.beside(pairs).map(|(_, _, without)| 1e6 * without.load / without.packets_per_s).collect();
        let why = format!(
            "load {:.1}% of a CPU without the policer, {:.2} us for a packet; packets bound it: an ACK for two \
             segments is a third of them, so that 80% of the ACKs are 27% at most",
            mean(Estimate::of(without)),
            mean(Estimate::of(time)),
        );
        let quantity = "router's CPU time for a byte, lower by, 80% of ACKs dropped at 90 Mb/s";
        Row {
            holds: load.mean_meets(|lower| lower >= LEAST_REDUCTION),
            holds_in_ci95: load.interval_meets(|lower| lower >= LEAST_REDUCTION),
            why,
            ..Row::of("5c-measured", quantity, "30% lower at 25% load, 32% at 60%", values)
        }
    }
    fn load_over_rate(&self) -> Row {
        let mut values = Vec::new();
        for drop in [0, 80] {
            let wanted =
                |setting: &Setting| is_plain(setting) && setting.drop_percent == drop && setting.run == 0;
            for (setting, figures, _) in self.beside(wanted) {
                let line = format!("{drop}% dropped");
                let (name, ours) = (format!("{} Mb/s, {line}", setting.rate_mbps), one(100.0 * figures.load));
                values.push(Value::new(name, "%", None, ours).at(f64::from(setting.rate_mbps), &line));
            }
        }
        let quantity = "CPU time of the router's forwarding over the rate, share of one CPU";
        let row = Row::of("5c-rates-measured", quantity, "", values);
        let why = String::from("single runs; at low rates wake-ups of an idle processor are part of it");
        Row { axis: Some("rate of the source, Mb/s".into()), why, ..row }
    }
    fn both_filtered(&self) -> Row {
        let mut values = Vec::new();
        let mut equal = Estimate::default();
        for (per_flow, name) in [(true, "own buckets"), (false, "one bucket")] {
            let setting = Setting { per_flow, ..Setting::two(INTERFACE_QUEUE, 80) };
            let Some(figures) = self.of(&setting) else { continue };
            let mut rates = figures.rates_mbps.clone();
            rates.sort_by(f64::total_cmp);
            for (index, which) in ["slower", "faster"].into_iter().enumerate() {
                let name = format!("{name}, {which}");
                values.push(Value::new(name, "Mb/s", Some(SHARES[index]), one(rates[index])));
            }
            if per_flow {
                equal = one(rates[0] / rates[1]);
            }
        }
        let without = self.of(&Setting::two(INTERFACE_QUEUE, 0)).map_or_else(String::new, |figures| {
            let rates = &figures.rates_mbps;
            format!("; without the policer {:.1} and {:.1} Mb/s", rates[0], rates[1])
        });
        let why = format!("slower over faster, own buckets: {:.2}{without}", mean(equal));
        let published = "44 and 49 of 93 Mb/s: nearly equal";
        let row = Row::of("5d-measured", "two sessions, both filtered at 80%", published, values);
        with_equality(Row { why, ..row }, equal)
    }
    fn one_filtered(&self) -> Row {
        let mut values = Vec::new();
        let mut equal = Estimate::default();
        for (queue, what) in [(INTERFACE_QUEUE, "1000 packets"), (SHAPER_QUEUE, "64 kB")] {
            for (per_flow, bucket) in [(true, "own bucket"), (false, "one bucket")] {
                let setting = Setting { per_flow, exempt: true, ..Setting::two(queue, 80) };
                let Some(figures) = self.of(&setting) else { continue };
                let rates = &figures.rates_mbps;
                for (rate, which) in rates.iter().zip(["filtered", "unfiltered"]) {
                    values.push(Value::new(format!("{what}, {bucket}, {which}"), "Mb/s", None, one(*rate)));
                }
                if per_flow && queue == INTERFACE_QUEUE {
                    equal = one(rates[0].min(rates[1]) / rates[0].max(rates[1]));
                }
            }
        }
        let why = format!("slower over faster, 1000 packets and own bucket: {:.2}", mean(equal));
        let (quantity, published) = ("two sessions, one filtered at 80%", "nearly equal, slightly unfair");
        with_equality(Row { why, ..Row::of("5e-measured", quantity, published, values) }, equal)
    }
}

/// Whether it is one CUBIC session with the published policer or without one.
fn is_plain(setting: &Setting) -> bool {
    setting.sessions == 1 && setting.control == "cubic" && setting.mode == Mode::Published
}
/// The estimate of a single run.
fn one(value: f64) -> Estimate {
    Estimate::of([value])
}
/// A value at its share of dropped ACKs, on the line of its rate.
fn over_drops(setting: &Setting, unit: &'static str, value: f64) -> Value {
    let line = format!("{} Mb/s", setting.rate_mbps);
    let name = format!("{line}, {}% dropped", setting.drop_percent);
    Value::new(name, unit, None, one(value)).at(f64::from(setting.drop_percent), &line)
}

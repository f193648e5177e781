//! Rows of the published statements and of statements (a) to (f).

use super::experiment::{At, Experiment};
use super::parts::Part;
use crate::{Estimate, Row, Value};

/// The modes that know the pattern.
const TDD_MODES: [&str; 2] = ["tdd-published", "tdd"];
/// Index of 0.6 period-bytes among the buffers of the edge settings.
const MIDDLE: usize = 1;

/// A value with the range in which a statement wants it.
struct Claim {
    name: String,
    gain: Estimate,
    range: (f64, f64),
}

impl Claim {
    fn new(name: String, gain: Estimate, low: f64, high: f64) -> Self {
        Self { name, gain, range: (low, high) }
    }
    fn holds(&self, in_interval: bool) -> bool {
        let (low, high) = self.range;
        let within = |value: f64| (low..=high).contains(&value);
        if in_interval { self.gain.interval_meets(within) } else { self.gain.mean_meets(within) }
    }
}

/// A row that holds if all its claims do.
fn row(
    id: &'static str,
    quantity: &str,
    published: &'static str,
    claims: Vec<Claim>,
    more: &str,
) -> Option<Row> {
    let claims: Vec<Claim> = claims.into_iter().filter(|claim| claim.gain.mean.is_some()).collect();
    if claims.is_empty() {
        return None;
    }
    let broken: Vec<&str> =
        claims.iter().filter(|claim| !claim.holds(false)).map(|claim| claim.name.as_str()).collect();
    let count = claims.len() - broken.len();
    let verdict = if broken.is_empty() { "holds" } else { "does not hold" };
    let mut why = format!("{verdict}: {count} of {} values are in their range", claims.len());
    if !broken.is_empty() {
        why += &format!(", not: {}", broken.join("; "));
    }
    let values = claims.iter().map(|claim| {
        let value = Value::new(claim.name.clone(), "%", None, claim.gain);
        let (low, high) = claim.range;
        if low.is_finite() && high.is_finite() { value.within(low, high) } else { value }
    });
    Some(Row {
        holds: broken.is_empty(),
        holds_in_ci95: claims.iter().all(|claim| claim.holds(true)),
        why: why + more,
        ..Row::of(id, quantity, published, values.collect())
    })
}

/// Any value.
const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl Experiment<'_> {
    /// All rows whose parts ran.
    pub fn rows(&self) -> Vec<Row> {
        let rows = [
            self.over_none(),
            self.over_linux(),
            self.round_trips(),
            self.published_mode(),
            self.without_failures(),
            self.product_mode(),
            self.map_of_product(),
            self.deep(),
            self.illinois(),
            self.vegas(),
            self.lena(),
            self.lena_control(),
            self.learned(),
            self.stations(),
        ];
        rows.into_iter().flatten().chain(self.map_rows()).collect()
    }
    fn controls(&self) -> Vec<(&'static str, &'static str, At)> {
        let of = |name: &'static str, at| {
            let controls = self.part(name).map(|part| part.controls.clone()).unwrap_or_default();
            controls.into_iter().map(move |control| (name, control, at))
        };
        of("edge", (MIDDLE, 0)).chain(of("edge-others", (0, 0))).collect()
    }
    fn over_none(&self) -> Option<Row> {
        let settings = self.controls();
        let claim = |(part, control, at): &(&'static str, &'static str, At)| {
            let gain = self.gain(part, control, ("tdd-published", "none"), *at);
            Claim::new((*control).to_owned(), gain, 10.0, 70.0)
        };
        let quantity = "3a: goodput, tdd-published over none, DDDDDDDSUU, edge server, 0.6 period-bytes";
        row("3a", quantity, "+10 to +70%, most for Illinois", settings.iter().map(claim).collect(), "")
    }
    fn over_linux(&self) -> Option<Row> {
        let claims = self.controls().into_iter().flat_map(|(part, control, at)| {
            TDD_MODES.map(|mode| {
                let gain = self.gain(part, control, (mode, "linux"), at);
                Claim::new(format!("{control}, {mode}"), gain, 0.0, 20.0)
            })
        });
        row("3b", "3b: goodput over Linux's pacing, same setting", "about +10%", claims.collect(), "")
    }
    fn round_trips(&self) -> Option<Row> {
        let claims = self.controls().into_iter().flat_map(|(part, control, at)| {
            TDD_MODES.map(|mode| {
                let mean = self.gain_of(part, control, (mode, "none"), at, |run| run.totals.rtt_mean_ms);
                Claim::new(format!("{control}, {mode}"), mean, ANY.0, 0.0)
            })
        });
        row("3c", "3c: mean round-trip time against none, same setting", "reduced", claims.collect(), "")
    }
    /// The buffers of a part up to `most` period-bytes.
    fn buffers(part: &Part, range: (f64, f64)) -> Vec<(usize, f64)> {
        let values = part.buffers.values().iter().copied().enumerate();
        values.filter(|(_, b)| (range.0..=range.1).contains(b)).collect()
    }
    fn edge_claims(
        &self,
        name: &str,
        mode: &str,
        over: &str,
        range: (f64, f64),
        buffers: (f64, f64),
    ) -> Vec<Claim> {
        let Some(part) = self.part(name) else { return Vec::new() };
        let mut claims = Vec::new();
        for control in &part.controls {
            for (index, b) in Self::buffers(part, buffers) {
                let gain = self.gain(name, control, (mode, over), (index, 0));
                claims.push(Claim::new(format!("{control}, {b} over {over}"), gain, range.0, range.1));
            }
        }
        claims
    }
    fn published_mode(&self) -> Option<Row> {
        let mut claims = self.edge_claims("edge", "tdd-published", "none", (40.0, 100.0), (0.3, 1.0));
        claims.extend(self.edge_claims("edge", "tdd-published", "linux", (2.0, 20.0), (0.3, 1.0)));
        let published = "CUBIC and Illinois: +40 to +100% over none, +2 to +20% over Linux";
        row(
            "a",
            "(a) goodput, tdd-published, DDDDDDDSUU, edge server, 0.3 to 1 period-bytes",
            published,
            claims,
            "",
        )
    }
    /// The cell of (a) without HARQ, whose retransmissions make the bunches of ACKs uneven.
    fn without_failures(&self) -> Option<Row> {
        let mut claims = Vec::new();
        for (mode, over) in [("tdd-published", "none"), ("tdd-published", "linux"), ("tdd", "linux")] {
            for claim in self.edge_claims("edge-without-failures", mode, over, ANY, (0.3, 1.0)) {
                claims.push(Claim { name: format!("{mode}: {}", claim.name), ..claim });
            }
        }
        let quantity = "goodput in the cell of (a) without failed blocks: what HARQ's retransmissions change";
        row("a-cause", quantity, "", claims, "")
    }
    fn product_mode(&self) -> Option<Row> {
        let claims = self.edge_claims("edge", "tdd", "linux", (10.0, ANY.1), (0.3, 0.3));
        row("b", "(b) goodput, tdd, same cell, 0.3 period-bytes", "at least +10% over Linux", claims, "")
    }
    /// The gain of `mode` over `over` in every cell of all maps, with the cell's name.
    fn map_gains(&self, mode: &str, over: &str, skip: &str) -> Vec<(String, f64)> {
        let mut gains = Vec::new();
        for part in self.maps() {
            for control in part.controls.iter().filter(|control| **control != skip) {
                for (b, rtt) in
                    (0..part.buffers.count()).flat_map(|b| (0..part.rtts_ms.len()).map(move |r| (b, r)))
                {
                    let gain = self.gain(&part.name, control, (mode, over), (b, rtt)).mean;
                    let (buffer, ms) = (part.buffers.values()[b], part.rtts_ms[rtt]);
                    let name = format!("{} {control} {buffer} period-bytes {ms} ms", part.cell.name);
                    gains.extend(gain.map(|gain| (name, gain)));
                }
            }
        }
        gains
    }
    fn map_of_product(&self) -> Option<Row> {
        let gains = self.map_gains("tdd", "linux-per-segment", "vegas");
        let worst = gains.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mean = gains.iter().map(|(_, gain)| gain).sum::<f64>() / gains.len() as f64;
        let below = gains.iter().filter(|(_, gain)| *gain < -5.0).count();
        let one = |value| Estimate { mean: Some(value), half: None };
        let claims = vec![
            Claim::new("mean of the maps".into(), one(mean), 0.0, ANY.1),
            Claim::new(format!("worst cell: {}", worst.0), one(worst.1), -5.0, ANY.1),
        ];
        let more = format!("; {below} of {} cells are below -5%", gains.len());
        let published = "no cell of the maps below -5%, mean not below 0 (without Vegas)";
        row("b-map", "(b) goodput, tdd over linux-per-segment, all maps", published, claims, &more)
    }
    fn deep(&self) -> Option<Row> {
        let mut claims = Vec::new();
        for (name, percent) in [("deep", 2.0), ("deep-control", 4.0)] {
            let Some(part) = self.part(name) else { continue };
            for control in &part.controls {
                for mode in part.modes.iter().filter(|mode| **mode != "none") {
                    let gain = self.gain(name, control, (mode, "none"), (0, 0));
                    let text = format!("{}: {control}, {mode}", part.cell.name);
                    claims.push(Claim::new(text, gain, -percent, percent));
                }
            }
        }
        let published = "within 2% of none, with every slot both ways within 4%";
        row("c", "(c) goodput of every pacing at 8 period-bytes", published, claims, "")
    }
    fn illinois(&self) -> Option<Row> {
        let part = self.part("edge")?;
        let mut claims = Vec::new();
        for mode in ["linux", "tdd-published", "tdd"] {
            for (index, b) in Self::buffers(part, (0.5, 2.0)) {
                let gain = |control| self.gain("edge", control, (mode, "none"), (index, 0)).mean;
                let difference = gain("illinois").zip(gain("cubic")).map(|(a, b)| a - b);
                let difference = Estimate { mean: difference, half: None };
                claims.push(Claim::new(format!("{mode}, {b}"), difference, 0.0, ANY.1));
            }
        }
        let published = "Illinois gains at least as much as CUBIC";
        row(
            "d",
            "(d) gain over none of Illinois minus that of CUBIC, percentage points",
            published,
            claims,
            "",
        )
    }
    fn vegas(&self) -> Option<Row> {
        let mut claims = Vec::new();
        for name in ["vegas-raw", "vegas-clean"] {
            let Some(part) = self.part(name) else { continue };
            for mode in part.modes.iter().filter(|mode| **mode != "none") {
                for (index, b) in part.buffers.values().iter().enumerate() {
                    let gain = self.gain(name, "vegas", (mode, "none"), (index, 0));
                    claims.push(Claim::new(format!("{name}, {mode}, {b}"), gain, ANY.0, ANY.1));
                }
            }
        }
        let clean_none = |index| {
            let new =
                self.phases("vegas-clean", ("vegas", "none"), (index, 0), |run| run.totals.goodput_mbps);
            let old = self.phases("vegas-raw", ("vegas", "none"), (index, 0), |run| run.totals.goodput_mbps);
            super::experiment::median(new.iter().zip(old).map(|(new, old)| 100.0 * (new / old - 1.0)))
        };
        for (index, b) in [0.5, 2.0].into_iter().enumerate() {
            claims.push(Claim::new(format!("clean over raw, none, {b}"), clean_none(index), ANY.0, ANY.1));
        }
        let worst = claims.iter().filter_map(|claim| claim.gain.mean).fold(f64::INFINITY, f64::min);
        let more = format!("; Vegas is the control that pacing can harm: worst {worst:+.1}%");
        row(
            "e",
            "(e) goodput of Vegas over none, DDDSU, edge server",
            "shown with raw and clean delay",
            claims,
            &more,
        )
    }
    fn lena_claims(&self, name: &str, expected: &[(&str, f64)]) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (control, published) in expected {
            let gain = self.gain(name, control, ("linux", "none"), (0, 0));
            // The same sign, and a third to three times its size.
            let ends = [(published / 3.0).round(), published * 3.0];
            let range = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            claims.push(Claim::new(
                format!("{name}: {control}, {published:+}% there"),
                gain,
                range.0,
                range.1,
            ));
        }
        claims
    }
    fn lena(&self) -> Option<Row> {
        let published = [("cubic", 61.0), ("reno", 90.0), ("veno", 127.0), ("illinois", 148.0)];
        let mut claims = self.lena_claims("lena", &published);
        for (control, least) in published {
            let (short, long) = ("lena", "lena-long");
            let [a, b] = [short, long].map(|part| self.gain(part, control, ("linux", "none"), (0, 0)).mean);
            let more = Estimate { mean: a.zip(b).map(|(a, b)| b - a), half: None };
            claims.push(Claim::new(format!("{control}: DDDDDDDSUU minus DDDSU"), more, 0.0, ANY.1));
            let deep = self.gain(short, control, ("linux", "none"), (1, 0));
            claims.push(Claim::new(format!("{control}, 10 MB, {least:+}% at 375 KB"), deep, -5.0, 5.0));
        }
        let published = "signs and order of size of 5G-LENA: a third to three times its gain, more with the longer pattern, nothing at 10 MB";
        row("f", "(f) goodput, linux over none, 375 KB, base round-trip time 30 ms", published, claims, "")
    }
    fn lena_control(&self) -> Option<Row> {
        let published = [("cubic", -3.0), ("reno", 25.0), ("veno", 209.0), ("illinois", 51.0)];
        let mut claims = Vec::new();
        for (control, there) in published {
            let gain = self.gain("lena-control", control, ("linux", "none"), (0, 0));
            claims.push(Claim::new(format!("{control}, {there:+}% there"), gain, ANY.0, ANY.1));
        }
        for mode in ["linux", "tdd-published", "tdd"] {
            for control in ["cubic", "illinois"] {
                for (index, b) in [0.3, 0.6, 1.0].into_iter().enumerate() {
                    let gain = self.gain("edge-control", control, (mode, "none"), (index, 0));
                    claims.push(Claim::new(format!("edge: {control}, {mode}, {b}"), gain, ANY.0, ANY.1));
                }
            }
        }
        let quantity =
            "control: goodput over none where every slot is usable both ways, settings of (a) and (f)";
        row("control", quantity, "", claims, "; what is gained here is not TDD's")
    }
    fn learned(&self) -> Option<Row> {
        let part = self.part("edge-learned")?;
        let mut claims = Vec::new();
        for control in &part.controls {
            for mode in &part.modes {
                for (index, b) in part.buffers.values().iter().enumerate() {
                    let of =
                        |name| self.phases(name, (control, mode), (index, 0), |run| run.totals.goodput_mbps);
                    let pairs = of("edge-learned").into_iter().zip(of("edge"));
                    let gain = super::experiment::median(pairs.map(|(new, old)| 100.0 * (new / old - 1.0)));
                    claims.push(Claim::new(format!("{control}, {mode}, {b}"), gain, -3.0, 3.0));
                }
            }
        }
        let quantity = "goodput with a learned period over that with the given pattern, edge settings";
        row("learned", quantity, "within 3%", claims, "; the gate needs the given pattern")
    }
    fn stations(&self) -> Option<Row> {
        let mut claims = Vec::new();
        for name in ["stations-4", "stations-16"] {
            let Some(part) = self.part(name) else { continue };
            for control in &part.controls {
                for mode in part.modes.iter().filter(|mode| **mode != "none") {
                    for (index, b) in part.buffers.values().iter().enumerate() {
                        let gain = self.gain(name, control, (mode, "none"), (index, 0));
                        let text = format!("{} stations: {control}, {mode}, {b}", part.stations);
                        claims.push(Claim::new(text, gain, ANY.0, ANY.1));
                    }
                }
            }
        }
        let quantity = "goodput over none of several stations, DDDDDDDSUU, edge server, buffers shared";
        row("stations", quantity, "", claims, "")
    }
    /// Mean, worst and best cell of each map.
    fn map_rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for part in self.maps() {
            for (mode, over) in [("tdd", "none"), ("tdd", "linux-per-segment"), ("tdd-published", "none")] {
                let mut claims = Vec::new();
                for control in &part.controls {
                    let mut gains = Vec::new();
                    for (b, rtt) in
                        (0..part.buffers.count()).flat_map(|b| (0..part.rtts_ms.len()).map(move |r| (b, r)))
                    {
                        let gain = self.gain(&part.name, control, (mode, over), (b, rtt)).mean;
                        let place =
                            format!("{} period-bytes, {} ms", part.buffers.values()[b], part.rtts_ms[rtt]);
                        gains.extend(gain.map(|gain| (gain, place)));
                    }
                    gains.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let (Some(worst), Some(best)) = (gains.first(), gains.last()) else { continue };
                    let mean = gains.iter().map(|(gain, _)| gain).sum::<f64>() / gains.len() as f64;
                    let cells = [("mean", mean), (&worst.1, worst.0), (&best.1, best.0)];
                    for (name, gain) in cells {
                        let one = Estimate { mean: Some(gain), half: None };
                        claims.push(Claim::new(format!("{control}: {name}"), one, ANY.0, ANY.1));
                    }
                }
                let quantity =
                    format!("map of {}: goodput, {mode} over {over}: mean, worst, best", part.cell.name);
                rows.extend(row("map", &quantity, "", claims, ""));
            }
        }
        rows
    }
}

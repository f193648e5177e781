//! Path and settings of the experiment.

/// Published rates of the source, Mb/s.
pub const SHAPED: [u32; 7] = [1, 4, 8, 16, 32, 65, 90];
/// Published shares of dropped ACKs, percent.
pub(super) const DROPS: [u32; 5] = [0, 20, 40, 60, 80];
/// Shares above the published limit of 85%, percent, at which row 5b is run.
pub(super) const COLLAPSE_DROPS: [u32; 4] = [90, 95, 98, 99];
/// Rates at which row 5b is run, Mb/s. Chosen: the ends and the middle of the published ones.
pub(super) const COLLAPSE_RATES: [u32; 3] = [1, 8, 90];
/// Published loads without the policer, percent.
pub(super) const LOADS: [u32; 2] = [25, 60];
/// Rate of the source at which row 5c is run, Mb/s.
const LOAD_RATE: u32 = 90;
/// Packets per second without the policer at [`LOAD_RATE`]: a packet of 1500 bytes, and an ACK for two.
const PACKETS_PER_S: f64 = LOAD_RATE as f64 * 1e6 / (8.0 * 1500.0) * 1.5;
/// Length of an ACK with timestamps (RFC 7323), bytes.
const ACK_BYTES: f64 = 52.0;
/// Published burst of the bucket, bytes.
const BURST_BYTES: f64 = 5000.0;

/// A scenario to run with several seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Name, also of its folder.
    pub name: String,
    /// Text of the scenario.
    pub scenario: String,
}

/// Time in us for which the router forwards a packet, so that it has a published load without the policer.
/// The paper gives loads and no times; the reduction is independent of it, as the load is linear in packets.
fn service_us(load: u32) -> f64 {
    f64::from(load) / 100.0 * 1e6 / PACKETS_PER_S
}

/// Rate of a bucket in b/s that leaves this share of the ACKs: one for two packets of 1500 bytes without the
/// policer.
fn cir(mbps: u32, drop: u32) -> f64 {
    let acks_per_s = f64::from(mbps) * 1e6 / (8.0 * 1500.0) / 2.0;
    (acks_per_s * f64::from(100 - drop) / 100.0 * ACK_BYTES * 8.0).round()
}

/// The shaper of the source, and the line behind the router with the policer. The queue of the shaper is
/// chosen: 5 ms at 100 Mb/s, and 0.5 s at 1 Mb/s. A burst is one second of the bucket's rate at most, since
/// the published transfers took minutes and these take seconds.
fn scenario(mbps: u32, time: &str, service_us: f64, police: &str, sessions: usize) -> String {
    let stations = "[[station]]\n".repeat(sessions);
    format!(
        "[run]\n{time}\n[core]\nhops = [{{ rate = \"{mbps} Mb/s\", delay = \"50 us\", queue = \"64 kB\" }}, \
         {{ rate = \"100 Mb/s\", delay = \"50 us\", service_time = \"{service_us:.3} us\"{police} }}]\n\
         [link]\ndelay = \"50 us\"\n[link.fixed]\ndownlink_rate = \"100 Mb/s\"\n\
         uplink_rate = \"100 Mb/s\"\n{stations}"
    )
}

fn police(mode: &str, cir: f64, more: &str) -> String {
    let burst = (cir / 8.0).clamp(ACK_BYTES, BURST_BYTES).round();
    format!(", police = {{ mode = \"{mode}\", cir = \"{cir} b/s\", cbs = \"{burst} B\"{more} }}")
}

/// Steady state after the slow start.
const STEADY: &str = "duration = \"11 s\"\nwarmup = \"1 s\"";
/// The growth in the first 3 s.
const START: &str = "duration = \"3 s\"\nwarmup = \"0 s\"";

/// All parts: rows 5a, 5b, 5c, and 5d with 5e.
pub fn parts() -> Vec<Part> {
    let mut all = Vec::new();
    let mut add = |name: String, scenario: String| all.push(Part { name, scenario });
    let share = |mode: &str, mbps: u32, drop: u32| match drop {
        0 => String::new(),
        drop => police(mode, cir(mbps, drop), ""),
    };
    for mbps in SHAPED {
        for drop in DROPS {
            let police = share("published", mbps, drop);
            for (name, time) in [("steady", STEADY), ("start", START)] {
                add(format!("{name}-{mbps}-{drop}"), scenario(mbps, time, service_us(60), &police, 1));
            }
        }
    }
    for mbps in COLLAPSE_RATES {
        for drop in COLLAPSE_DROPS {
            for mode in ["published", "safe"] {
                let police = share(mode, mbps, drop);
                add(format!("{mode}-{mbps}-{drop}"), scenario(mbps, STEADY, service_us(60), &police, 1));
            }
        }
    }
    for load in LOADS {
        for drop in [0, 80] {
            let police = share("published", LOAD_RATE, drop);
            add(format!("load-{load}-{drop}"), scenario(LOAD_RATE, STEADY, service_us(load), &police, 1));
        }
    }
    // Two sessions at the rate of the line, each with half of it.
    let (both, half) = (cir(100, 80), cir(50, 80));
    for (name, police) in [
        ("two-unfiltered", String::new()),
        ("two-filtered", police("published", half, ", per_flow = true")),
        ("two-filtered-one-bucket", police("published", both, ", per_flow = false")),
        ("two-one-filtered", police("published", half, ", per_flow = true, exempt = [1]")),
    ] {
        let two = scenario(100, STEADY, service_us(60), &police, 2);
        add(name.to_owned(), two);
    }
    all
}

//! Path and settings of the experiment.

/// Published rates of the source, Mb/s.
pub const SHAPED: [u32; 7] = [1, 4, 8, 16, 32, 65, 90];
/// Published shares of dropped ACKs, percent.
pub const DROPS: [u32; 5] = [0, 20, 40, 60, 80];
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

/// Queue of the shaper. Chosen: 5 ms at 100 Mb/s, and 0.5 s at 1 Mb/s.
const SHAPER_QUEUE: &str = "64 kB";
/// Queue of the source's interface, where nothing is shaped: 1000 packets of 1500 bytes, as the txqueuelen of
/// Ethernet in Linux 2.6.32 (pfifo_fast).
const INTERFACE_QUEUE: &str = "1500 kB";

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

/// The shaper of the source, and the line behind the router with the policer. A burst is one second of the
/// bucket's rate at most, since the published transfers took minutes and most of these take seconds.
fn scenario(mbps: u32, queue: &str, time: &str, service_us: f64, police: &str, sessions: usize) -> String {
    let stations = "[[station]]\n".repeat(sessions);
    format!(
        "[run]\n{time}\n[core]\nhops = [{{ rate = \"{mbps} Mb/s\", delay = \"50 us\", queue = \"{queue}\" }}, \
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

/// A transfer of the published 400 MB by each of two sessions at 45 Mb/s.
const LONG: &str = "duration = \"71 s\"\nwarmup = \"1 s\"";

/// One session behind the shaper.
fn shaped(mbps: u32, time: &str, service_us: f64, police: &str) -> String {
    scenario(mbps, SHAPER_QUEUE, time, service_us, police, 1)
}

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
                add(format!("{name}-{mbps}-{drop}"), shaped(mbps, time, service_us(60), &police));
            }
        }
    }
    for mbps in COLLAPSE_RATES {
        for drop in COLLAPSE_DROPS {
            for mode in ["published", "safe"] {
                let police = share(mode, mbps, drop);
                add(format!("{mode}-{mbps}-{drop}"), shaped(mbps, STEADY, service_us(60), &police));
            }
        }
    }
    for load in LOADS {
        for drop in [0, 80] {
            let police = share("published", LOAD_RATE, drop);
            add(format!("load-{load}-{drop}"), shaped(LOAD_RATE, STEADY, service_us(load), &police));
        }
    }
    for (name, queue, police, more) in sessions() {
        add(name.to_owned(), scenario(100, queue, LONG, service_us(60), &police, 2) + more);
    }
    all
}

/// The parts with two sessions at the rate of the line, each with half of it: name, queue, policer, and more
/// keys.
fn sessions() -> [(&'static str, &'static str, String, &'static str); 9] {
    let (both, half) = (cir(100, 80), cir(50, 80));
    let own = || police("published", half, ", per_flow = true");
    let one = || police("published", half, ", per_flow = true, exempt = [1]");
    let safe = String::from(", police = { mode = \"safe\", drop_share = 0.8, exempt = [1] }");
    let paced = "[tcp]\npacing = \"linux\"\n";
    [
        ("two-unfiltered", INTERFACE_QUEUE, String::new(), ""),
        ("two-filtered", INTERFACE_QUEUE, own(), ""),
        ("two-filtered-one-bucket", INTERFACE_QUEUE, police("published", both, ", per_flow = false"), ""),
        ("two-one-filtered", INTERFACE_QUEUE, one(), ""),
        ("two-one-filtered-no-loss", INTERFACE_QUEUE, one(), "[tcp]\nreceive_buffer = \"600 kB\"\n"),
        ("two-unfiltered-short", SHAPER_QUEUE, String::new(), ""),
        ("two-one-filtered-short", SHAPER_QUEUE, one(), ""),
        ("two-one-filtered-short-paced", SHAPER_QUEUE, one(), paced),
        ("two-one-filtered-short-safe", SHAPER_QUEUE, safe, ""),
    ]
}

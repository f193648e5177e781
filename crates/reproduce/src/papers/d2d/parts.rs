//! Settings of the experiment.

use crate::plan::{Part, strings};

/// A TCP of the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    /// Name in the rows.
    pub name: &'static str,
    /// Settings, as `--set` takes them.
    pub set: &'static [&'static str],
    /// Whether the paper has it.
    pub published: bool,
}

const fn tcp(name: &'static str, set: &'static [&'static str], published: bool) -> Tcp {
    Tcp { name, set, published }
}

/// The TCPs: those of the paper, on INET's base, and today's.
pub const TCPS: [Tcp; 8] = [
    tcp("reno", &["tcp.congestion_control=reno", "tcp.loss_recovery=reno"], true),
    tcp(
        "newreno-impatient",
        &["tcp.loss_recovery=newreno", "tcp.newreno_timer=impatient", "tcp.newreno_careful=false"],
        true,
    ),
    tcp("westwood", &["tcp.congestion_control=westwood-zero", "tcp.loss_recovery=reno"], true),
    tcp("westwood+", &["tcp.congestion_control=westwood+", "tcp.loss_recovery=reno"], true),
    tcp("sack-reno", &["tcp.congestion_control=reno", "tcp.loss_recovery=sack", "tcp.sack=true"], true),
    tcp("cubic", &["tcp.congestion_control=cubic", "tcp.loss_recovery=reno", "tcp.hystart=off"], true),
    tcp("linux", LINUX, false),
    tcp("bbr3", BBR, false),
];

/// Linux of today with the published segments and window: CUBIC, RACK-TLP, PRR.
const LINUX: &[&str] =
    &["tcp.profile=linux", "tcp.segment_size=536 B", "tcp.receive_buffer=128 KiB", "tcp.autotune=false"];
/// The same with BBRv3.
const BBR: &[&str] = &[
    "tcp.profile=linux",
    "tcp.congestion_control=bbr3",
    "tcp.segment_size=536 B",
    "tcp.receive_buffer=128 KiB",
    "tcp.autotune=false",
];

/// Paths of data and ACKs, the published ones: name, and path of each.
pub const ROUTES: [(&str, [&str; 2]); 4] = [
    ("DM/DM", ["direct", "direct"]),
    ("DM/IM", ["direct", "infrastructure"]),
    ("IM/DM", ["infrastructure", "direct"]),
    ("IM/IM", ["infrastructure", "infrastructure"]),
];
/// Receive windows: 14 segments, INET's default, and powers of two up to the published 128 KB.
pub const WINDOWS: [(&str, f64); 8] = [
    ("7504 B", 7.33),
    ("8 KiB", 8.0),
    ("16 KiB", 16.0),
    ("32 KiB", 32.0),
    ("48 KiB", 48.0),
    ("64 KiB", 64.0),
    ("96 KiB", 96.0),
    ("128 KiB", 128.0),
];

/// The fates of the dynamic runs: as published, forwarded without losses, and on both paths for a time.
const FATES: [(&str, &[&str]); 3] = [
    ("drop", &[]),
    ("forward", &["sidelink.fate=forward", "sidelink.rlc=am"]),
    ("duplicate", &["sidelink.fate=duplicate"]),
];

/// All sweeps: the four routes over windows, and every TCP in the dynamic setting, with every fate.
pub fn parts() -> Vec<Part> {
    let windows: Vec<&str> = WINDOWS.iter().map(|(window, _)| *window).collect();
    let mut all = Vec::new();
    for (name, [data, acks]) in ROUTES {
        all.push(Part {
            name: format!("static-{}", name.to_lowercase().replace('/', "-")),
            scenario: "d2d-static",
            set: vec![
                format!("sidelink.data={data}"),
                format!("sidelink.acks={acks}"),
                "tcp.window_scale=true".into(),
            ],
            over: vec![("tcp.receive_buffer", strings(&windows))],
        });
    }
    for (fate, set) in FATES {
        for tcp in TCPS {
            all.push(Part {
                name: format!("dynamic-{fate}-{}", tcp.name),
                scenario: "d2d-dynamic",
                set: strings(&[tcp.set, set].concat()),
                over: Vec::new(),
            });
        }
    }
    all
}

/// Settings of `d2d-static` for one change of path, 5 s after the start, from the direct link.
pub fn switch_settings(tcp: &Tcp) -> Vec<String> {
    let own = [
        "run.duration=15 s",
        "sidelink.selection=scripted",
        "sidelink.switch_at=[\"5 s\"]",
        "tcp.window_scale=true",
        "tcp.receive_buffer=128 KiB",
    ];
    strings(&[&own, tcp.set].concat())
}

/// Settings of `d2d-static` for one datagram and its answer on the direct link.
pub fn timeline_settings() -> Vec<String> {
    strings(&[
        "run.duration=3 s",
        "station.traffic=udp",
        "station.udp_rate=1 kb/s",
        "station.udp_payload=536 B",
    ])
}

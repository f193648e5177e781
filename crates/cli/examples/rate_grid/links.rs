//! Rows of links of their own: traces, constant rates, losses, queue disciplines, return paths, transfers.

use crate::row::{Row, Yardstick};
use paceline_study::scenario_file::read_trace;
use std::path::Path;

/// A scenario with one link behind 10 ms, a round trip of `rtt_ms`, and windows of 64 MiB, so that TCP's do
/// not limit, unless `tcp` says otherwise.
fn row(family: &'static str, name: String, rtt_ms: u32, seconds: u32, tcp: &str, link: &str) -> Row {
    let tcp = if tcp.is_empty() { "receive_buffer = \"64 MiB\"\nsend_buffer = \"64 MiB\"" } else { tcp };
    let text = format!(
        "[run]\nduration = \"{seconds} s\"\nwarmup = \"{} s\"\n[core]\n@path\n\
         hops = [{{ rate = \"10 Gb/s\", delay = \"5 ms\", queue = \"64 MiB\" }}]\n\
         [tcp]\ncongestion_control = \"@control\"\n{tcp}\n[link]\ndelay = \"{} ms\"\n{link}",
        seconds.min(30) / 5,
        rtt_ms / 2 - 5
    );
    let stations = if link.contains("[[station]]") { "" } else { "\n[[station]]\n" };
    Row { family, name, text: text + stations, yardstick: Yardstick::Link, compared: usize::MAX, seed: 1 }
}

/// A queue of a second at the trace's mean rate, at least a hundred packets: base stations hold about as
/// much.
fn of_trace(family: &'static str, name: String, downlink: &str, uplink: &str, seconds: u32) -> Row {
    let file = read_trace(Path::new(""), downlink).unwrap_or_else(|error| panic!("{error}"));
    let trace = paceline_sim::link::Trace::read(&file).unwrap_or_else(|error| panic!("{downlink}: {error}"));
    let queue = ((trace.rate() / 8.0) as u64).clamp(150_000, 1 << 30);
    let link = format!("queue = \"{queue} B\"\n[link.trace]\ndownlink = {downlink:?}\n{uplink}\n");
    row(family, name, 40, seconds, "", &link)
}

/// Generated traces, each kind with three seeds. The return path of 3G is as slow as the way there.
pub fn traces() -> Vec<Row> {
    paceline_sim::link::generated_kinds()
        .flat_map(|kind| {
            let slow = kind.starts_with("3g");
            (1..=3).map(move |seed| {
                let uplink = match slow {
                    true => format!("uplink = \"generated:{kind}:{}\"", seed + 1_000_000),
                    false => String::from("uplink_rate = \"50 Mb/s\""),
                };
                let seconds = if kind.starts_with("mmwave") { 10 } else { 30 };
                let family = if slow { "3g traces" } else { "traces" };
                of_trace(
                    family,
                    format!("{kind}:{seed}"),
                    &format!("generated:{kind}:{seed}"),
                    &uplink,
                    seconds,
                )
            })
        })
        .collect()
}

/// Recorded traces of a folder: NAME.down with NAME.up, and reversed.
pub fn recorded(folder: &Path) -> Result<Vec<Row>, String> {
    let name = folder.display();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{name}: {error}"))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut rows = Vec::new();
    for down in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "down")) {
        let up = down.with_extension("up");
        let is_empty = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
        if is_empty(down) || is_empty(&up) {
            continue;
        }
        let name = down.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (down, up) = (down.to_string_lossy(), up.to_string_lossy());
        rows.push(of_trace("recorded", name.clone(), &down, &format!("uplink = {up:?}"), 60));
        rows.push(of_trace("reversed", name, &up, &format!("uplink = {down:?}"), 60));
    }
    if rows.is_empty() { Err(format!("{name}: no NAME.down")) } else { Ok(rows) }
}

/// Constant rates over round trips, queues in bandwidth-delay products, and the client's windows.
pub fn constant() -> Vec<Row> {
    let mut rows = Vec::new();
    for (mbps, seconds) in [(2_u32, 30), (20, 20), (200, 10)] {
        for rtt in [20_u32, 100] {
            for quarters in [1_u32, 4, 16] {
                for window in ["64 MiB", "256 KiB", "6 MiB"] {
                    // A window that neither bounds nor is bounded repeats the first.
                    let product = u64::from(mbps) * 125 * u64::from(rtt);
                    let wide = window != "64 MiB" && product * (4 + u64::from(quarters)) / 4 < 250_000;
                    if wide || (window == "6 MiB" && mbps < 200) {
                        continue;
                    }
                    let queue = (product * u64::from(quarters) / 4).max(7_500);
                    let family = if quarters == 1 { "short queues" } else { "constant" };
                    let tcp = format!(
                        "receive_buffer = \"{window}\"\nsend_buffer = \"64 MiB\"\nautotune = {}",
                        window == "64 MiB"
                    );
                    let link = format!(
                        "queue = \"{queue} B\"\n[link.fixed]\ndownlink_rate = \"{mbps} Mb/s\"\n\
                         uplink_rate = \"{} Mb/s\"\n",
                        mbps.max(20)
                    );
                    let name = format!("{mbps} Mb/s, {rtt} ms, {} kB, {window}", queue / 1000);
                    rows.push(row(family, name, rtt, seconds, &tcp, &link));
                }
            }
        }
    }
    rows
}

/// Clients' windows near those of path and queue, on varying and on fast links: a lost packet shuts the
/// window, and its repair opens it at once.
pub fn windows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (seed, queue, window) in [(1, 1, 4), (2, 1, 3), (5, 4, 4), (5, 4, 8), (1, 8, 6), (3, 4, 6)] {
        let link = format!(
            "queue = \"{queue} MB\"\n[link.trace]\ndownlink = \"generated:mmwave-walking:{seed}\"\n\
             uplink_rate = \"50 Mb/s\"\n"
        );
        let tcp = format!("receive_buffer = \"{window} MiB\"\nsend_buffer = \"64 MiB\"");
        let name = format!("mmwave-walking:{seed}, {queue} MB, {window} MiB");
        rows.push(row("windows", name, 40, 8, &tcp, &link));
    }
    for (mbps, rtt, queue) in [(1000, 80, 1), (1000, 80, 4), (500, 160, 1), (500, 160, 4)] {
        let link = format!(
            "queue = \"{queue} MB\"\n[link.fixed]\ndownlink_rate = \"{mbps} Mb/s\"\n\
             uplink_rate = \"100 Mb/s\"\n"
        );
        let tcp = "receive_buffer = \"6 MiB\"\nsend_buffer = \"64 MiB\"";
        rows.push(row("windows", format!("{mbps} Mb/s, {rtt} ms, {queue} MB, 6 MiB"), rtt, 10, tcp, &link));
    }
    rows
}

/// Random losses and bursts, with and without SACK, and fades.
pub fn losses() -> Vec<Row> {
    let mut rows = Vec::new();
    let lossy =
        ["loss_percent = 0.1", "loss_percent = 1.0", "loss_percent = 5.0", "burst_loss_percent = 2.0"];
    for loss in lossy {
        for (mbps, sack) in [(20, true), (100, true), (20, false)] {
            let link = format!(
                "queue = \"2 MB\"\n{loss}\n[link.fixed]\ndownlink_rate = \"{mbps} Mb/s\"\nuplink_rate = \"20 Mb/s\"\n"
            );
            let without = if sack { "" } else { ", no SACK" };
            let tcp = format!("receive_buffer = \"64 MiB\"\nsend_buffer = \"64 MiB\"\nsack = {sack}\n");
            let loss_recovery = if sack { "" } else { "loss_recovery = \"newreno\"\ndsack = false\n" };
            rows.push(row(
                "losses",
                format!("{mbps} Mb/s, {loss}{without}"),
                40,
                20,
                &(tcp + loss_recovery),
                &link,
            ));
        }
    }
    for percent in [40, 70] {
        for mbps in [30, 60, 95] {
            for seed in 1..=3 {
                let link =
                    format!("[link.lte_early]\nrate = \"{mbps} Mb/s\"\nburst_loss_percent = {percent}.0\n");
                let tcp = "receive_buffer = \"16 MiB\"\nautotune = false";
                let name = format!("{percent}% in bursts, {mbps} Mb/s, seed {seed}");
                rows.push(Row { seed, ..row("bursts", name, 32, 40, tcp, &link) });
            }
        }
    }
    for seed in 1..=4 {
        for (name, link) in
            [("hspa", "[link.hspa]\n"), ("early lte", "[link.lte_early]\nrate = \"40 Mb/s\"\n")]
        {
            let mut own = row("fades", format!("{name}, seed {seed}"), 32, 60, "", link);
            own.seed = seed;
            rows.push(own);
        }
        let pauses = "queue = \"2 MB\"\n[link.fixed]\ndownlink_rate = \"40 Mb/s\"\nuplink_rate = \"20 Mb/s\"\n\
                      interruption = \"60 ms\"\ninterruption_interval = \"3 s\"\n";
        let mut own = row("fades", format!("60 ms each 3 s, seed {seed}"), 40, 30, "", pauses);
        own.seed = seed;
        rows.push(own);
    }
    rows
}

/// A trace in mahimahi's format of a radio that serves in turns, as loaded cells and discontinuous reception
/// do: `turns:40:110` has two packets in each millisecond of a turn of 40 ms, and pauses of 110 ms, in the
/// mean.
pub fn turns(name: &str) -> Option<Vec<u8>> {
    let (turn, pause) = name.strip_prefix("turns:")?.split_once(':')?;
    let (turn, pause): (f64, f64) = (turn.parse().ok()?, pause.parse().ok()?);
    let mut stream = paceline_net::Stream::new(1, "turns");
    let (mut now, mut text) = (0, String::new());
    while now < 30_000 {
        let mut about = |mean: f64| (mean * (0.3 + 1.4 * stream.uniform())) as u64;
        let until = now + about(turn).max(1);
        (now..until).for_each(|ms| text += &format!("{ms}\n{ms}\n"));
        now = until + about(pause);
    }
    Some(text.into_bytes())
}

/// Radios with pauses. Every round-trip time may contain one.
pub fn pauses() -> Vec<Row> {
    [(5, 15, 0), (40, 110, 0), (150, 130, 0), (60, 125, 0), (20, 190, 0), (25, 230, 0), (35, 150, 20)]
        .map(|(turn, pause, jitter)| {
            let link = format!(
                "queue = \"2 MB\"\njitter = \"{jitter} ms\"\n[link.trace]\n\
                 downlink = \"turns:{turn}:{pause}\"\nuplink_rate = \"20 Mb/s\"\n"
            );
            row("pauses", format!("{turn} ms of {}, jitter {jitter} ms", turn + pause), 40, 30, "", &link)
        })
        .into()
}

/// CoDel and FQ-CoDel, with and without ECN.
pub fn disciplines() -> Vec<Row> {
    let mut rows = Vec::new();
    for discipline in ["codel", "fq-codel"] {
        for mbps in [10, 100] {
            for ecn in ["off", "on"] {
                let link = format!(
                    "queue = \"8 MB\"\nqueue_discipline = \"{discipline}\"\n[link.fixed]\n\
                     downlink_rate = \"{mbps} Mb/s\"\nuplink_rate = \"20 Mb/s\"\n"
                );
                let tcp = format!("receive_buffer = \"64 MiB\"\nsend_buffer = \"64 MiB\"\necn = \"{ecn}\"");
                rows.push(row("aqm", format!("{discipline}, {mbps} Mb/s, ECN {ecn}"), 40, 20, &tcp, &link));
            }
        }
    }
    rows
}

/// Return paths that carry fewer ACKs than the data causes, and such as hold them back.
pub fn few_acks() -> Vec<Row> {
    let fixed = |down: u32, up_kbps: u32| {
        let link = format!(
            "queue = \"1 MB\"\n[link.fixed]\ndownlink_rate = \"{down} Mb/s\"\nuplink_rate = \"{up_kbps} kb/s\"\n"
        );
        row("few ACKs", format!("{down} Mb/s, ACKs at {up_kbps} kb/s"), 40, 30, "", &link)
    };
    let mut rows = vec![fixed(20, 200), fixed(20, 100), fixed(100, 1000), fixed(100, 500)];
    for seed in 1..=3 {
        let (down, up) =
            (format!("generated:stationary:{seed}"), format!("uplink = \"generated:3g-evdo:{seed}\""));
        rows.push(of_trace("few ACKs", format!("stationary:{seed}, ACKs over 3g-evdo"), &down, &up, 30));
    }
    rows
}

/// Files of 2 MB and 200 kB.
pub fn short() -> Vec<Row> {
    let mut rows = Vec::new();
    for (mbps, file) in
        [(1, 2000), (2, 2000), (5, 2000), (20, 2000), (100, 2000), (1000, 2000), (5, 200), (50, 200)]
    {
        for rtt in [20, 40, 80] {
            let link = format!(
                "queue = \"4 MB\"\n[link.fixed]\ndownlink_rate = \"{mbps} Mb/s\"\nuplink_rate = \"{} Mb/s\"\n\
                 [[station]]\nfile = \"{file} kB\"\nstart_spread = \"0 s\"\n",
                (mbps / 10).max(1)
            );
            let name = format!("{file} kB, {mbps} Mb/s, {rtt} ms");
            let tcp = "receive_buffer = \"6 MiB\"\nsend_buffer = \"4 MiB\"";
            let own = row("short", name, rtt, 40, tcp, &link);
            let text = own.text.replace("warmup = \"6 s\"", "warmup = \"0 s\"");
            rows.push(Row { text, yardstick: Yardstick::Transfers, ..own });
        }
    }
    rows
}

/// Several connections of a device, and devices with queues of their own.
pub fn several() -> Vec<Row> {
    let mut rows = Vec::new();
    for (mbps, stations) in [
        (20, "flows = 8"),
        (100, "flows = 8"),
        (100, "flows = 50"),
        (20, "count = 4"),
        (100, "count = 4"),
        (50, "count = 4\nflows = 4"),
    ] {
        let each = if stations.contains("count") { "per_station = true\n" } else { "" };
        let link = format!(
            "queue = \"1 MB\"\n{each}[link.fixed]\ndownlink_rate = \"{mbps} Mb/s\"\nuplink_rate = \"20 Mb/s\"\n\
             [[station]]\n{stations}\n"
        );
        let name = format!("{mbps} Mb/s, {}", stations.replace('\n', ", "));
        rows.push(row("several", name, 40, 20, "", &link));
    }
    rows
}

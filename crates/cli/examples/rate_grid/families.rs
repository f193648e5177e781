//! The rows of the grid.

use crate::links;
use crate::row::{Row, Yardstick};
use std::collections::BTreeSet;

/// Every row that needs no file.
pub fn all() -> Vec<Row> {
    [
        links::traces(),
        links::constant(),
        links::windows(),
        links::losses(),
        links::pauses(),
        links::disciplines(),
        links::few_acks(),
        links::short(),
        links::several(),
        cells(),
        shared(),
        beside(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Names of the families, in alphabetical order.
pub fn names(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().map(|row| row.family).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Cells of the published scenarios, with the accelerator before them.
fn cells() -> Vec<Row> {
    let presets = [
        ("private-5g", include_str!("../../../../scenarios/private-5g.toml"), 2.0),
        ("fwa-5g", include_str!("../../../../scenarios/fwa-5g.toml"), 10.0),
        ("single-station", include_str!("../../../../scenarios/single-station.toml"), 20.0),
        ("lte-tdd", include_str!("../../../../scenarios/lte-tdd.toml"), 20.0),
        ("drive", include_str!("../../../../scenarios/drive.toml"), 20.0),
        ("drive", include_str!("../../../../scenarios/drive.toml"), 20.0),
        ("drive", include_str!("../../../../scenarios/drive.toml"), 20.0),
    ];
    presets
        .into_iter()
        .enumerate()
        .map(|(n, (name, text, before_ms))| {
            // Keys of a table may stand anywhere in it: the path follows the table's head.
            let text = text.replacen("[core]", "[core]\n@path", 1);
            let control = "congestion_control = \"@control\"";
            let text = match text.contains("congestion_control = \"cubic\"") {
                true => text.replace("congestion_control = \"cubic\"", control),
                false => text.replacen("[tcp]", &format!("[tcp]\n{control}"), 1),
            };
            let yardstick = Yardstick::Cell { before_ms };
            let seed = n as u64 + 1;
            let name = format!("{name}, seed {seed}");
            Row { family: "cells", name, text, yardstick, compared: usize::MAX, seed }
        })
        .collect()
}

/// Rate and round trips of the shared hop: 100 Mb/s, 10 ms before the accelerator, 34 ms behind it.
const HOP_MBPS: u32 = 100;
/// Queues of 0.25, 1 and 4 bandwidth-delay products of 44 ms.
const QUEUES: [u32; 3] = [137_500, 550_000, 2_200_000];

/// Devices behind one queue, each with a link of twice its rate.
fn hop(family: &'static str, name: String, queue: u32, stations: &str, compared: usize) -> Row {
    let text = format!(
        "[run]\nduration = \"25 s\"\nwarmup = \"5 s\"\n[core]\n@path\n@after\n\
         hops = [{{ rate = \"10 Gb/s\", delay = \"5 ms\" }}, \
         {{ rate = \"{HOP_MBPS} Mb/s\", delay = \"15 ms\", queue = \"{queue} B\" }}]\n\
         [tcp]\ncongestion_control = \"@control\"\n[link]\ndelay = \"2 ms\"\nqueue = \"4 MB\"\n[link.fixed]\n\
         downlink_rate = \"200 Mb/s\"\nuplink_rate = \"100 Mb/s\"\n{stations}"
    );
    let yardstick = Yardstick::Hop {
        mbps: f64::from(HOP_MBPS),
        before_ms: 10.0,
        behind_ms: 34.0,
        beside: family == "beside",
    };
    Row { family, name, text, yardstick, compared, seed: 1 }
}

fn shared() -> Vec<Row> {
    QUEUES
        .into_iter()
        .flat_map(|queue| {
            [1, 2, 8, 32].map(|devices| {
                let stations = format!("[[station]]\ncount = {devices}\n");
                hop("shared", format!("{devices} devices, {} kB", queue / 1000), queue, &stations, usize::MAX)
            })
        })
        .collect()
}

/// As many stations that are not accelerated beside the devices.
fn beside() -> Vec<Row> {
    QUEUES
        .into_iter()
        .flat_map(|queue| {
            [("cubic", 1), ("cubic", 5), ("reno", 5), ("bbr", 5)].map(|(control, devices)| {
                let count = format!("[[station]]\ncount = {devices}\n");
                let stations =
                    format!("{count}{count}@proxy\n[station.tcp]\ncongestion_control = \"{control}\"\n");
                let name = format!("{devices} beside {devices} of {control}, {} kB", queue / 1000);
                hop("beside", name, queue, &stations, devices)
            })
        })
        .collect()
}

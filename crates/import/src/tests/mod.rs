//! Each format with a small file made here.

mod damaged;
mod recorders;
mod written_by_others;

use super::units::{RateUnit, TimeUnit};
use super::{Imported, Options, import};
use paceline_net::trace::Trace;
use std::io::Write;

fn options() -> Options {
    Options { interval: paceline_net::Duration::from_secs(1), ..Options::default() }
}

fn of(file: impl AsRef<[u8]>) -> (Trace, String) {
    with(file, &options())
}

fn with(file: impl AsRef<[u8]>, options: &Options) -> (Trace, String) {
    let file = file.as_ref();
    let shown = String::from_utf8_lossy(&file[..file.len().min(60)]).into_owned();
    let Imported { trace, notes } =
        import(file, options).unwrap_or_else(|error| panic!("{shown:?}: {error}"));
    (trace, notes.join("\n"))
}

fn times(file: impl AsRef<[u8]>) -> Vec<u32> {
    of(file).0.at_ms().collect()
}

fn fails(file: impl AsRef<[u8]>) -> String {
    import(file.as_ref(), &options()).err().expect("an error")
}

/// Asserts length in ms and bytes in all; the part of the last opportunity that the rates do not fill is
/// lost.
fn assert_sums(name: &str, trace: &Trace, length_ms: u64, bytes: f64) {
    assert_eq!(trace.length_ms(), length_ms, "{name}");
    let carried = trace.count_all() as f64 * 1504.0;
    assert!((carried - bytes).abs() <= 1504.0, "{name}: {carried} of {bytes} bytes");
}

/// Bytes per millisecond until a time in ms.
fn bytes_by(trace: &Trace, at_ms: u32) -> f64 {
    trace.per_time().filter(|(at, _)| *at <= at_ms).map(|(_, count)| f64::from(count)).sum::<f64>() * 1504.0
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// Chosen: a short loop with two opportunities at one time.
const MAHIMAHI: &str = "1\n3\n3\n4\n8\n";
/// Same as [`MAHIMAHI`].
const MAHIMAHI_TIMES: [u32; 5] = [1, 3, 3, 4, 8];

#[test]
fn mahimahis_format_is_read_packed_and_with_the_marks_of_other_systems() {
    let crlf = MAHIMAHI.replace('\n', "\r\n");
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(MAHIMAHI.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for file in [
        MAHIMAHI.as_bytes().to_vec(),
        crlf.into(),
        format!("\u{feff}{MAHIMAHI}").into(),
        format!("{MAHIMAHI}\n  \n").into(),
        format!("# LTE, ms\n{MAHIMAHI}// end\n").into(),
        MAHIMAHI.trim_end().into(),
        utf16,
        gzip(MAHIMAHI.as_bytes()),
        xz(MAHIMAHI.as_bytes()),
        [gzip(b"1\n3\n3\n"), gzip(b"4\n8\n")].concat(),
        Trace::parse(MAHIMAHI).unwrap().to_binary(),
        gzip(&Trace::parse(MAHIMAHI).unwrap().to_binary()),
    ] {
        assert_eq!(times(&file), MAHIMAHI_TIMES, "{file:?}");
    }
    let (_, notes) = of(gzip(MAHIMAHI.as_bytes()));
    assert!(notes.contains("packed by gzip") && notes.contains("5 times in ms"), "{notes}");
    assert!(fails(&gzip(MAHIMAHI.as_bytes())[..20]).contains("damaged gzip"));
    assert!(fails(&xz(MAHIMAHI.as_bytes())[..30]).contains("damaged xz"));
    assert!(fails(b"BZh91AY").contains("allowed: gzip, xz"));
    assert!(fails([0x80, 0x81, 0x82]).contains("neither text nor"));
}

/// A time every millisecond for two seconds, in a unit of so many ms, from `first` of them on.
fn clock(unit_ms: f64, first: f64, decimals: usize) -> String {
    (1..=2000).map(|n| format!("{:.decimals$}\n", first + f64::from(n) / unit_ms)).collect()
}

#[test]
fn times_are_read_in_any_unit_and_from_any_begin() {
    let expected: Vec<u32> = (1..=2000).collect();
    for (name, file) in [
        ("decimal ms", clock(1.0, 0.0, 1)),
        ("us", clock(1e-3, 0.0, 0)),
        ("ns", clock(1e-6, 0.0, 0)),
        ("s", clock(1e3, 0.0, 3)),
        ("seconds since 1970", clock(1e3, 1_764_000_000.0, 3)),
        ("ms since 1970", clock(1.0, 1_764_000_000_000.0, 0)),
        ("us since 1970", clock(1e-3, 1_764_000_000_000_000.0, 0)),
        ("ms of a running clock", clock(1.0, 500_000.0, 0)),
    ] {
        let (trace, notes) = of(&file);
        assert!(trace.at_ms().eq(expected.iter().copied()), "{name}: {notes}");
        assert_eq!(notes.contains("absolute"), name.contains("since") || name.contains("running"), "{notes}");
    }
    // Times between milliseconds are rounded up, and this is said.
    let (trace, notes) = of("0.2\n1.0\n1.1\n2500.9\n");
    assert!(trace.at_ms().eq([1, 1, 2, 2501]) && notes.contains("rounded up"), "{notes}");
    let stated = Options { time_unit: Some(TimeUnit::Second), ..options() };
    assert!(with("1\n2\n3\n", &stated).0.at_ms().eq([1000, 2000, 3000]));
    assert!(fails("1\n2\nx\n").contains("line 3: `x` is not a number"));
    assert!(with("# c\n5\n\n3\n", &options()).1.contains("rates"), "falling values are no times");
}

#[test]
fn a_long_silence_before_the_first_line_is_stated_and_left_out_on_demand() {
    let file: String = (12_001..=72_000).map(|at| format!("{at}\n")).collect();
    let (trace, notes) = of(&file);
    assert_eq!((trace.length_ms(), notes.contains("silence of 12.001 s")), (72_000, true), "{notes}");
    let (trace, notes) = with(&file, &Options { trim: true, ..options() });
    assert!(trace.at_ms().eq(1..=60_000) && notes.contains("left out"), "{notes}");
    let rows = "time_s,mbps\n0,0\n5,8\n6,8\n";
    assert_eq!(of(rows).0.length_ms(), 6000);
    assert_sums("trimmed", &with(rows, &Options { trim: true, ..options() }).0, 1000, 1e6);
}

#[test]
fn columns_of_tables_are_found_by_name_and_unit() {
    // 8 Mb/s for half a second, 16 for one, none for half, 4 for one: 3 MB in 3 s.
    for (name, file) in [
        ("cooked", "0\t8\n0.5\t16\n1.5\t0\n2\t4\n3\t4\n".to_owned()),
        ("spaces", "70 8\n70.5  16\n71.5 0\n72 4\n73 4\n".into()),
        ("CSV", "time,Mb/s\n0,8\n0.5,16\n1.5,0\n2,4\n3,4\n".into()),
        ("TSV in ms and kb/s", "time_ms\tDL_bitrate_kbps\n0\t8000\n500\t16000\n1500\t0\n2000\t4000\n3000\t4000\n".into()),
        ("semicolons, decimal commas", "Zeit;Throughput (Mbit/s);time (s)\na;8;0\nb;16;0,5\nc;0;1,5\nd;4,0;2\ne;4;3\n".into()),
        ("bytes per second", "elapsed_us,rate [kB/s]\n0,1000\n500000,2000\n1500000,0\n2000000,500\n3000000,500\n".into()),
        ("uplink beside", "ts,ul_mbps,dl_mbps\n0,1,8\n0.5,1,16\n1.5,1,0\n2,1,4\n3,1,4\n".into()),
        ("radio beside", "Timestamp,RSRP,DL_bitrate,State\n0,-90,8000,D\n0.5,-91,16000,D\n1.5,-99,0,I\n2,-90,4000,D\n3,-90,4000,D\n".into()),
        ("quoted", "\"time\",\"throughput, Mbps\"\n\"0\",\"8\"\n\"0.5\",\"16\"\n\"1.5\",\"0\"\n\"2\",\"4\"\n\"3\",\"4\"\n".into()),
        ("heading in a comment", "# time,Mb/s\n0,8\n0.5,16\n1.5,0\n2,4\n3,4\n".into()),
        ("dates", "date,mbps\n2026-11-26T23:59:59.5Z,8\n2026-11-27 00:00:00,16\n2026-11-27 00:00:01,0\n\
                   2026-11-27T00:00:01.500Z,4\n2026-11-27T00:00:02.5,4\n".into()),
        ("since 1970", "time,mbps\n1764000000.5,8\n1764000001,16\n1764000002,0\n1764000002.5,4\n1764000003.5,4\n".into()),
        ("durations", "duration_ms,bandwidth_kbps,latency_ms\n500,8000,20\n1000,16000,20\n500,0,20\n1000,4000,20\n".into()),
        ("bytes since the row before", "t,bytes\n0,0\n0.5,500000\n1.5,2000000\n2,0\n3,500000\n".into()),
    ] {
        let options = match name {
            "radio beside" => Options { rate_unit: RateUnit::named("kb/s"), ..options() },
            _ => options(),
        };
        let (trace, notes) = with(&file, &options);
        assert_sums(&format!("{name}: {notes}"), &trace, 3000, 3e6);
        for (at, bytes) in [(500, 5e5), (1500, 2.5e6), (2000, 2.5e6)] {
            assert!((bytes_by(&trace, at) - bytes).abs() < 2.0 * 1504.0, "{name}, {at} ms: {notes}");
        }
        assert!(notes.contains("resampled"), "{notes}");
    }
}

#[test]
fn columns_and_units_can_be_named() {
    // The columns of the HSDPA logs: time since 1970, ms, place, bytes, ms since the row before.
    let log = "1289406399 549910 59.85 10.78 500000 500\n1289406400 550910 59.85 10.78 1000000 1000\n\
               1289406401 551910 59.86 10.78 1000000 1000\n";
    let named = Options {
        time: Some("2".into()),
        rate: Some("5".into()),
        rate_unit: RateUnit::named("B"),
        ..options()
    };
    let (trace, notes) = with(log, &named);
    assert_sums(&notes, &trace, 2000, 2e6);
    assert!(fails(log).contains("--rate COLUMN` takes one of: 1 to 6"), "{}", fails(log));
    let two = "time,dl_a_mbps,dl_b_mbps\n0,1,2\n1,1,2\n";
    assert!(fails(two).contains("`dl_a_mbps`, `dl_b_mbps`"), "{}", fails(two));
    let by_name = Options { rate: Some("DL_B_mbps".into()), ..options() };
    assert_sums("by name", &with(two, &by_name).0, 1000, 250_000.0);
    let missing = Options { rate: Some("dl".into()), ..options() };
    let error = import(two.as_bytes(), &missing).err().unwrap();
    assert!(error.contains("--rate dl: allowed: time, dl_a_mbps, dl_b_mbps"), "{error}");
    for (file, part) in [
        ("time,mbps\n0,1\n2,1\n1,1\n", "line 4: `time`: 1 after 2: times must not decrease"),
        ("time,mbps\n0,1\n1,-1\n", "line 3: `mbps`: `-1` is negative"),
        ("time,mbps\n0,1\n1\n", "line 3: 1 of 2 columns"),
        ("time,mbps\n0,1\n", "two rows"),
        ("a,b\n1,2\n3,4\n", "no column is known to be a rate"),
        ("time,mbps\n0,200000\n1,200000\n", "up to 100 Gb/s"),
        ("# nothing\n", "only comments"),
        ("", "empty"),
    ] {
        assert!(fails(file).contains(part), "{file:?}: {}", fails(file));
    }
    // A row without a value keeps the rate, and is counted.
    let (trace, notes) = of("time,mbps\n0,8\n1,-\n2,8\n");
    assert_sums(&notes, &trace, 2000, 2e6);
    assert!(notes.contains("1 row without a rate (first line 3: `-`)"), "{notes}");
    // The note says so if the file states no unit.
    assert!(of("0 8000\n1 9000\n2 7000\n").1.contains("in kb/s, a guess"));
}

#[test]
fn one_value_a_second_is_a_rate() {
    for file in
        ["8\n16\n0\n4\n", "Mb/s\n8\n16\n0\n4\n", "[8, 16, 0, 4]", "throughput_kbps\n8000\n16000\n0\n4000\n"]
    {
        let (trace, notes) = of(file);
        assert_sums(&notes, &trace, 4000, 3.5e6);
        assert!(notes.contains("a value every 1 s"), "{notes}");
    }
    let tenths = Options { interval: paceline_net::Duration::from_millis(100), ..options() };
    assert_sums("interval", &with("8\n16\n0\n4\n", &tenths).0, 400, 350_000.0);
}

#[test]
fn json_is_read_as_lists_rows_objects_and_columns() {
    for file in [
        r#"[{"t": 0, "mbps": 8}, {"t": 0.5, "mbps": 16}, {"t": 1.5, "mbps": 0}, {"t": 2, "mbps": 4}, {"t": 3, "mbps": 4}]"#,
        "{\"t\": 0, \"mbps\": 8}\n{\"t\": 0.5, \"mbps\": 16}\n{\"t\": 1.5, \"mbps\": 0}\n{\"t\": 2, \"mbps\": 4}\n{\"t\": 3, \"mbps\": 4}\n",
        "[[0, 8], [0.5, 16], [1.5, 0], [2, 4], [3, 4]]",
        r#"[["time", "mbps"], [0, 8], [0.5, 16], [1.5, 0], [2, 4], [3, 4]]"#,
        r#"{"name": "walk", "run": {"time_s": [0, 0.5, 1.5, 2, 3], "rate_kbps": [8000, 16000, 0, 4000, 4000]}}"#,
        r#"{"samples": [{"at": 0, "net": {"rate_mbps": 8}}, {"at": 0.5, "net": {"rate_mbps": 16}},
            {"at": 1.5, "net": {"rate_mbps": 0}}, {"at": 2, "net": {"rate_mbps": 4}}, {"at": 3, "net": {"rate_mbps": 4}}]}"#,
        r#"[{"duration_ms": 500, "bandwidth_kbps": 8000}, {"duration_ms": 1000, "bandwidth_kbps": 16000},
            {"duration_ms": 500, "bandwidth_kbps": 0}, {"duration_ms": 1000, "bandwidth_kbps": 4000}]"#,
    ] {
        let (trace, notes) = of(file);
        assert_sums(&notes, &trace, 3000, 3e6);
    }
    assert!(fails("[{\"a\": 1").contains("not valid JSON"));
    assert!(fails("{\"a\": 1}").contains("without a list"));
}

#[test]
fn iperf3s_reports_are_read() {
    let interval = |start: f64, mbps: f64, sender: bool, omitted: bool| {
        serde_json::json!({"streams": [], "sum": {"start": start, "end": start + 1.0, "seconds": 1.0,
            "bytes": mbps * 125_000.0, "bits_per_second": mbps * 1e6, "omitted": omitted, "sender": sender}})
    };
    let report = |sender: bool, rates: [f64; 3]| {
        let intervals: Vec<_> = (0..3).map(|n| interval(n as f64, rates[n], sender, false)).collect();
        let all = [vec![interval(0.0, 99.0, sender, true)], intervals].concat();
        serde_json::json!({"start": {"version": "iperf 3.12"}, "intervals": all, "end": {}})
    };
    let (trace, notes) = of(report(false, [8.0, 0.0, 16.0]).to_string());
    assert_sums(&notes, &trace, 3000, 3e6);
    assert!(notes.contains("3 intervals: the receiver's"), "{notes}");
    let mut upload = report(true, [80.0, 80.0, 80.0]);
    assert!(of(upload.to_string()).1.contains("the sender's"));
    upload["server_output_json"] = report(false, [8.0, 0.0, 16.0]);
    let (trace, notes) = of(upload.to_string());
    assert_sums(&notes, &trace, 3000, 3e6);
    assert!(notes.contains("the server's"), "{notes}");
    let stream: String = (0..3)
        .map(|n| {
            format!(
                "{}\n",
                serde_json::json!({"event": "interval", "data": interval(f64::from(n), 8.0, false, false)})
            )
        })
        .collect();
    assert_sums("stream", &of(format!("{{\"event\":\"start\",\"data\":{{}}}}\n{stream}")).0, 3000, 3e6);
}

/// A capture of 1000 datagrams of 1500 bytes, one every ms, and a smaller flow in the other direction.
fn capture(link: u32, header: &[u8], order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let mut file: Vec<u8> = [order(0xa1b2_3c4d), order(0x0004_0002)].concat();
    if file[0] == 0xa1 {
        file[4..8].copy_from_slice(&[0, 2, 0, 4]);
    } else {
        file[4..8].copy_from_slice(&[2, 0, 4, 0]);
    }
    file.extend([order(0), order(0), order(128), order(link)].concat());
    for ms in 1..=1000u32 {
        for (down, len) in [(true, 1500u16), (false, 40)] {
            let builder = etherparse::PacketBuilder::ipv4(
                if down { [10, 0, 0, 1] } else { [10, 0, 0, 2] },
                if down { [10, 0, 0, 2] } else { [10, 0, 0, 1] },
                64,
            )
            .udp(5001, 40_000);
            let mut packet = Vec::new();
            builder.write(&mut packet, &vec![0; usize::from(len) - 28]).unwrap();
            packet.truncate(64);
            let captured = (header.len() + packet.len()) as u32;
            let ns = ms * 1_000_000;
            file.extend(
                [
                    order(1_764_000_000 + ns / 1_000_000_000),
                    order(ns % 1_000_000_000),
                    order(captured),
                    order(u32::from(len) + header.len() as u32),
                ]
                .concat(),
            );
            file.extend(header);
            file.extend(packet);
        }
    }
    file
}

#[test]
fn the_largest_flow_of_a_capture_gives_the_opportunities() {
    let ethernet = [[0; 12].as_slice(), &[0x08, 0x00]].concat();
    let cooked = [[0; 14].as_slice(), &[0x08, 0x00]].concat();
    for (link, header) in [(1, &ethernet[..]), (101, &[]), (113, &cooked), (0, &[2, 0, 0, 0])] {
        for order in [u32::to_le_bytes, u32::to_be_bytes] {
            let (trace, notes) = of(capture(link, header, order));
            // 1500 bytes and the four that mahimahi adds: an opportunity each.
            assert!(trace.at_ms().eq(1..=1000), "{link}: {notes}");
            assert!(notes.contains("2000 packets: the largest flow, from 10.0.0.1 port 5001"), "{notes}");
        }
    }
    let whole = capture(101, &[], u32::to_le_bytes);
    assert!(fails(&whole[..whole.len() - 5]).contains("damaged capture"));
    assert!(fails(&whole[..24]).contains("without IP packets"));
}

#[test]
fn rates_to_ten_gigabits_are_kept() {
    let (trace, notes) = of("time_s,gbps\n0,10\n1,1\n2,1\n");
    assert_sums(&notes, &trace, 2000, 1.375e9);
    assert_eq!(Trace::read(&trace.to_file()).as_ref(), Ok(&trace));
    assert!(trace.to_file().len() < 20_000);
}

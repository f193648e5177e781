//! One minute of rates as recorders, dashboards and other tools write it: whatever the counters, units and
//! clocks, the mean is that of the minute.

use super::{fails, gzip, of, options, times, with, xz};
use crate::Options;
use crate::options::{Amounts, SameTime};
use std::fmt::Write;

/// Rates in Mb/s, one a second: a fixed series between 8 and 80 with a mean of 41.3.
fn rates() -> Vec<f64> {
    (0..60).map(|n| 8.0 + f64::from((n * 37 + n * n * 11) % 70)).collect()
}

/// Asserts the mean over the first `seconds` rates within what decimals and the last opportunity change.
fn assert_mean(name: &str, file: impl AsRef<[u8]>, seconds: usize) -> String {
    let (trace, notes) = of(file);
    let expected = rates()[..seconds].iter().sum::<f64>() / seconds as f64;
    let mean = trace.rate() / 1e6;
    assert!((mean / expected - 1.0).abs() < 0.003, "{name}: {mean} of {expected} Mb/s: {notes}");
    notes
}

/// A table with a row a second.
fn table(heading: &str, row: impl Fn(usize, f64) -> String) -> String {
    let rows = rates().into_iter().enumerate().map(|(second, rate)| format!("{}\n", row(second, rate)));
    format!("{heading}\n{}", rows.collect::<String>())
}

/// Bytes in all until each second, 0 at first.
fn counts(from: f64) -> Vec<f64> {
    let mut sum = from;
    let sums = rates().into_iter().map(|rate| {
        sum += rate * 125_000.0;
        sum
    });
    std::iter::once(from).chain(sums.collect::<Vec<_>>()).collect()
}

fn counted(heading: &str, from: f64, cell: impl Fn(f64) -> String) -> String {
    let rows = counts(from).into_iter().enumerate();
    let rows: String = rows.map(|(second, count)| format!("{second},{}\n", cell(count))).collect();
    format!("{heading}\n{rows}")
}

#[test]
fn units_in_names_of_all_spellings_give_the_same_mean() {
    for (heading, bits) in [
        ("time,rxkB/s", 8192.0),
        ("time_s,throughput (KiB/s)", 8192.0),
        ("time_s,throughput (MiB/s)", 8_388_608.0),
        ("time_s,Throughput [Mibit/s]", 1_048_576.0),
        ("time_s,bytes_sec", 8.0),
        ("time_s,rx_bytes_s", 8.0),
        ("time_s,kbytes_sec", 8000.0),
        ("time_s,downlinkThroughputBps", 1.0),
        ("time_s,downlinkMBps", 8e6),
        ("time_s,dlMbps", 1e6),
        ("time_s,Throughput..KB.s.", 8e3),
        ("time_s,Speed (Mbps)", 1e6),
    ] {
        let file = table(heading, |second, rate| format!("{second},{}", rate * 1e6 / bits));
        assert_mean(heading, file, 59);
    }
    let sar = table("time,IFACE,rxpck/s,txpck/s,rxkB/s,txkB/s", |second, rate| {
        format!("{second},eth0,3000,1500,{:.2},{:.2}", rate * 1e6 / 8192.0, rate * 20.0)
    });
    let notes = assert_mean("sar", sar, 59);
    assert!(notes.contains("KiB/s (as sar counts; --rate-unit changes it)"), "{notes}");
    let starlink = serde_json::json!({"dishGetHistory": {"popPingLatencyMs": vec![40; 60],
        "downlinkThroughputBps": rates().iter().map(|rate| rate * 1e6).collect::<Vec<_>>(),
        "uplinkThroughputBps": (0..60).collect::<Vec<_>>()}});
    let notes = assert_mean("Starlink", starlink.to_string(), 60);
    assert!(
        notes.contains("guessed: the unit of `downlinkThroughputBps`, the time between values; the mean")
    );
}

#[test]
fn bytes_that_never_fall_are_a_counters() {
    let plain = |count: f64| count.to_string();
    for (name, file) in [
        ("from 0", counted("time_s,rx_bytes", 0.0, plain)),
        ("since the boot", counted("time_s,rx_bytes", 9e9, plain)),
        ("kB", counted("time_s,total kB", 0.0, |count| (count / 1e3).to_string())),
        ("octets", counted("time_s,ifInOctets", 5e6, plain)),
        ("32 bits", counted("time_s,rx_bytes", 4.2e9, |count| (count % 4_294_967_296.0).to_string())),
        ("without times", counted("second,received_bytes", 7.0, plain).replace("second", "n")),
    ] {
        let notes = assert_mean(name, file, 60);
        assert!(notes.contains("the values of a counter"), "{name}: {notes}");
    }
    let notes = assert_mean("gap", counted("t,rx_bytes", 0.0, plain).replace("\n9,", "\n9,-\n9.5,"), 60);
    assert!(
        notes.contains(", values that never fall as a counter's; the mean that results is 41.333 Mb/s"),
        "{notes}"
    );
    // The option has the last word, and amounts that fall are those of their rows.
    let each = Options { amounts: Some(Amounts::EachRow), ..options() };
    let (trace, _) = with(counted("time_s,rx_bytes", 0.0, plain), &each);
    assert!(trace.rate() > 1e9);
    let amounts = table("time_s,rx_bytes", |second, rate| format!("{},{}", second + 1, rate * 125_000.0));
    assert!(!of(amounts).1.contains("counter"));
}

#[test]
fn speeds_and_constant_columns_are_neither_rates_nor_times() {
    for heading in [
        "time,Speed (km/h),RSRP",
        "time,speed m/s,rsrp",
        "t,movingSpeed,RSRP",
        "t,Speed_kmh,x",
        "t,Speed,lat",
    ] {
        let error = fails(table(heading, |second, rate| format!("{second},{rate},-95")));
        assert!(error.contains("is a speed of movement; no column is known to be a rate"), "{error}");
    }
    assert!(fails(table("time,rsrp", |second, _| format!("{second},95"))).contains("no column is known"));
    let beside = table("Timestamp,Speed,DL_bitrate", |second, rate| format!("{second},10,{}", rate * 1e3));
    assert_mean("speed beside a rate", beside, 59);
    let lumos = table("run_num,seq_num,movingSpeed,date,Throughput", |second, rate| {
        format!("1,{second},1.35,20190101,{rate}")
    });
    let notes = assert_mean("constant date", lumos, 60);
    assert!(notes.contains("`date` is 20190101 in all rows: no time"), "{notes}");
    let alone = table("time,speed", |second, rate| format!("{second},{rate}"));
    assert!(assert_mean("speed alone", alone, 59).contains("`speed` as a rate of the link"));
    let joined = table("datetimestamp_utc,n,downlink_throughput_bps", |second, rate| {
        format!("2022-05-01T10:{second:02}:00+00:00,1,{}", rate * 1e6)
    });
    assert!(assert_mean("minutes", joined, 59).contains("3540.000 s"));
}

#[test]
fn rows_of_one_second_are_joined() {
    let mut file = "Timestamp,DL_bitrate\n".to_owned();
    let mut streams = "time,stream,mbps\n".to_owned();
    let mut amounts = "time,bytes\n0,7\n".to_owned();
    for (second, rate) in rates().into_iter().enumerate() {
        for part in 0..10 {
            // Means of 1, 2, ... 10 times 2 / 11 are 1.
            let share = f64::from(part + 1) * 2.0 / 11.0;
            writeln!(file, "2019.11.27_07.45.{second:02},{}", rate * share * 1e3).unwrap();
            writeln!(streams, "{second},{part},{}", rate / 10.0).unwrap();
            writeln!(amounts, "{},{}", second + 1, rate * share * 12_500.0).unwrap();
        }
    }
    let notes = assert_mean("mean", &file, 59);
    assert!(
        notes.contains("600 rows at 60 times: the mean of the rates at one time; --same-time sum"),
        "{notes}"
    );
    assert!(
        notes.contains("guessed: ") && notes.contains("the mean of the rates at one time; the mean that")
    );
    let notes = assert_mean("streams", streams, 59);
    assert!(notes.contains("of several `stream`: the sum of the rates"), "{notes}");
    assert_mean("amounts", amounts, 60);
    let sum = Options { same_time: Some(SameTime::Sum), ..options() };
    assert!(with(&file, &sum).0.rate() > 3e8);
}

#[test]
fn one_step_of_the_clock_is_skipped_and_several_need_the_option() {
    let stamp =
        |second: i64| format!("2019-11-27 07:{:02}:{:02}", 30 + second.div_euclid(60), second.rem_euclid(60));
    let file = |shift: &dyn Fn(usize) -> i64| {
        table("Timestamp,DL_mbps", |second, rate| format!("{},{rate}", stamp(second as i64 + shift(second))))
    };
    for (name, shift) in [
        ("one row", (&|second: usize| if second == 30 { -2_i64 } else { 0 }) as &dyn Fn(usize) -> i64),
        ("back", &|second: usize| if second >= 30 { -20_i64 } else { 0 }),
    ] {
        let notes = assert_mean(name, file(shift), 59);
        assert!(notes.contains("line 32: ") && notes.contains("a step of the clock"), "{name}: {notes}");
    }
    let twice = file(&|second| -10 * i64::from(second >= 20) - 10 * i64::from(second >= 40));
    let error = fails(&twice);
    assert!(error.contains("times must not decrease (2 steps of the clock); --allow-steps"), "{error}");
    let allowed = Options { allow_steps: true, ..options() };
    let (trace, notes) = with(&twice, &allowed);
    assert_eq!(trace.length_ms(), 59_000, "{notes}");
    // Opportunities too, with the option alone.
    let times: String = (1..=50).chain(31..=100).map(|ms| format!("{ms}\n")).collect();
    assert!(fails(&times).contains("--rate 1 takes the values"));
    assert_eq!(with(&times, &allowed).0.count_all(), 120);
}

#[test]
fn times_with_zones_are_read() {
    for zone in [
        " CDT",
        " UTC",
        "Z",
        "+02:00",
        " +0530",
        " UTC+8",
        " IST",
        " Europe/Berlin",
        "-06:00[America/Chicago]",
    ] {
        let file = table("timestamp,downlink_mbps", |second, rate| {
            format!("2021-01-25 03:48:{second:02}.544{zone},{rate}")
        });
        let notes = assert_mean(zone, file, 59);
        assert!(notes.contains("from dates"), "{notes}");
    }
    let spaces: String =
        rates().iter().enumerate().map(|(n, rate)| format!("2021-01-25 03:48:{n:02} CDT {rate}\n")).collect();
    assert_mean("spaces", spaces, 59);
}

#[test]
fn logs_of_iperf_are_read_without_their_sums() {
    let lines = |id: &str, part: f64| {
        let line = |(n, rate): (usize, f64)| {
            format!(
                "[{id}] {n:.2}-{:.2}   sec  {:.2} MBytes  {:.1} Mbits/sec                  \n",
                n + 1,
                rate / 8.0,
                rate * part
            )
        };
        rates().into_iter().enumerate().map(line).collect::<Vec<_>>()
    };
    let head = "Connecting to host 10.0.0.1, port 5201\nReverse mode, remote host 10.0.0.1 is sending\n\
                [  5] local 10.0.0.2 port 41366 connected to 10.0.0.1 port 5201\n\
                [ ID] Interval           Transfer     Bitrate\n";
    let tail = "- - - - -\n[ ID] Interval           Transfer     Bitrate         Retr\n\
                [  5]   0.00-60.00  sec   300 MBytes  10.0 Mbits/sec   36             sender\n\
                [  5]   0.00-60.00  sec   300 MBytes  10.0 Mbits/sec                  receiver\n\niperf Done.\n";
    let one = lines("  5", 1.0).concat();
    let omitted = "[  5]   0.00-1.00   sec  2.71 MBytes  999 Mbits/sec                  (omitted)\n";
    let pairs: String =
        lines("  5", 0.25).into_iter().zip(lines("  7", 0.75)).flat_map(|(a, b)| [a, b]).collect();
    let sums: String =
        lines("  5", 0.5).into_iter().zip(lines("SUM", 1.0)).flat_map(|(a, b)| [a, b]).collect();
    let whole = "[  5] 0.0-60.0 sec  300 MBytes  10.0 Mbits/sec\n";
    for (name, file) in [
        ("iperf3", format!("{head}{one}{tail}")),
        ("iperf3, CR LF, packed", String::new()),
        ("omitted", format!("{head}{omitted}{one}{tail}")),
        ("several streams", format!("{head}{pairs}{tail}")),
        ("sums", format!("{head}{sums}{tail}")),
        (
            "iperf2",
            format!(
                "Server listening on TCP port 5001\n[ ID] Interval       Transfer     Bandwidth\n{one}{whole}"
            ),
        ),
        ("intervals alone", one.clone()),
    ] {
        let file = if file.is_empty() {
            gzip(format!("{head}{one}{tail}").replace('\n', "\r\n").as_bytes())
        } else {
            file.into()
        };
        let notes = assert_mean(name, file, 60);
        assert!(notes.contains("iperf's log, 60 intervals"), "{name}: {notes}");
    }
    let notes = assert_mean("receiver", format!("{head}{one}"), 60);
    assert!(notes.contains("60 intervals: the receiver's"), "{notes}");
    assert!(of(one).1.contains("the sender's, which count"));
}

#[test]
fn rattans_traces_are_read_in_words_and_numbers() {
    let list = |step: &dyn Fn(f64) -> serde_json::Value| rates().into_iter().map(step).collect::<Vec<_>>();
    let words =
        list(&|rate| serde_json::json!({"StaticBwConfig": {"bw": format!("{rate}Mbps"), "duration": "1s"}}));
    let numbers = list(&|rate| {
        let bw = serde_json::json!({"gbps": 0, "bps": rate * 1e6});
        serde_json::json!({"StaticBwConfig": {"bw": bw, "duration": {"secs": 0, "nanos": 1_000_000_000}}})
    });
    let trace =
        list(&|rate| serde_json::json!(["500ms", [format!("{rate}Mbps"), format!("{}kbps", rate * 1e3)]]));
    let repeated = |pattern: &serde_json::Value, count: u32| serde_json::json!({"RepeatedBwPatternConfig": {"pattern": pattern, "count": count}});
    let [words, numbers] = [words, numbers].map(serde_json::Value::from);
    let compact = serde_json::json!([{"TraceBwConfig": {"pattern": trace}}]);
    for (name, file) in [
        ("words", repeated(&words, 0)),
        ("numbers", repeated(&numbers, 2)),
        ("compact", repeated(&compact, 0)),
        ("a list", words.clone()),
        ("inside a configuration", serde_json::json!({"cells": {"down": {"bw": repeated(&words, 0)}}})),
    ] {
        let notes = assert_mean(name, file.to_string(), 60);
        assert!(notes.contains("Rattan's trace of bandwidth"), "{name}: {notes}");
    }
    let twice = repeated(&serde_json::json!([repeated(&words, 2)]), 0);
    assert_eq!(of(twice.to_string()).0.length_ms(), 120_000);
    let endless = repeated(&serde_json::json!([repeated(&words, 0)]), 1).to_string();
    assert!(fails(endless).contains("repeats for ever"));
    let random = r#"{"NormalizedBwConfig": {"mean": "12Mbps", "std_dev": "1Mbps"}}"#;
    assert!(fails(random).contains("random or formed rates"));
    assert!(fails(r#"[{"StaticBwConfig": {"bw": "fast", "duration": "1s"}}]"#).contains("no bandwidth"));
}

#[test]
fn lines_and_values_of_packed_files_are_bounded() {
    let error = fails(gzip("1\n".repeat(10_000_010).as_bytes()));
    assert!(error.contains("more than 10000000 lines"), "{error}");
    let values = format!("[{}1]", "1,".repeat(13_000_000));
    assert!(fails(gzip(values.as_bytes())).contains("more than 12000000 values"));
    let columns = "1,".repeat(20_000);
    assert!(fails(gzip(columns.as_bytes())).contains("line 1: allowed: up to 10000 columns"));
    // The lines of a bomb are counted while it is unpacked.
    let bomb = [gzip("\n".repeat(1_000_000).as_bytes())].concat().repeat(30);
    assert!(fails(bomb).contains("more than 10000000 lines"));
    assert_eq!(times(xz(b"1\n3\n")), [1, 3]);
}

//! Spreadsheets, recorders and hands: quotation marks, clock times, comments behind values, units left out.

use super::{assert_sums, bytes_by, fails, of, options, times, with};
use crate::Options;
use crate::units::{RateUnit, TimeUnit};
use paceline_net::trace::Trace;

/// Asserts 8 Mb/s for a second, then 16 Mb/s for two.
fn assert_steps(name: &str, (trace, notes): &(Trace, String)) {
    assert_sums(&format!("{name}: {notes}"), trace, 3000, 5e6);
    assert!((bytes_by(trace, 1000) - 1e6).abs() < 2.0 * 1504.0, "{name}: {notes}");
}

#[test]
fn times_of_opportunities_in_us_and_ns_are_known_where_packets_share_a_time() {
    for (unit, scale) in [("ms", 1), ("us", 1000), ("ns", 1_000_000)] {
        // Ten packets every 10 ms for 20 s: 12 Mb/s.
        let file: String = (1..=2000u64).map(|n| format!("{}\n", n * 10 * scale).repeat(10)).collect();
        let (trace, notes) = of(&file);
        assert_eq!((trace.count_all(), trace.length_ms()), (20_000, 20_000), "{notes}");
        assert!(
            notes.contains(&format!("20000 times in {unit} (by length and rate: 20.000 s at 12.032 Mb/s")),
            "{notes}"
        );
    }
    // Whole mahimahi files of 10 Gb/s keep their unit, and the option has the last word.
    let fast: String = (1..=1200).map(|ms| format!("{ms}\n").repeat(831)).collect();
    assert_eq!(of(&fast).0.length_ms(), 1200);
    let stated = Options { time_unit: Some(TimeUnit::Microsecond), ..options() };
    assert_eq!(with("1000\n1000\n3000\n", &stated).0.at_ms().collect::<Vec<_>>(), [1, 1, 3]);
    // A name states the unit; uptime in ns is not a time since 1970.
    let named: String = (0..2000u64).map(|n| format!("{}\n", 1_500_000_000 + n * 1_000_000)).collect();
    let (trace, notes) = of(format!("time_ns\n{named}"));
    assert!(notes.contains("times in ns (as its name states"), "{notes}");
    assert_eq!(trace.count_all(), 2000);
}

#[test]
fn cells_may_have_spaces_and_quotation_marks_around_them() {
    for (name, file) in [
        ("spaces", "time, rate_mbps\n0, 8\n1, 16\n3, 16\n"),
        (
            "quoted",
            "\"time\", \"note\", \"rate_mbps\"\n\"0\", \"a, b\", \"8\"\n\"1\", \"c \"\"d\"\", e\", \"16\"\n\"3\",,\"16\"\n",
        ),
        ("single marks", "'time','rate_mbps'\n'0','8'\n'1','16'\n'3','16'\n"),
        ("a cell of two lines", "time,note,rate_mbps\n0,\"a\nb\",8\n1,c,16\n3,d,16\n"),
        ("a lone mark", "time,size 5\",rate_mbps\n0,a\",8\n1,b,16\n3,c,16\n"),
        ("thousands", "time,rate_kbps\n0,\"8,000\"\n1,\"16,000\"\n3,\"16,000\"\n"),
        ("thousands by points", "time;rate_kbps\n0,0;8.000,0\n1,0;16.000,0\n3,0;16.000,0\n"),
        ("decimal commas", "time;rate_mbps\n0,0;8,0\n1,0;16,0\n3,0;16,0\n"),
        ("decimal commas without a heading", "0,0;8,0\n1,0;16,0\n3,0;16,0\n"),
        ("tabs, CR LF and a mark", "\u{feff}time\trate_mbps\r\n0\t8\r\n1\t16\r\n3\t\r\n"),
        ("CR alone", "time,rate_mbps\r0,8\r1,16\r3,16\r"),
        ("a stated separator", "sep=;\ntime;rate_mbps\n0;8\n1;16\n3;16\n"),
        ("no heading", "0,8\n1,16\n3,16\n"),
    ] {
        assert_steps(name, &of(file));
    }
    assert!(fails("time,rate_mbps\n0,8,5\n1,9\n").contains("line 2: 3 of 2 columns"));
    assert!(fails("time,rate_mbps\n0,8\n1\n2,9\n").contains("line 3: 1 of 2 columns"));
}

#[test]
fn clock_times_are_times() {
    for rows in [
        ["12:34:56.789", "12:34:57.789", "12:34:59.789"],
        ["23:59:59", "00:00:00", "00:00:02"],
        ["11:59:58 PM", "11:59:59 PM", "12:00:01 AM"],
        ["2024-05-01T12:34:56.789Z", "2024-05-01T12:34:57.789Z", "2024-05-01T12:34:59.789Z"],
        ["2024-05-01 12:34:56", "2024-05-01 12:34:57", "2024-05-01 12:34:59"],
        ["2024-10-27T02:59:59+02:00", "2024-10-27T02:00:00+01:00", "2024-10-27T02:00:02+01:00"],
        ["31.12.2024 23:59:59", "1.1.2025 0:00:00", "1.1.2025 0:00:02"],
        ["12/31/2024 23:59:59", "1/1/2025 0:00:00", "1/1/2025 0:00:02"],
    ] {
        let [a, b, c] = rows;
        for (name, file) in [
            ("commas", format!("time,rate_mbps\n{a},8\n{b},16\n{c},16\n")),
            ("quoted", format!("\"time\",\"rate_mbps\"\n\"{a}\",\"8\"\n\"{b}\",\"16\"\n\"{c}\",\"16\"\n")),
            ("no heading", format!("{a},8\n{b},16\n{c},16\n")),
            ("spaces", format!("{a} 8\n{b} 16\n{c} 16\n")),
            (
                "JSON",
                format!(
                    r#"[{{"at": "{a}", "mbps": 8}}, {{"at": "{b}", "mbps": 16}}, {{"at": "{c}", "mbps": 16}}]"#
                ),
            ),
        ] {
            assert_steps(&format!("{name}, {a}"), &of(file));
        }
    }
    // A date beside the time of day.
    let beside =
        "date,time,rate_mbps\n2024-05-01,23:59:59,8\n2024-05-02,00:00:00,16\n2024-05-02,00:00:02,16\n";
    let (trace, notes) = of(beside);
    assert!(notes.contains("times of day, past midnight, from 23:59:59"), "{notes}");
    assert_steps("date beside", &(trace, notes));
    // One column: opportunities.
    assert_eq!(times("23:59:59.998\n23:59:59.999\n00:00:00.000\n00:00:00.001\n"), [1, 2, 3, 4]);
    assert_eq!(times("2024-05-01 12:00:00.001\n2024-05-01 12:00:00.002\n"), [1, 2]);
    for (file, part) in [
        (
            "time,rate_mbps\n12:00:05,8\n12:00:01,9\n",
            "line 3: `time`: 12:00:01 after 12:00:05: times must not decrease",
        ),
        ("time,rate_mbps\n12:00:05,8\nnoon,9\n", "line 3: `time`: `noon` is not such a time"),
        ("time,rate_mbps\nnan,8\n1,9\n", "line 2: `time`: `nan` is not such a time"),
        ("time,rate_mbps\n2024-02-31 12:00:00,8\n2024-03-01 12:00:00,9\n", "`2024-02-31 12:00:00` is not"),
        ("time,rate_mbps\n5 o'clock,8\n6 o'clock,9\n", "line 2: `time`: `5 o'clock` is not a time"),
        ("12:00:05\n12:00:01\n", "line 2: column 1: 12:00:01 after 12:00:05"),
    ] {
        assert!(fails(file).contains(part), "{file:?}: {}", fails(file));
    }
}

#[test]
fn comments_may_stand_behind_values() {
    for file in [
        "1 # note\n3\n3#note\n4 // y\n8\n",
        "1;note\n3;\n3;y\n4;z\n8;z\n",
        "1\n3 ; note\n3;y\n4\n8\n",
        "1\t# a\n3\tb\n3\n4\n8 # c, d\n",
        "1,a\n3,b\n3,\n4,c\n8,d\n",
    ] {
        if file.contains("\tb") {
            assert!(fails(file).contains("columns"), "a word without a mark");
        } else {
            assert_eq!(times(file), super::MAHIMAHI_TIMES, "{file:?}");
        }
    }
    for file in [
        "time,rate_mbps # head\n0,8 # a, b\n1,16 // c\n3,16\n",
        "0 8 # a, b\n1 16 ; c\n3 16\n",
        "time,packet #,rate_mbps\n0,1,8\n1,2,16\n3,3,16\n",
        "time,note,rate_mbps\n0,\"a # b\",8\n1,http://c/#d,16\n3,e,16\n",
    ] {
        assert_steps(file, &of(file));
    }
    assert!(of("1 # note\n3\n").1.contains("1 comment left out"));
}

#[test]
fn a_unit_that_is_not_stated_is_a_possible_one() {
    for (rates, unit) in
        [(["8", "16"], "Mb/s"), (["8000", "16000"], "kb/s"), (["8000000", "16000000"], "b/s")]
    {
        let [low, high] = rates;
        let (trace, notes) = of(format!("time,rate\n0,{low}\n1,{high}\n3,{high}\n"));
        assert!(
            notes.contains(&format!(
                "in {unit}, a guess: no unit is stated; --rate-unit changes it (median 16"
            )),
            "{notes}"
        );
        assert_steps(unit, &(trace, notes));
    }
    let stated = Options { rate_unit: RateUnit::named("b/s"), ..options() };
    assert_steps("stated", &with("time,rate\n0,8000000\n1,16000000\n3,16000000\n", &stated));
    assert!(of("time,rate\n0,800000\n1,900000\n").1.contains("or perhaps kb/s"));
    assert!(fails("time,rate\n0,9e10\n1,9e10\n").contains("above 10 Gb/s even in b/s; --rate-unit"));
    let same = Options { time: Some("1".into()), rate: Some("time".into()), ..options() };
    assert!(super::import("time,rate\n0,8\n1,9\n".as_bytes(), &same).err().unwrap().contains("--rate too"));
}

#[test]
fn reports_and_objects_inside_lists_are_found() {
    let report = |rate: f64, seconds: u32| {
        let interval = |n: u32| serde_json::json!({"sum": {"start": n, "end": n + 1, "bits_per_second": rate, "omitted": false}});
        serde_json::json!({"start": {}, "intervals": (0..seconds).map(interval).collect::<Vec<_>>(), "end": {}})
    };
    let list = of(serde_json::json!([report(8e6, 1), report(16e6, 2)]).to_string());
    assert!(list.1.contains("2 of iperf3's reports, one after another, 3 intervals"), "{}", list.1);
    assert_steps("a list of reports", &list);
    let failed = r#"{"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}"#;
    assert!(fails(failed).contains("without intervals: unable to connect"));
    // Members that the first object lacks.
    let late = r#"[{"t": 0}, {"t": 1, "mbps": 8}, {"t": 2, "mbps": 16}, {"t": 4, "mbps": null}]"#;
    let (trace, notes) = with(late, &Options { trim: true, ..options() });
    assert!(notes.contains("2 rows without a rate (first element 1: ``)"), "{notes}");
    assert_steps("late members", &(trace, notes));
    assert_steps("one object in a list", &of(r#"[{"run": {"t": [0, 1, 3], "mbps": [8, 16, 16]}}]"#));
}

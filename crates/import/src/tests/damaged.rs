//! Files that give no trace: one line says why, and there is never a panic.

use super::{MAHIMAHI, assert_sums, capture, fails, gzip, import, of, options, with, xz};
use crate::units::RateUnit;
use crate::{Options, is_foreign};
use proptest::prelude::*;

#[test]
fn a_file_without_a_trace_is_an_error() {
    for (file, part) in [
        ("time,rate_mbps\n0,a\n1,b\n", "line 2: `rate_mbps`: `a` is not a number, and no other row has one"),
        ("time,rate_mbps\n0,nan\n1,inf\n", "`nan` is not a number"),
        ("rate_mbps\nx\ny\n", "line 2: `rate_mbps`: `x` is not a number"),
        (
            "[{\"time\": 0, \"rate\": null}, {\"time\": 1, \"rate\": null}]",
            "element 1: `rate`: `` is not a number",
        ),
        (
            "time,rate_mbps\n0,8\n1,-0.5\n",
            "line 3: `rate_mbps`: `-0.5` is negative; allowed: rates from 0 on",
        ),
        ("8\nnan\n9\n", "line 2: `nan` is not a number"),
        ("time,rate_mbps\n0,0\n1,0\n", "no rate is above 0"),
        ("time,rate_mbps\n", "no row with values"),
        ("[[], []]", "no row with values"),
        ("0,8\n", "a single row"),
        ("0\n", "all deliveries are at one time"),
        ("time_s,rate_mbps\n0,8\n1e300,9\n", "longer than a day"),
        ("1\n2\n99999999999999999999\n", "longer than a day"),
        ("hello\n", "line 1: `hello` is not a number"),
        ("\u{1f}\n", "`\u{fffd}` is not a number"),
        ("time,rate\n0,8 Mbps\n1,9 Mbps\n", "`8 Mbps` is not a number"),
    ] {
        assert!(fails(file).contains(part), "{file:?}: {}", fails(file));
        assert_eq!(fails(file).lines().count(), 1);
    }
    let backwards: String = (1..100).chain([50]).chain(100..200).map(|at| format!("{at}\n")).collect();
    assert!(fails(&backwards).contains("line 100: column 1: 50 after 99: times must not decrease; --rate 1"));
    let rates = Options { rate: Some("1".into()), ..options() };
    assert!(with(&backwards, &rates).1.contains("200 values"));
    let none = Options { interval: paceline_net::Duration::ZERO, ..options() };
    assert!(import(b"8\n9\n3\n", &none).err().unwrap().contains("--interval 0 s: allowed: above 0"));
    // A row without bytes does not move the ends of the others.
    let bytes = Options { rate_unit: RateUnit::named("B"), ..options() };
    let (trace, notes) = with("bytes\n-\n1000000\n-\n3000000\n", &bytes);
    assert_sums(&notes, &trace, 4000, 5e6);
    // Infinity and NaN are no rates, and are counted.
    let (trace, notes) = of("time,rate_mbps\n0,8\n1,nan\n2,inf\n3,8\n");
    assert!(
        notes.contains("2 rows without a rate (first line 3: `nan`): the rate before holds on"),
        "{notes}"
    );
    assert_sums(&notes, &trace, 3000, 3e6);
}

#[test]
fn packed_files_that_are_cut_off_are_errors() {
    for (name, packed) in [("gzip", gzip(MAHIMAHI.as_bytes())), ("xz", xz(MAHIMAHI.as_bytes()))] {
        for length in 6..packed.len() {
            let error = fails(&packed[..length]);
            assert!(error.contains(&format!("damaged {name}")), "{length} bytes: {error}");
        }
    }
}

#[test]
fn captures_with_times_from_0_and_of_several_sections_are_read() {
    let mut file = capture(101, &[], u32::to_le_bytes);
    for at in 0..file.len() - 4 {
        for (second, own) in [(0u32, 1_764_000_000u32), (1, 1_764_000_001)] {
            if file[at..at + 4] == own.to_le_bytes() {
                file[at..at + 4].copy_from_slice(&second.to_le_bytes());
            }
        }
    }
    let (trace, notes) = of(&file);
    assert!(trace.at_ms().eq(1..=1000), "{notes}");
    // Two sections of pcapng, of which the second has fewer interfaces.
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = |interfaces: usize, at_ms: std::ops::Range<u32>| {
        let head = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
        let mut section = block(0x0a0d_0d0a, &head);
        section.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0]).repeat(interfaces));
        for ms in at_ms {
            let mut packet = Vec::new();
            let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
            builder.write(&mut packet, &[0; 1472]).unwrap();
            let words = [0, 0, ms * 1000, packet.len() as u32, packet.len() as u32];
            section.extend(block(6, &[words.map(u32::to_le_bytes).concat(), packet].concat()));
        }
        section
    };
    let (trace, notes) = of([section(2, 1..101), section(1, 101..201)].concat());
    assert!(trace.at_ms().eq(1..=200), "{notes}");
    assert!(fails(section(1, 5..6)).contains("at one time only"));
}

#[test]
fn files_beside_traces_are_told_from_damaged_traces() {
    for file in [
        &b"# Traces\n\nRecorded on 2024-05-01 by hand.\n\nWalks and drives.\n"[..],
        b"# T\n\nsome text 5\n",
        b"\x89PNG\r\n\x1a\n\0\0",
        b"\0\0\0\x01Bud1",
        b"who,what\nme,that\n",
        b"{\"name\": \"traces\", \"private\": true}",
        b"",
    ] {
        assert!(is_foreign(file), "{:?}", String::from_utf8_lossy(file));
    }
    for file in [
        &gzip(MAHIMAHI.as_bytes())[..20],
        b"time,rate_mbps\n0,a\n1,b\n",
        b"1\n2\nx\n",
        b"[{\"time\": 0, \"rate",
        b"12:00:05,8\n12:00:01,9\n",
    ] {
        assert!(!is_foreign(file), "{:?}", String::from_utf8_lossy(file));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn no_text_makes_the_import_panic(
        text in "([-0-9a-zµ:,;.TZ+#/%\"' \t\n\r\\[\\]{}]|time|rate|mbps|bytes|12:3|2024-05-01 |nan|1e30|\n){0,60}"
    ) {
        let _ = import(text.as_bytes(), &options());
        let _ = is_foreign(text.as_bytes());
        let _ = import(format!("time,rate\n{text}").as_bytes(), &options());
        for options in [
            Options { rate_unit: RateUnit::named("B"), trim: true, ..options() },
            Options { time: Some("1".into()), rate: Some("2".into()), ..options() },
        ] {
            let _ = import(text.as_bytes(), &options);
        }
    }
}

//! Logs of other programs, and inputs that are none.

use paceline_fit::log::Format;
use paceline_fit::{Confidence, Fit, Fitter};

fn fit(file: &str) -> Result<Fit, String> {
    let mut fitter = Fitter::new();
    fitter.read_log("log", file.as_bytes(), None)?;
    Ok(fitter.finish())
}

fn close(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-6 * wanted.abs().max(1.0)
}

#[test]
fn pings_of_iputils_give_the_least_round_trip_and_losses() {
    let mut text = String::from("PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n");
    for sequence in (1..=40).filter(|sequence| sequence % 10 != 0) {
        let rtt = 35.0 + f64::from(sequence % 7);
        text += &format!("64 bytes from 192.0.2.1: icmp_seq={sequence} ttl=55 time={rtt:.1} ms\n");
    }
    let fit = fit(&text).unwrap();
    let base = fit.base_rtt_ms.as_ref().unwrap();
    assert!(close(base.value, 35.0) && base.confidence == Confidence::High, "{base:?}");
    assert!(close(fit.loss_percent.as_ref().unwrap().value, 100.0 * 3.0 / 39.0), "{:?}", fit.loss_percent);
    assert!(close(fit.jitter_ms.as_ref().unwrap().value, 6.0), "{:?}", fit.jitter_ms);
    assert!(fit.scenario().is_none(), "pings have no rate");
}

#[test]
fn pings_of_other_programs_are_read() {
    for line in [
        "Reply from 192.0.2.1: bytes=32 time=35ms TTL=55",
        "Antwort von 192.0.2.1: Bytes=32 Zeit=35ms TTL=55 from",
        "[1700000000.25] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=55 time=35 ms",
        "192.0.2.1 : [0], 84 bytes, 35 ms (35.0 avg, 0% loss)",
        "64 bytes from 2001:db8::1: seq=0 ttl=55 time=35.000 ms",
    ] {
        let fit = fit(&format!("{line}\n{line}\n")).unwrap();
        assert!(close(fit.base_rtt_ms.as_ref().unwrap().value, 35.0), "{line}: {fit:?}");
    }
}

#[test]
fn iperf3_gives_rates_and_the_least_round_trip() {
    let interval = |index: u32, retransmits: u32| {
        format!(
            "{{\"streams\":[{{\"rtt\":80000,\"snd_cwnd\":200000}}],\"sum\":{{\"start\":{index},\"end\":{},\"seconds\":1,\
             \"bytes\":2500000,\"bits_per_second\":20000000,\"retransmits\":{retransmits},\"omitted\":false}}}}",
            index + 1
        )
    };
    let intervals: Vec<String> = (0..10).map(|index| interval(index, u32::from(index == 5))).collect();
    let text = format!(
        "{{\"start\":{{\"test_start\":{{\"protocol\":\"TCP\",\"reverse\":0}}}},\"intervals\":[{}],\
         \"end\":{{\"streams\":[{{\"sender\":{{\"min_rtt\":30000}}}}]}}}}",
        intervals.join(",")
    );
    let fit = fit(&text).unwrap();
    assert_eq!(fit.direction, "upload");
    assert!(close(fit.base_rtt_ms.as_ref().unwrap().value, 30.0));
    let capacity = fit.capacity_mbps.as_ref().unwrap();
    assert!(close(capacity.value, 20.0 * 1500.0 / 1448.0) && capacity.confidence.is_claim(), "{capacity:?}");
    // 50 ms at this rate.
    let buffer = fit.buffer_bytes.as_ref().unwrap();
    assert!((buffer.value - 0.05 * capacity.value * 1e6 / 8.0).abs() < 1.0, "{buffer:?}");
    fit.scenario().unwrap().load(&[]).unwrap();
}

#[test]
fn srsran_reports_of_all_years_are_read() {
    let old = |time: f64| {
        format!(
            "{{\"timestamp\":{time},\"ue_list\":[{{\"ue_container\":{{\"pci\":1,\"rnti\":17921,\"cqi\":15,\"ri\":1,\
             \"dl_mcs\":27,\"dl_brate\":17000000.0,\"pusch_snr_db\":24.0,\"ul_mcs\":26,\"ul_brate\":120000.0}}}}]}}\n"
        )
    };
    let new = |second: u32| {
        format!(
            "{{\"timestamp\":\"2025-09-29T12:00:{second:02}.000\",\"cells\":[{{\"cell_metrics\":{{\"pci\":1}},\"ue_list\":\
             [{{\"rnti\":17921,\"dl_mcs\":27,\"dl_brate\":17000000,\"pusch_snr_db\":24.0,\"ul_brate\":120000}}]}}]}}\n"
        )
    };
    let texts =
        [(0..6).map(|index| old(1.7e9 + f64::from(index))).collect::<String>(), (0..6).map(new).collect()];
    for text in texts {
        let fit = fit(&text).unwrap();
        assert!(close(fit.mcs.as_ref().unwrap().value, 27.0), "{fit:?}");
        assert!(close(fit.uplink_sinr_db.as_ref().unwrap().value, 24.0), "{fit:?}");
        let capacity = fit.capacity_mbps.as_ref().unwrap();
        assert!(close(capacity.value, 17.0) && capacity.confidence == Confidence::Low, "{capacity:?}");
        assert!(close(fit.rates.last().unwrap().time_s, 5.9), "{:?}", fit.rates.last());
        // A report that was cut while it was written.
        assert!(self::fit(&text[..text.len() - 20]).is_ok());
    }
}

#[test]
fn openairinterface_statistics_are_read() {
    let mut text = String::new();
    for index in 0..8u32 {
        text += &format!(
            "[NR_MAC]   Frame.Slot {}.0\nUE RNTI 2460 CU-UE-ID 2 in-sync PH 28 dB PCMAX 24 dBm, average RSRP -74 (8 meas), \
             average SINR 21.5 (32 meas)\nUE 2460: dlsch_rounds 32917/5113/1504/560, dlsch_errors 211, pucch0_DTX 1385, \
             BLER 0.19557 MCS (1) 23 CCE fail 3\nUE 2460: ulsch_rounds 3756/353/182/179, ulsch_errors 170, ulsch_DTX 285, \
             BLER 0.33021 MCS (1) 27 (Qm 8  dB) NPRB 5  SNR 31.0 dB CCE fail 0\nUE 2460: MAC:    TX     {} RX         \
             194148 bytes\n",
            (900 + 128 * index) % 1024,
            1_000_000 * (index + 1)
        );
    }
    let fit = fit(&text).unwrap();
    assert!(close(fit.sinr_db.as_ref().unwrap().value, 21.5), "{fit:?}");
    assert!(close(fit.mcs.as_ref().unwrap().value, 23.0), "{fit:?}");
    assert!(close(fit.uplink_sinr_db.as_ref().unwrap().value, 31.0), "{fit:?}");
    // 1 MB in 1.28 s.
    assert!(close(fit.rates[0].mbps, 6.25), "{:?}", fit.rates[0]);
    let fitted = fit.scenario().unwrap();
    let scenario = fitted.load(&[]).unwrap();
    assert!(scenario.has_nr_cell() && fitted.toml.contains("downlink_sinr = \"21.5 dB\""), "{}", fitted.toml);
}

#[test]
fn tables_of_the_radio_are_read_by_the_names_of_their_columns() {
    for (heading, row) in [
        ("timestamp,SINR (dB),DL MCS,DL PRB,DL throughput (Mbps)", "2024-05-01 12:00:0{},12.5,14,48,21.5"),
        ("time;cc;earfcn;pci;rsrp;dl_mcs;dl_snr;dl_brate;n_prb", "{};0;3350;1;-77;14;12.5;21500000;48"),
        ("time_ms\tsinr\tmcs\tnum_rb\tbrate", "{}000\t12.5\t14\t48\t21.5M"),
    ] {
        let rows =
            (0..9).map(|index| row.replacen("{}", &index.to_string(), 1)).collect::<Vec<_>>().join("\n");
        let fit = fit(&format!("{heading}\n{rows}\n")).unwrap();
        assert!(close(fit.sinr_db.as_ref().unwrap().value, 12.5), "{heading}: {fit:?}");
        assert!(close(fit.mcs.as_ref().unwrap().value, 14.0) && close(fit.prb.as_ref().unwrap().value, 48.0));
        assert!(close(fit.rates[0].mbps, 21.5) && fit.rates.len() == 80, "{heading}: {}", fit.rates.len());
        let toml = fit.scenario().unwrap().toml;
        assert!(
            toml.contains("bandwidth = \"10 MHz\"") && toml.contains("downlink_sinr = \"12.5 dB\""),
            "{toml}"
        );
    }
}

#[test]
fn a_trace_is_a_capacity_over_time() {
    let rows: String =
        (0..60).map(|second| format!("{second} {}\n", if second % 2 == 0 { 4 } else { 12 })).collect();
    let fit = fit(&rows).unwrap();
    assert!((fit.capacity_mbps.as_ref().unwrap().value - 8.0).abs() < 0.3, "{:?}", fit.capacity_mbps);
    let fitted = fit.scenario().unwrap();
    assert!(fitted.trace.is_some() && fitted.load(&[]).unwrap().link().is_some(), "{}", fitted.toml);
}

#[test]
fn inputs_that_contradict_each_other_are_named() {
    let pings = |rtt: u32| format!("64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time={rtt} ms\n").repeat(30);
    let mut fitter = Fitter::new();
    fitter.read_log("one", pings(30).as_bytes(), None).unwrap();
    fitter.read_log("other", pings(90).as_bytes(), None).unwrap();
    let fit = fitter.finish();
    assert!(
        fit.conflicts.len() == 1 && fit.conflicts[0].starts_with("base round trip: 30.00"),
        "{:?}",
        fit.conflicts
    );
}

#[test]
fn inputs_that_are_none_are_refused() {
    for (text, part) in [
        ("", "is empty"),
        ("{\"intervals\": [], \"start\": 1}", "iperf3: no intervals"),
        ("{\"ue_list\": []}", "srsRAN: no UE"),
        ("{\"ue_list\": [", "JSON:"),
        ("UE 1: dlsch_rounds 1/2/3/4\n", "OpenAirInterface: no \"UE RNTI\""),
        ("time,sinr\n", "no row"),
    ] {
        let error = fit(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let as_ping = Fitter::new().read_log("log", b"nothing", Some(Format::Ping)).unwrap_err();
    assert!(as_ping.contains("no answer of a ping"), "{as_ping}");
    // Every cut of a log is read or refused.
    let whole = "[NR_MAC] Frame.Slot 1.0\nUE RNTI 2460 average SINR 21.5\nUE 2460: dlsch_rounds 1/2 MCS (1) 23\n\
                 UE 2460: MAC: TX 5 RX 6 bytes\ntime,sinr\n{\"ue_list\": [{\"rnti\": 1}]}\n64 bytes from a: seq=1 time=3 ms\n";
    for format in Format::ALL {
        for end in 0..whole.len() {
            drop(Fitter::new().read_log("log", &whole.as_bytes()[..end], Some(format)));
            drop(Fitter::new().read_log("log", &whole.as_bytes()[end..], Some(format)));
        }
    }
}

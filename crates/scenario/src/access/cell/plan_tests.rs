//! Tests of NR and TDD cells: what is allowed loads again as it was written, and what 3GPP forbids is refused
//! with key, value, the allowed values and the clause.

use crate::{Scenario, load};
use paceline_net::Duration;
use paceline_ran::Rat;
use paceline_ran::lte::tdd::AckMode;

fn with(keys: &[&str]) -> Result<Scenario, String> {
    let set: Vec<String> = keys.iter().map(|key| format!("cell.{key}")).collect();
    load("test.toml", "[[station]]\n", &set).map_err(|error| error.to_string())
}

/// A cell of n78 with one override; the override replaces the key of the same name.
fn n78(key: &str) -> Result<Scenario, String> {
    let usual = ["rat=nr", "frequency=3.7 GHz", "bandwidth=100 MHz", "pattern=DDDSU"];
    with(&[&usual[..], &[key]].concat())
}

fn n257(key: &str) -> Result<Scenario, String> {
    with(&["rat=nr", "frequency=28 GHz", "bandwidth=400 MHz", "pattern=DDDSU", key])
}

#[test]
fn defaults_follow_the_frequency_and_the_duplex() {
    for (scenario, mu, prb, tdd) in [
        (n78("rat=nr"), 1, 273, true),
        (n257("rat=nr"), 3, 264, true),
        (with(&["rat=nr", "bandwidth=20 MHz"]), 0, 106, false),
        (n78("subcarrier_spacing=60 kHz"), 2, 135, true),
        (with(&["rat=nr", "bandwidth=20 MHz", "uplink_bandwidth=10 MHz"]), 0, 106, false),
    ] {
        let scenario = scenario.unwrap();
        let plan = scenario.cell().unwrap().plan();
        assert_eq!((plan.numerology.mu(), plan.downlink_prb), (mu, prb));
        assert_eq!(plan.pattern().is_some(), tdd);
        let again = load("again.toml", &scenario.to_toml(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, scenario);
    }
    // RLC AM recovers over a fading channel in more time than t-Reordering of RLC UM.
    for (rlc, reordering) in [("rlc=um", 100), ("rlc=am", 500)] {
        let Rat::Nr(nr) = n78(rlc).unwrap().cell().unwrap().plan().rat else { panic!("an NR cell") };
        assert_eq!(nr.pdcp_reordering, Some(Duration::from_millis(reordering)), "{rlc}");
    }
    // A scenario of LTE FDD has no key of other cells in its complete form.
    let lte = with(&["bandwidth=20 MHz"]).unwrap().to_toml();
    for key in ["rat", "duplex", "frequency", "numerology", "pattern", "tdd_configuration", "nr"] {
        assert!(!lte.contains(&format!("\n{key} =")) && !lte.contains("[cell.nr]"), "{key}: {lte}");
    }
}

#[test]
fn patterns_have_three_forms() {
    let table = "{ period = \"2.5 ms\", downlink_slots = 3, downlink_symbols = 10, uplink_slots = 1, uplink_symbols = 2 }";
    let rest = "{ period = \"2.5 ms\", downlink_slots = 2, downlink_symbols = 10, uplink_slots = 2, uplink_symbols = 2 }";
    for (form, letters) in [
        ("pattern=\"DDDSU 10:2:2\"".to_owned(), "DDDSU 10:2:2"),
        (format!("pattern={table}"), "DDDSU 10:2:2"),
        (format!("pattern=[{table}]"), "DDDSU 10:2:2"),
        (format!("pattern=[{table}, {rest}]"), "DDDSUDDSUU 10:2:2"),
    ] {
        let scenario = n78(&form).unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(scenario.cell().unwrap().plan().pattern().unwrap().to_string(), letters);
        assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{form}");
    }
    for (form, part) in [
        ("pattern={ period = \"2.5 ms\" }".to_owned(), "missing field `downlink_slots`"),
        (format!("pattern=[{table}, {rest}, {rest}]"), "one or two are allowed (TS 38.331"),
        ("pattern=[]".to_owned(), "one or two are allowed"),
        ("pattern=5".to_owned(), "DDDSU"),
        (format!("pattern={}", table.replace("= 3", "= 9")), "must fit into the 5 slots of the period"),
    ] {
        let error = n78(&form).expect_err(&form);
        assert!(error.contains(part) && error.contains("cell.pattern"), "{error}");
    }
}

#[test]
fn what_3gpp_forbids_is_refused_with_the_clause() {
    for (error, parts) in [
        (n78("pattern=DDDX"), ["cell.pattern = \"DDDX\"", "one letter D, S, U or F"]),
        (n78("pattern=DDDSUDDU"), ["cell.pattern", "TS 38.213 §11.1"]),
        (n78("pattern=DDDD"), ["cell.pattern", "both directions need symbols"]),
        (n78("pattern=DDDDDSU"), ["a TDD period of 3500 us", "TS 38.331 dl-UL-TransmissionPeriodicity"]),
        (n78("pattern=DDDDDDSU"), ["cell.sr_period", "multiples of the pattern's 4 ms"]),
        (n78("numerology=0"), ["cell.bandwidth = 100 MHz", "TS 38.101-1 Table 5.3.2-1"]),
        (n78("numerology=3"), ["cell.bandwidth = 100 MHz", "numerologies 0, 1 and 2 are allowed"]),
        (n78("numerology=4"), ["cell.numerology = 4", "0 to 3"]),
        (n78("subcarrier_spacing=45 kHz"), ["cell.subcarrier_spacing = 45 kHz", "TS 38.211 Table 4.2-1"]),
        (n78("bandwidth=35 MHz"), ["cell.bandwidth = 35 MHz", "allowed at 30 kHz are 5, 10"]),
        (n78("bandwidth=1.4 MHz"), ["cell.bandwidth = 1400 kHz", "TS 38.101-1 and -2 Table 5.3.2-1"]),
        (n78("frequency=10 GHz"), ["cell.frequency = 10 GHz", "TS 38.101-1 Table 5.1-1"]),
        (n78("uplink_bandwidth=20 MHz"), ["cell.uplink_bandwidth", "left out in TDD"]),
        (n78("duplex=fdd"), ["cell.pattern", "left out with duplex"]),
        (n78("pucch_prb=273"), ["cell.pucch_prb = 273", "0 to 272"]),
        (n78("nr.min_k1=0"), ["cell.nr.min_k1 = 0", "N1 symbols, K1 1 or more (TS 38.214 §5.3)"]),
        (n78("nr.min_k2=0"), ["cell.nr.min_k2 = 0", "N2 symbols, K2 1 or more (TS 38.214 §6.4)"]),
        (n78("nr.min_k1=16"), ["cell.nr.min_k1 = 16", "0 to 15"]),
        (n78("nr.k1=[2, 3, 2, 6]"), ["cell.nr.k1 = [2, 3, 2, 6]", "into a slot D without uplink symbols"]),
        (n78("nr.k1=[3, 3, 2, 6]"), ["cell.nr.k1", "leads into a special slot"]),
        (n78("nr.k1=[4, 3, 2, 0]"), ["cell.nr.k1", "K1 1 or more (TS 38.214 §5.3)"]),
        (n78("nr.k1=[4, 3]"), ["cell.nr.k1", "one for each of the 4 slots"]),
        (n78("sr_period=0.7 ms"), ["cell.sr_period", "TS 38.331 SchedulingRequestResourceConfig"]),
        (n78("sr_period=2 ms"), ["cell.sr_period = 2 ms", "multiples of the pattern's 2500 us"]),
        (n78("nr.ssb_beams=9"), ["cell.nr.ssb_beams = 9", "1 to 8 at 3700 MHz (TS 38.213 §4.1)"]),
        (n78("nr.layers=5"), ["cell.nr.layers = 5", "1 to 4"]),
        (n78("nr.harq_processes=7"), ["cell.nr.harq_processes = 7", "2, 4, 6, 8, 10, 12, 16"]),
        (n78("nr.rlc_am_sn=10"), ["cell.nr.rlc_am_sn = 10", "12, 18"]),
        (n78("nr.t_reassembly=3 ms"), ["cell.nr.t_reassembly = 3 ms", "0, 5, 10"]),
        (n78("nr.pdcp_t_reordering=3 ms"), ["cell.nr.pdcp_t_reordering = 3 ms", "0, 1, 2, 4"]),
        (n78("discard_timer=15 ms"), ["cell.discard_timer = 15 ms", "10, 20, 30"]),
        (
            n78("nr.configured_grant={ period = \"3 ms\" }"),
            ["configured_grant.period", "TS 38.331 Configured"],
        ),
        (
            n78("nr.configured_grant={ period = \"4 ms\" }"),
            ["configured_grant.period", "2500 us: every PUSCH"],
        ),
        (n78("nr.configured_grant={ mcs = 28 }"), ["configured_grant.mcs = 28", "0 to 27"]),
        (n78("tdd_configuration=1"), ["cell.tdd_configuration = 1", "left out with rat"]),
        (n257("numerology=2"), ["cell.bandwidth = 400 MHz", "50, 100, 200 MHz (TS 38.101-2 Table 5.3.2-1)"]),
        (n257("numerology=1"), ["cell.bandwidth = 400 MHz", "numerologies 2 and 3"]),
        (n257("nr.min_k2=2"), ["cell.nr.min_k2 = 2", "K2 3 or more"]),
        (with(&["rat=nr", "frequency=28 GHz", "bandwidth=100 MHz"]), ["cell.duplex", "bands of FR2 are TDD"]),
        (with(&["rat=nr", "duplex=tdd", "bandwidth=100 MHz"]), ["cell.duplex", "needs pattern"]),
        (with(&["rat=nr", "numerology=1", "subcarrier_spacing=30 kHz"]), ["cell.numerology", "not both"]),
        (with(&["rat=nr", "prach_config_index=4"]), ["cell.prach_config_index = 4", "TS 38.211 §6.3.3.2"]),
        (with(&["rat=nr", "uplink_64qam=true"]), ["cell.uplink_64qam = true", "uplink_mcs_table"]),
        (
            with(&["rat=nr", "frequency=28 GHz", "bandwidth=100 MHz", "pattern=DDDSU", "nr.capability=2"]),
            ["cell.nr.capability = 2", "1 in FR2"],
        ),
        (
            with(&["rat=nr", "subcarrier_spacing=60 kHz", "duplex=fdd", "nr.min_k1=1"]),
            ["cell.nr.min_k1 = 1", "TS 38.214 §5.3"],
        ),
    ] {
        let error = error.expect_err(parts[0]);
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing in {error}");
        }
    }
}

/// 273 - 4 PRBs of PUSCH have 67 grants of 4 PRBs in each of the two uplink slots of 5 ms.
#[test]
fn stations_beyond_the_configured_grants_are_refused() {
    let with_stations = |count: u64| {
        let set = ["rat=nr", "frequency=3.7 GHz", "bandwidth=100 MHz", "pattern=DDDSU", "pucch_prb=4"];
        let mut set: Vec<String> = set.iter().map(|key| format!("cell.{key}")).collect();
        set.push(String::from("cell.nr.configured_grant={ period = \"5 ms\", prb = 4 }"));
        set.push(format!("station.count={count}"));
        load("test.toml", "[[station]]\n", &set).map_err(|error| error.to_string())
    };
    assert!(with_stations(134).is_ok());
    let error = with_stations(135).unwrap_err();
    for part in ["station.count = 135", "1 to 134", "cell.nr.configured_grant"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn lte_tdd_has_its_configurations() {
    let tdd = |key: &str| with(&["tdd_configuration=2", "sr_period=10 ms", key]);
    let scenario = tdd("special_subframe=6").unwrap();
    assert_eq!(scenario.cell().unwrap().plan().pattern().unwrap().to_string(), "DSUDDDSUDD 9:3:2");
    assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
    let mode = |keys: &[&str]| with(keys).unwrap().cell().unwrap().plan().ack_mode;
    assert_eq!(mode(&["tdd_configuration=2"]), AckMode::Multiplexing);
    assert_eq!(mode(&["tdd_configuration=2", "ack_mode=bundling"]), AckMode::Bundling);
    assert_eq!(mode(&["tdd_configuration=5"]), AckMode::Bundling);
    for (error, parts) in [
        (tdd("tdd_configuration=7"), ["cell.tdd_configuration = 7", "0 to 6"]),
        (tdd("special_subframe=10"), ["cell.special_subframe = 10", "0 to 9"]),
        (tdd("uplink_bandwidth=5 MHz"), ["cell.uplink_bandwidth", "left out in TDD"]),
        (tdd("sr_period=2 ms"), ["cell.sr_period = 2 ms", "TS 36.213 §10.1.5"]),
        (tdd("prach_config_index=5"), ["cell.prach_config_index = 5", "TS 36.211 Table 5.7.1-4"]),
        (
            with(&["tdd_configuration=5", "ack_mode=multiplexing"]),
            ["cell.ack_mode = multiplexing", "bundling alone (TS 36.213 §7.3)"],
        ),
        (with(&["ack_mode=bundling"]), ["cell.ack_mode", "left out with duplex"]),
        (
            with(&["tdd_configuration=4", "sr_period=5 ms"]),
            ["cell.sr_period = 5 ms", "10 ms and its multiples"],
        ),
        (with(&["duplex=tdd"]), ["cell.duplex", "needs tdd_configuration"]),
        (with(&["rat=lte", "pattern=DDDSU"]), ["cell.pattern", "TS 36.211 §4.2"]),
        (with(&["rat=lte", "numerology=1"]), ["cell.numerology", "left out with rat"]),
        (with(&["rat=lte", "nr.layers=2"]), ["cell.nr", "left out with rat"]),
        (with(&["duplex=fdd", "special_subframe=1"]), ["cell.special_subframe", "left out with duplex"]),
    ] {
        let error = error.expect_err(parts[0]);
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing in {error}");
        }
    }
}

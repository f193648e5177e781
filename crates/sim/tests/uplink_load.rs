//! An uplink under half load loses nothing and does not stall, with every numerology, SINR, size and rate of
//! packets: no size of a header or of a report leaves data in the station's buffer that the base station
//! learns of only when retxBSR-Timer expires.

use paceline_sim::{Totals, scenario, simulate};

/// Half the time of `retx_bsr_timer`, ms: an uplink that stalls waits for it, others take a few scheduling
/// request periods of 10 ms.
const STALL_MS: f64 = 160.0;

fn cells() -> Vec<(&'static str, String)> {
    let fdd = "rat = \"nr\"\nfrequency = \"3.5 GHz\"\nduplex = \"fdd\"\nbandwidth = \"20 MHz\"\nnumerology =";
    let tdd = |ghz: f64, numerology: u8, pattern: &str| {
        format!(
            "rat = \"nr\"\nfrequency = \"{ghz} GHz\"\nbandwidth = \"100 MHz\"\nnumerology = {numerology}\n\
             pattern = \"{pattern}\"\n"
        )
    };
    vec![
        ("NR FDD 15 kHz", format!("{fdd} 0\n")),
        ("NR FDD 30 kHz", format!("{fdd} 1\n")),
        ("NR FDD 60 kHz", format!("{fdd} 2\n")),
        ("NR TDD 30 kHz", tdd(3.5, 1, "DDDSU")),
        ("NR TDD 60 kHz", tdd(3.5, 2, "DSUUU")),
        ("NR TDD 120 kHz", tdd(27.0, 3, "DDDSU")),
        ("LTE FDD", String::new()),
        ("LTE TDD", "duplex = \"tdd\"\ntdd_configuration = 1\n".to_owned()),
    ]
}

/// The datagrams of 300 ms, and as long again for the last of them.
fn totals(cell: &str, station: &str, (rate, payload): (f64, u64)) -> Totals {
    // With IP and UDP headers of 28 bytes.
    let datagrams = (rate * 1e6 * 0.3 / 8.0) as u64 / (payload + 28);
    let file = datagrams * payload;
    let text = format!(
        "[run]\nduration = \"600 ms\"\nwarmup = \"0 s\"\nsample = \"100 ms\"\n[cell]\n{cell}\
         [[station]]\ntraffic = \"udp\"\nudp_rate = \"{rate} Mb/s\"\nfile = \"{file} B\"\n\
         udp_payload = \"{payload} B\"\n{station}\n"
    );
    let scenario = scenario::load("test.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, 1, None, &mut |_| {}).totals
}

#[test]
fn an_uplink_under_half_load_loses_nothing() {
    let mut light = 0;
    for (name, cell) in cells() {
        for sinr in [0, 9, 40] {
            for (at, payload) in [20, 100, 333, 1472].into_iter().enumerate() {
                for (of, rate) in [0.3, 3.0, 8.0, 25.0].into_iter().enumerate() {
                    let rlc = ["um", "am"][(at + of) % 2];
                    let cell = format!("{cell}rlc = \"{rlc}\"\n");
                    let station = format!("direction = \"upload\"\nuplink_sinr = \"{sinr} dB\"");
                    let totals = totals(&cell, &station, (rate, payload));
                    if 2.0 * totals.uplink_prb_share >= 0.5 {
                        continue;
                    }
                    let (lost, delay) = (totals.udp_loss_share, totals.udp_delay_mean_ms);
                    assert!(
                        lost == 0.0 && delay < STALL_MS / 2.0,
                        "{name}, RLC {rlc}, {sinr} dB, {rate} Mb/s in {payload} bytes: {lost} lost, {delay} ms"
                    );
                    light += 1;
                }
            }
        }
    }
    assert!(light > 250, "{light} runs are under half load");
}

#[test]
fn answers_to_a_download_do_not_stall() {
    for (name, cell) in cells() {
        for payload in [100, 400, 1472] {
            let totals = totals(&cell, "uplink_sinr = \"30 dB\"", (8.0, payload));
            let (lost, rtt) = (totals.udp_loss_share, totals.rtt_mean_ms);
            assert!(lost == 0.0 && rtt < STALL_MS / 2.0, "{name}, {payload} bytes: {lost} lost, {rtt} ms");
        }
    }
}

//! JSON metrics of srsRAN (user manual, "Outputs", JSON metrics): objects with a timestamp and a list of UEs,
//! in versions of all years. Rates are in b/s.

use super::{Radio, Rate, Series, documents, seconds, since_first};
use serde_json::Value;
use std::collections::BTreeMap;

/// Interval where a report has no time, s. Default of srsRAN (configuration reference, metrics).
const INTERVAL_S: f64 = 1.0;

/// The UEs of a report: directly, or within cells.
fn stations(report: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut holders = vec![report];
    for key in ["cells", "cell_metrics"] {
        match &report[key] {
            Value::Array(cells) => holders.extend(cells),
            Value::Object(cells) => {
                holders.push(&report[key]);
                holders.extend(cells.values());
                holders.extend(report[key]["cells"].as_array().into_iter().flatten());
            }
            _ => {}
        }
    }
    for holder in holders {
        match &holder["ue_list"] {
            Value::Array(list) => found.extend(list),
            Value::Object(list) => found.extend(list.values()),
            _ => {}
        }
    }
    found
        .into_iter()
        .map(|ue| if ue["ue_container"].is_object() { &ue["ue_container"] } else { ue })
        .collect()
}

/// Reads the metrics.
pub fn read(text: &str) -> Result<Series, String> {
    let documents = documents(text)?;
    let mut by_station: BTreeMap<u64, Vec<(f64, &Value)>> = BTreeMap::new();
    let mut times = Vec::new();
    let reports: Vec<&Value> = documents.iter().filter(|report| !stations(report).is_empty()).collect();
    for (index, report) in reports.iter().enumerate() {
        let time = match &report["timestamp"] {
            Value::String(text) => seconds(text),
            number => number.as_f64(),
        };
        times.push(time.unwrap_or(index as f64 * INTERVAL_S));
    }
    since_first(&mut times);
    for (time, report) in times.iter().zip(&reports) {
        for ue in stations(report) {
            by_station.entry(ue["rnti"].as_u64().unwrap_or(0)).or_default().push((*time, ue));
        }
    }
    let number = |ue: &Value, key: &str| ue[key].as_f64();
    let bits =
        |list: &Vec<(f64, &Value)>, key: &str| list.iter().filter_map(|(_, ue)| number(ue, key)).sum::<f64>();
    let count = by_station.len();
    let main = by_station.into_iter().max_by(|(_, a), (_, b)| {
        (bits(a, "dl_brate") + bits(a, "ul_brate")).total_cmp(&(bits(b, "dl_brate") + bits(b, "ul_brate")))
    });
    let (rnti, rows) = main.ok_or("srsRAN: no UE in any \"ue_list\"")?;
    let mut series =
        Series { is_upload: bits(&rows, "ul_brate") > bits(&rows, "dl_brate"), ..Series::default() };
    let rate_key = if series.is_upload { "ul_brate" } else { "dl_brate" };
    let step = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
    let step = if step.is_finite() && step > 0.0 { step } else { INTERVAL_S };
    for (time_s, ue) in &rows {
        if let Some(rate) = number(ue, rate_key) {
            series.rates.push(Rate { time_s: *time_s, span_s: step, mbps: rate / 1e6 });
        }
        series.radio.push(Radio {
            time_s: *time_s,
            sinr_db: None,
            uplink_sinr_db: number(ue, "pusch_snr_db"),
            mcs: number(ue, "dl_mcs"),
            prb: None,
        });
    }
    // srsRAN Project is a gNB; srsRAN 4G's report has carriers.
    series.is_nr = Some(!text.contains("\"carrier_list\""));
    series.notes.push(format!(
        "srsRAN: UE {rnti} of {count}, {} reports every {step:.2} s; the SINR of the downlink is not reported",
        rows.len()
    ));
    Ok(series)
}

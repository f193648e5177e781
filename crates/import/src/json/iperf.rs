//! Reports of iperf3 in JSON.

use crate::notes::Notes;
use crate::text::table::Table;
use serde_json::Value;

/// The intervals of an iperf3 report (`-J` or `--json-stream`), the receiver's if it has them. Of a list of
/// reports, the intervals follow one another.
pub fn intervals(value: &Value, notes: &mut Notes) -> Option<Result<Table, String>> {
    let streamed = || {
        let events = value.as_array()?.iter().filter(|event| event["event"] == "interval");
        let events: Vec<&Value> = events.map(|event| &event["data"]).collect();
        (!events.is_empty()).then_some(events)
    };
    let listed = |value: &Value| {
        let list = value["intervals"].as_array()?;
        list.first()?.get("sum")?.get("bits_per_second")?;
        Some(list.clone())
    };
    if let (Some(error), Some(_)) = (value["error"].as_str(), value["intervals"].as_array())
        && listed(value).is_none()
    {
        return Some(Err(format!("iperf3's report without intervals: {error}")));
    }
    let reports = || {
        let list = value.as_array()?;
        let reports: Option<Vec<Vec<Value>>> = list.iter().map(listed).collect();
        let reports = reports.filter(|reports| !reports.is_empty())?;
        Some((reports.len(), reports.concat()))
    };
    let is_sender = |list: &Vec<Value>| list.first().is_some_and(|first| first["sum"]["sender"] == true);
    let servers = listed(&value["server_output_json"]);
    let own = streamed().map(|events| events.into_iter().cloned().collect()).or_else(|| listed(value));
    let (count, own) = match own {
        Some(own) => (1, own),
        None => reports()?,
    };
    let (intervals, side) = match servers {
        Some(servers) if is_sender(&own) => (servers, "the server's, which received"),
        _ if is_sender(&own) => (own, "the sender's, which count data given to its socket"),
        _ => (own, "the receiver's"),
    };
    let sums = intervals.iter().map(|interval| &interval["sum"]).filter(|sum| sum["omitted"] != true);
    let row = |sum: &Value| {
        let (start, end) = (sum["start"].as_f64()?, sum["end"].as_f64()?);
        Some(vec![(end - start).to_string(), sum["bits_per_second"].as_f64()?.to_string()])
    };
    let rows: Option<Vec<Vec<String>>> = sums.map(row).collect();
    Some(match rows.filter(|rows| !rows.is_empty()) {
        Some(rows) => {
            let reports = match count {
                1 => "iperf3's report".to_owned(),
                _ => format!("{count} of iperf3's reports, one after another"),
            };
            notes.push(format!("{reports}, {} intervals: {side}", rows.len()));
            Ok(Table::of_rows(vec!["duration_s".into(), "bits_per_second".into()], rows))
        }
        None => Err("iperf3's report without intervals: run iperf3 with -J and -i".into()),
    })
}

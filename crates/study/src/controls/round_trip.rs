//! The round-trip time of the path without queues and radio: twice the propagation delays of hops and link.
//! An edit changes the link's delay, or that of the first hop ahead of a cell.

use paceline_net::Duration;
use paceline_sim::Scenario;
use paceline_sim::scenario::with_setting;

/// Name of the control.
pub const KEY: &str = "rtt";

/// Propagation delay from hop `from` on, in one direction, without the access.
fn hops(scenario: &Scenario, from: usize) -> Duration {
    scenario.core.hops[from.min(scenario.core.hops.len())..]
        .iter()
        .fold(Duration::ZERO, |sum, hop| sum + hop.delay)
}

/// The present value; none between pairs of stations.
pub fn present(scenario: &Scenario) -> Option<Duration> {
    let link = scenario.link().and_then(|link| link.delay).unwrap_or(Duration::ZERO);
    let has_path = scenario.link().is_some() || !scenario.core.hops.is_empty();
    (scenario.pairs().is_none() && has_path).then(|| (hops(scenario, 0) + link) * 2)
}

/// The text with another value.
pub fn edit(text: &str, scenario: &Scenario, value: &str) -> Result<String, String> {
    let one_way = value.parse::<Duration>().map_err(|error| error.to_string())? / 2;
    let is_link = scenario.link().is_some();
    let others = hops(scenario, usize::from(!is_link));
    if one_way < others {
        return Err(format!("round-trip time = {value}: allowed: {} or more", others * 2));
    }
    let delay = one_way.saturating_sub(others);
    let key = if is_link { "link.delay" } else { "core.hops.0.delay" };
    with_setting(text, &format!("{key}={delay}"))
}

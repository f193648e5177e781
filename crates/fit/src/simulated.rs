//! The fitted scenario, simulated and observed as the network was: by a capture at the same place, or by
//! pings.

use crate::capture::Captures;
use crate::fit::{Fit, Position};
use crate::scenario::Fitted;
use paceline_import::capture::stream::{Captured, DataLink};
use paceline_net::{Instant, Packet, wire};
use paceline_sim::{Capture, simulate};
use std::sync::{Arc, Mutex, PoisonError};

/// Interval of pings where fewer than two were measured, s: the default of ping(8).
const INTERVAL_S: f64 = 1.0;
/// Shortest and longest simulation, s. Chosen: a slow start and some losses; a page in seconds.
const LENGTH_S: [f64; 2] = [5.0, 60.0];
/// Share of the highest rate from which on the transfer has begun.
const BEGUN: f64 = 0.05;
/// First bytes of a packet that are kept, of which IPv6 and TCP with all options have 100.
const SNAP_LEN: usize = 128;

/// Rates and round trips of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Rates: s, Mb/s of datagrams.
    pub rates: Vec<(f64, f64)>,
    /// Round trips: s, ms.
    pub rtts: Vec<(f64, f64)>,
}

impl Fitted {
    /// Simulates the scenario with the traffic that was measured.
    pub fn simulate(&self, fit: &Fit) -> Result<Simulated, String> {
        if fit.rates.is_empty() {
            let last = fit.rtts.last().map_or(0.0, |(time, _)| *time);
            let seconds = last.clamp(LENGTH_S[0], LENGTH_S[1]);
            let spans = fit.rtts.windows(2).map(|pair| pair[1].0 - pair[0].0).collect::<Vec<_>>();
            let interval =
                crate::estimate::quantile(&spans, 0.5).filter(|span| *span > 0.0).unwrap_or(INTERVAL_S);
            let set = [
                "station.traffic=ping".to_owned(),
                "station.direction=upload".to_owned(),
                format!("station.ping_interval={:.0} us", interval * 1e6),
                format!("run.duration={:.0} ms", 1e3 * seconds),
            ];
            let scenario = self.load(&set).map_err(|error| error.to_string())?;
            let result = simulate(&scenario, 1, None, &mut |_| {});
            let rtts = result.pings.first().map(|pings| pings.series.clone()).unwrap_or_default();
            return Ok(Simulated { rates: Vec::new(), rtts });
        }
        // The transfer begins when the measured one did.
        let most = fit.rates.iter().map(|window| window.mbps).fold(0.0, f64::max);
        let first =
            fit.rates.iter().find(|window| window.mbps > BEGUN * most).map_or(0.0, |window| window.time_s);
        let end = fit.rates.last().map_or(0.0, |window| window.time_s).max(first + LENGTH_S[0]);
        let set = [
            format!("station.start={:.0} ms", 1e3 * first),
            format!("run.duration={:.0} ms", 1e3 * end.min(first + LENGTH_S[1])),
        ];
        let scenario = self.load(&set).map_err(|error| error.to_string())?;
        // The interfaces of a capture: servers, then stations.
        let wanted = u32::from(fit.position == Position::NearClient);
        let captures = Arc::new(Mutex::new(Captures::default()));
        let own = Arc::clone(&captures);
        let packets = Box::new(move |now: Instant, interface, packet: &Packet| {
            if interface == wanted {
                let mut data = wire::emit(packet);
                data.truncate(SNAP_LEN);
                let (at_ns, len) = (now.as_nanos(), packet.len);
                let captured = Captured { interface, link: DataLink::RAW, at_ns, data: &data, len };
                own.lock().unwrap_or_else(PoisonError::into_inner).on_simulated(&captured);
            }
        });
        simulate(&scenario, scenario.run.seed, Some(Capture { packets, blocks: None }), &mut |_| {});
        let captures = std::mem::take(&mut *captures.lock().unwrap_or_else(PoisonError::into_inner));
        let observed = Fit::of(&captures, &[], Vec::new());
        let rates = observed.rates.iter().map(|window| (window.time_s, window.mbps)).collect();
        Ok(Simulated { rates, rtts: observed.rtts })
    }
}

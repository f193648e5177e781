//! A row of the grid.

/// The measure of a row.
#[derive(Clone, Copy, Debug)]
pub enum Yardstick {
    /// Capacity and queue of the link.
    Link,
    /// The same, and the time until the transfers have arrived.
    Transfers,
    /// A cell's goodput has no bound that is known before; round trips of `before_ms` between server and
    /// cell.
    Cell { before_ms: f64 },
    /// A hop that all stations share, with the round trips before and behind the accelerator. Beside stations
    /// that are not accelerated, `beside`.
    Hop { mbps: f64, before_ms: f64, behind_ms: f64, beside: bool },
}

/// A scenario, for all ways to send.
pub struct Row {
    pub family: &'static str,
    pub name: String,
    pub text: String,
    pub yardstick: Yardstick,
    /// The first stations, which are compared; those behind them are beside.
    pub compared: usize,
    pub seed: u64,
}

//! The boundary between the page in `web/` and the simulator: text and JSON in, text, JSON and arrays of
//! numbers out. Everything behind it is in `study`, `sim` and `report`, which the command line uses as well:
//! the same scenario and seed give the same `summary.json`, byte for byte.

mod results;
mod scenario;
mod simulation;

pub use results::{Results, compare};
pub use scenario::{check, edit, scenarios, version};
pub use simulation::Simulation;

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(message: &str);
}

/// Sends the message of a panic to the console; called when the module is loaded.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
}

//! Names of the kernel program's maps, and reading of those with one entry.

use super::layout::{Hint, Settings};
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// Key of the maps with one entry, by definition of an array map.
pub const ONLY: [u8; 4] = 0u32.to_ne_bytes();
/// Bytes of a control's name with its terminating zero (linux/tcp.h, TCP_CA_NAME_MAX).
pub const NAME_BYTES: usize = 16;
/// Names of the maps.
pub const SETTINGS: &str = "pace_settings";
pub const FLOWS: &str = "pace_flows";
pub const HINT: &str = "pace_hint";
pub const ACKS: &str = "pace_acks";

pub fn read_settings(map: &MapHandle) -> anyhow::Result<Settings> {
    let bytes = map.lookup(&ONLY, MapFlags::ANY)?;
    bytes.as_deref().and_then(Settings::from_bytes).context("the program has no settings")
}

pub fn read_hint(map: &MapHandle) -> anyhow::Result<Hint> {
    let bytes = map.lookup(&ONLY, MapFlags::ANY)?;
    bytes.as_deref().and_then(Hint::from_bytes).context("the program has no hint")
}

//! The BPF file system, in which programs and maps outlive their process (`--pin`).

use anyhow::Context;
use libbpf_rs::{MapHandle, MapType};
use std::path::Path;

/// Its usual place (systemd mounts it there).
const FOLDER: &str = "/sys/fs/bpf";

/// Pins a small map for a moment. Fails where nothing can be pinned.
pub fn trial() -> anyhow::Result<()> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let mut map = MapHandle::create(MapType::Array, Some("paceline_trial"), 4, 4, 1, &options)
        .context("cannot make a map")?;
    let path = Path::new(FOLDER).join(format!("paceline-trial-{}", std::process::id()));
    let context = || format!("{FOLDER}: is a BPF file system mounted there, and may this user write it?");
    map.pin(&path).with_context(context)?;
    map.unpin(&path).with_context(context)
}

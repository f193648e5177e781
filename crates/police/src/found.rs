//! Policers at an interface, of any process: to show or detach them.
//!
//! They are found by the programs at the hooks. The kernel names a program's maps to root or CAP_SYS_ADMIN
//! alone (bpf(2)): without it, a hook with programs cannot be judged, and that is an error.

use super::clsact::Filters;
use super::report::{self, Report};
use super::{OBSERVE, POLICE, POLICY_MAP, pins};
use anyhow::{Context, bail};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapHandle};
use paceline_linux::bpf::tcx::{self, Attached, Hook};
use std::io;

/// A policer at an interface, of this or of another process.
pub struct Found {
    /// Where it drops ACKs.
    pub direction: Hook,
    place: Place,
}

enum Place {
    /// Links and maps.
    Tcx {
        links: Vec<u32>,
        maps: Vec<u32>,
    },
    Clsact(Filters),
}

/// The policers at an interface: none or one.
pub fn find(interface: u32) -> anyhow::Result<Vec<Found>> {
    let filters = Filters::find(interface).context("cannot list the filters of the interface")?;
    let by_clsact = filters
        .into_iter()
        .map(|filters| Found { direction: filters.direction, place: Place::Clsact(filters) });
    let mut found: Vec<Found> = by_clsact.collect();
    found.extend(find_by_tcx(interface)?);
    Ok(found)
}

fn find_by_tcx(interface: u32) -> anyhow::Result<Vec<Found>> {
    let at = |hook| tcx::attached(interface, hook).context("cannot list the programs of the interface");
    let hooks = [(Hook::Ingress, at(Hook::Ingress)?), (Hook::Egress, at(Hook::Egress)?)];
    let Some(first) = hooks.iter().flat_map(|(_, programs)| programs).next() else { return Ok(Vec::new()) };
    may_read(first.program)?;
    let programs = programs();
    let ours = |hook: Hook, name: &str| -> Vec<(&Attached, &ProgramInfo)> {
        let at_hook = hooks.iter().filter(|(at, _)| *at == hook).flat_map(|(_, programs)| programs);
        let known = |attached: &Attached| programs.iter().find(|program| program.id == attached.program);
        at_hook
            .filter_map(|attached| Some((attached, known(attached)?)))
            .filter(|(_, program)| program.name == name && has_policy(&program.map_ids))
            .collect()
    };
    let mut found = Vec::new();
    for direction in [Hook::Ingress, Hook::Egress] {
        for (attached, program) in ours(direction, POLICE) {
            let shares_maps =
                |other: &ProgramInfo| other.map_ids.iter().any(|map| program.map_ids.contains(map));
            let readers = ours(direction.opposite(), OBSERVE).into_iter().filter(|(_, one)| shares_maps(one));
            let links = [attached.link].into_iter().chain(readers.map(|(reader, _)| reader.link)).collect();
            let place = Place::Tcx { links, maps: program.map_ids.clone() };
            found.push(Found { direction, place });
        }
    }
    Ok(found)
}

/// The programs of the kernel, with the identifiers of their maps.
fn programs() -> Vec<ProgramInfo> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true)).collect()
}

/// Fails where this process may not know whether a program is a policer's.
fn may_read(program: u32) -> anyhow::Result<()> {
    match tcx::may_open(program) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!(
            "programs are at the interface, and only root or CAP_SYS_ADMIN may see whether they are a \
             policer's (bpf(2))"
        ),
        result => result.context("cannot open a program of the interface"),
    }
}

/// Whether the map of a policy is among these.
fn has_policy(maps: &[u32]) -> bool {
    maps.iter().any(|id| MapHandle::from_map_id(*id).is_ok_and(|map| map.name() == POLICY_MAP))
}

impl Found {
    /// Takes both programs from their hooks, and removes what was pinned.
    pub fn detach(&self) -> anyhow::Result<()> {
        match &self.place {
            Place::Tcx { links, .. } => {
                for link in links {
                    tcx::detach(*link).context("cannot detach")?;
                }
            }
            Place::Clsact(filters) => filters.remove().context("cannot detach")?,
        }
        pins::remove_stale();
        Ok(())
    }
    /// Whether its process has ended and left it, which was not asked for.
    pub fn is_left_behind(&self) -> bool {
        match &self.place {
            Place::Tcx { .. } => false, // the kernel removes links with their process
            Place::Clsact(filters) => filters.is_left_behind(),
        }
    }
    /// Its configuration and counters, with the connections it remembers, busiest first.
    pub fn report(&self) -> anyhow::Result<Report> {
        let maps = match &self.place {
            Place::Tcx { maps, .. } => maps.clone(),
            Place::Clsact(filters) => {
                may_read(filters.judge)?;
                let judge = programs().into_iter().find(|program| program.id == filters.judge);
                judge.context("the policer has ended")?.map_ids
            }
        };
        report::read(self.direction, |name| map(&maps, name))
    }
}

fn map(maps: &[u32], name: &str) -> anyhow::Result<MapHandle> {
    for id in maps {
        let map = MapHandle::from_map_id(*id).context("cannot open a map")?;
        if map.name() == name {
            return Ok(map);
        }
    }
    bail!("the policer has no map {name}")
}

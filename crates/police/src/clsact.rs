//! Programs as filters of the clsact qdisc, where the kernel has no TCX (before Linux 6.6). Their verdicts
//! are those of TCX: TC_ACT_UNSPEC and TC_ACT_SHOT (linux/pkt_cls.h) have the numbers of TCX_NEXT and
//! TCX_DROP.
//!
//! A filter outlives its process. Bits of its handle tell a pinned filter from one that was left behind, and
//! whether the qdisc was made for it.

use super::owner::Owner;
use libbpf_sys::{bpf_tc_hook, bpf_tc_opts};
use paceline_linux::bpf::tcx::Hook;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Priority of the filters (16 bits), and the first of their handles ("ack0" in ASCII). Chosen: numbers that
/// nobody else is likely to use, since both identify a filter as a policer's.
const PRIORITY: u32 = 24_337;
const HANDLE: u32 = 0x6163_6b30;
/// Bits of a handle. Chosen: they stay after the process ends.
const PINNED: u32 = 1;
const MADE_QDISC: u32 = 2;
const JUDGE: u32 = 4;

/// Both filters of a policer at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filters {
    interface: u32,
    /// Where ACKs are dropped.
    pub direction: Hook,
    handle: u32,
    /// The program that drops ACKs.
    pub judge: u32,
}

impl Filters {
    /// The policers at an interface, and whatever is left of one.
    pub fn find(interface: u32) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for direction in [Hook::Ingress, Hook::Egress] {
            for handle in [0, PINNED, MADE_QDISC, PINNED | MADE_QDISC].map(|bits| HANDLE | bits) {
                if let Some(judge) = program(interface, direction, handle | JUDGE)? {
                    found.push(Self { interface, direction, handle, judge });
                }
            }
        }
        Ok(found)
    }
    /// Whether it stays when its process ends.
    pub fn is_pinned(self) -> bool {
        self.handle & PINNED != 0
    }
    /// Whether its process has ended without removing it.
    pub fn is_left_behind(self) -> bool {
        !self.is_pinned() && Owner::take(self.interface).is_ok()
    }
    /// Whether both filters are there, with the same program.
    pub fn are_attached(self) -> bool {
        let at = |hook, handle| program(self.interface, hook, handle).ok().flatten();
        at(self.direction, self.handle | JUDGE) == Some(self.judge)
            && at(self.direction.opposite(), self.handle).is_some()
    }
    /// Removes both, and the qdisc if it was made for them and is empty.
    pub fn remove(self) -> io::Result<()> {
        let judge = detach(self.interface, self.direction, self.handle | JUDGE);
        detach(self.interface, self.direction.opposite(), self.handle)?;
        judge?;
        if self.handle & MADE_QDISC != 0 && !has_filters(self.interface)? {
            let mut both = hook(self.interface, libbpf_sys::BPF_TC_INGRESS | libbpf_sys::BPF_TC_EGRESS);
            // SAFETY: the hook outlives the call.
            #[allow(unsafe_code)]
            unless_gone(result(unsafe { libbpf_sys::bpf_tc_hook_destroy(&raw mut both) }))?;
        }
        Ok(())
    }
}

/// Filters of this process, which removes them when it ends.
pub struct OwnFilters {
    filters: Filters,
    programs: [std::os::fd::OwnedFd; 2],
    _owner: Owner,
}

impl OwnFilters {
    /// Attaches the reader of data and then the judge of ACKs.
    pub fn attach(programs: [BorrowedFd<'_>; 2], interface: u32, direction: Hook) -> io::Result<Self> {
        let owner = Owner::take(interface)?;
        let made = if make_qdisc(interface)? { MADE_QDISC } else { 0 };
        let [reader, judge] = programs;
        let programs = [reader.try_clone_to_owned()?, judge.try_clone_to_owned()?];
        let filters = Filters { interface, direction, handle: HANDLE | made, judge: 0 };
        let mut own = Self { filters, programs, _owner: owner };
        own.add()?; // what was added is removed again where this fails
        Ok(own)
    }
    /// Leaves them when this process ends.
    pub fn pin(&mut self) -> io::Result<()> {
        let owned = self.filters;
        detach(owned.interface, owned.direction, owned.handle | JUDGE)?;
        detach(owned.interface, owned.direction.opposite(), owned.handle)?;
        self.filters.handle |= PINNED;
        self.add()
    }
    /// Whether both are there.
    pub fn are_attached(&self) -> bool {
        self.filters.are_attached()
    }
    fn add(&mut self) -> io::Result<()> {
        let Filters { interface, direction, handle, .. } = self.filters;
        attach(self.programs[0].as_fd(), interface, direction.opposite(), handle)?;
        self.filters.judge = attach(self.programs[1].as_fd(), interface, direction, handle | JUDGE)?;
        Ok(())
    }
}

impl Drop for OwnFilters {
    fn drop(&mut self) {
        if !self.filters.is_pinned() {
            let _ = self.filters.remove(); // somebody else may have removed them, or the device is gone
        }
    }
}

fn hook(interface: u32, attach_point: u32) -> bpf_tc_hook {
    let sz = size_of::<bpf_tc_hook>() as libbpf_sys::size_t;
    bpf_tc_hook { sz, ifindex: interface as i32, attach_point, ..Default::default() }
}

fn at(interface: u32, at: Hook) -> bpf_tc_hook {
    let point = match at {
        Hook::Ingress => libbpf_sys::BPF_TC_INGRESS,
        Hook::Egress => libbpf_sys::BPF_TC_EGRESS,
    };
    hook(interface, point)
}

fn options(handle: u32) -> bpf_tc_opts {
    let sz = size_of::<bpf_tc_opts>() as libbpf_sys::size_t;
    bpf_tc_opts { sz, handle, priority: PRIORITY, ..Default::default() }
}

fn result(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Calls libbpf without its remarks on errors, which are answers here.
fn quietly(call: impl FnOnce() -> i32) -> io::Result<()> {
    let print = libbpf_rs::set_print(None);
    let answer = call();
    libbpf_rs::set_print(print);
    result(answer)
}

/// Makes the qdisc; whether it was not there.
fn make_qdisc(interface: u32) -> io::Result<bool> {
    let mut both = hook(interface, libbpf_sys::BPF_TC_INGRESS | libbpf_sys::BPF_TC_EGRESS);
    // SAFETY: the hook outlives the call.
    #[allow(unsafe_code)]
    match quietly(|| unsafe { libbpf_sys::bpf_tc_hook_create(&raw mut both) }) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        result => result.map(|()| true),
    }
}

/// Attaches a program; its identifier.
fn attach(program: BorrowedFd<'_>, interface: u32, to: Hook, handle: u32) -> io::Result<u32> {
    let (hook, mut options) = (at(interface, to), options(handle));
    options.prog_fd = program.as_raw_fd();
    // SAFETY: hook and options outlive the call.
    #[allow(unsafe_code)]
    quietly(|| unsafe { libbpf_sys::bpf_tc_attach(&raw const hook, &raw mut options) })?;
    Ok(options.prog_id)
}

/// The program of a filter; none without such a filter.
fn program(interface: u32, of: Hook, handle: u32) -> io::Result<Option<u32>> {
    let (hook, mut options) = (at(interface, of), options(handle));
    // SAFETY: hook and options outlive the call.
    #[allow(unsafe_code)]
    match quietly(|| unsafe { libbpf_sys::bpf_tc_query(&raw const hook, &raw mut options) }) {
        Ok(()) => Ok(Some(options.prog_id)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn detach(interface: u32, from: Hook, handle: u32) -> io::Result<()> {
    let (hook, options) = (at(interface, from), options(handle));
    // SAFETY: hook and options outlive the call.
    #[allow(unsafe_code)]
    unless_gone(quietly(|| unsafe { libbpf_sys::bpf_tc_detach(&raw const hook, &raw const options) }))
}

/// ENOENT: there is no such filter; EINVAL: no qdisc; ENODEV: no such interface.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL | libc::ENODEV))
}

/// The end of a policer and `detach` remove the same: what is gone already needs no removal.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
}

/// Whether the clsact qdisc of an interface has a filter of anybody.
fn has_filters(interface: u32) -> io::Result<bool> {
    // TC_H_CLSACT with TC_H_MIN_INGRESS and TC_H_MIN_EGRESS (linux/pkt_sched.h).
    let has = |parent| match paceline_linux::network::netlink::has_filters(interface, parent) {
        Err(error) if is_gone(&error) => Ok(false),
        result => result,
    };
    Ok(has(0xffff_fff2)? || has(0xffff_fff3)?)
}

//! Programs at the TCX hooks of an interface (Linux 6.6), and which ones are there.
//!
//! A program is attached by a `bpf_link`, which the kernel removes with the process, however that ends. A
//! link that is pinned in a BPF file system stays.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Programs that are listed at a hook. Chosen: the kernel allows 64 (BPF_MPROG_MAX).
const MAX_PROGRAMS: usize = 64;

/// A hook of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// Packets that arrive.
    Ingress,
    /// Packets that leave.
    Egress,
}

impl Hook {
    /// The other one.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Ingress => Self::Egress,
            Self::Egress => Self::Ingress,
        }
    }
    fn kind(self) -> u32 {
        match self {
            Self::Ingress => libbpf_sys::BPF_TCX_INGRESS,
            Self::Egress => libbpf_sys::BPF_TCX_EGRESS,
        }
    }
}

/// A program at a hook: identifiers of the program and of its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attached {
    /// The program.
    pub program: u32,
    /// Its link; 0 for a program without one.
    pub link: u32,
}

/// Attaches a program behind those that are there, as long as the returned descriptor is open.
pub fn attach(program: BorrowedFd<'_>, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    // SAFETY: no options are given; the call takes no other pointers.
    #[allow(unsafe_code)]
    let fd = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), interface as i32, hook.kind(), std::ptr::null())
    };
    descriptor(fd)
}

/// The programs at a hook; none on a kernel without TCX.
pub fn attached(interface: u32, hook: Hook) -> io::Result<Vec<Attached>> {
    let (mut programs, mut links) = ([0u32; MAX_PROGRAMS], [0u32; MAX_PROGRAMS]);
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.prog_cnt = MAX_PROGRAMS as u32;
    // SAFETY: the arrays have the announced number of elements and outlive the call.
    #[allow(unsafe_code)]
    let result = unsafe { libbpf_sys::bpf_prog_query_opts(interface as i32, hook.kind(), &raw mut options) };
    if result == -libc::EINVAL {
        return Ok(Vec::new()); // a kernel without these hooks
    }
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: both members of the union are a number of this type.
    #[allow(unsafe_code)]
    let count = unsafe { options.__bindgen_anon_1.prog_cnt } as usize;
    let both = programs.into_iter().zip(links).take(count);
    Ok(both.map(|(program, link)| Attached { program, link }).collect())
}

/// The interface at which a link's program is; none once it was detached or the interface is gone.
pub fn interface(link: &OwnedFd) -> io::Result<Option<u32>> {
    let info = info(link)?;
    // SAFETY: a link of this type has this member of the union.
    #[allow(unsafe_code)]
    let interface = unsafe { info.__bindgen_anon_1.tcx.ifindex };
    Ok((interface != 0).then_some(interface))
}

/// The identifier of a link.
pub fn id(link: &OwnedFd) -> io::Result<u32> {
    Ok(info(link)?.id)
}

/// Information of the kernel on a link at a TCX hook; an error for other links.
fn info(link: &OwnedFd) -> io::Result<libbpf_sys::bpf_link_info> {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut len = size_of::<libbpf_sys::bpf_link_info>() as u32;
    // SAFETY: the structure has the announced size and outlives the call.
    #[allow(unsafe_code)]
    let result =
        unsafe { libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &raw mut info, &raw mut len) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    if info.type_ != libbpf_sys::BPF_LINK_TYPE_TCX {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(info)
}

/// Whether this process may open programs and links by their identifiers, tried with a program.
pub fn may_open(program: u32) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    #[allow(unsafe_code)]
    match descriptor(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(program) }) {
        Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
        _ => Ok(()), // without such a program: it ended meanwhile
    }
}

/// Takes a program from its hook, also if another process holds the link. It is no error if the program left
/// meanwhile, with its process or its interface.
pub fn detach(link: u32) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    #[allow(unsafe_code)]
    let fd = match descriptor(unsafe { libbpf_sys::bpf_link_get_fd_by_id(link) }) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
        result => result?,
    };
    // SAFETY: as above.
    #[allow(unsafe_code)]
    match unsafe { libbpf_sys::bpf_link_detach(fd.as_raw_fd()) } {
        0.. => Ok(()),
        error if error == -libc::ENOLINK => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// Keeps a link when its process ends, as a file of a BPF file system.
pub fn pin(link: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: the path is a string that outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Opens a pinned link.
pub fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: the path is a string that outlives the call.
    #[allow(unsafe_code)]
    descriptor(unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) })
}

fn descriptor(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the descriptor is new and nobody else's.
    #[allow(unsafe_code)]
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

//! Confinement of single threads: no capability, and only the system calls of their work (seccomp(2)).
//!
//! A system call that is not among them fails with EPERM; it does not end the process, since connections hang
//! on it. A thread's children have the same limits. On processors without a list here there is no filter.
#![allow(unsafe_code)]

use super::privileges;
use anyhow::Context;
use libc::c_long;
use nix::sys::prctl;

/// The work of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confined {
    /// Receives and sends frames by sockets that are open, and writes to maps of the kernel programs.
    Worker,
    /// Answers HTTP requests, each in a thread of its own; reads maps and files.
    Http,
    /// Receives headers by a socket that is open, and writes to a file.
    Observer,
    /// Asks the kernel's routing netlink, and writes to maps of the kernel programs.
    Follower,
}

/// Gives up all capabilities, and all system calls that this work does not need.
pub fn confine(work: Confined) -> anyhow::Result<()> {
    privileges::keep(&[], None)?;
    install(&program(work)).context("cannot give up system calls")
}

/// A condition on one argument of a system call: `argument & mask` is one of the values.
struct Condition {
    call: c_long,
    argument: u32,
    mask: u32,
    values: &'static [u32],
}

/// Memory, time, locks, signals, open files, and the end of a thread.
const COMMON: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
];
/// Frames by packet sockets.
const FRAMES: &[c_long] = &[
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
];
/// Connections of clients, and reading files.
const SERVING: &[c_long] = &[
    libc::SYS_accept4,
    libc::SYS_getpeername,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_uname,
];
/// The state of open files and of names.
const FILES: &[c_long] =
    &[libc::SYS_fstat, libc::SYS_lseek, libc::SYS_newfstatat, libc::SYS_pread64, libc::SYS_statx];
/// Writing and replacing files.
const WRITING: &[c_long] = &[
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_mkdirat,
    libc::SYS_openat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
];

/// System calls that older processors have beside their successors.
#[cfg(target_arch = "x86_64")]
mod former {
    use libc::c_long;
    pub const COMMON: &[c_long] = &[libc::SYS_poll, libc::SYS_time];
    pub const FILES: &[c_long] = &[libc::SYS_stat, libc::SYS_lstat];
    pub const WRITING: &[c_long] = &[libc::SYS_mkdir, libc::SYS_open, libc::SYS_rename, libc::SYS_unlink];
    /// AUDIT_ARCH_X86_64. By definition of Linux (linux/audit.h).
    pub const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
}
#[cfg(not(target_arch = "x86_64"))]
mod former {
    use libc::c_long;
    pub const COMMON: &[c_long] = &[];
    pub const FILES: &[c_long] = &[];
    pub const WRITING: &[c_long] = &[];
    /// AUDIT_ARCH_AARCH64. By definition of Linux (linux/audit.h).
    pub const ARCHITECTURE: Option<u32> =
        if cfg!(target_arch = "aarch64") { Some(0xc000_00b7) } else { None };
}

/// Reading, writing and deleting entries of maps: BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM and
/// BPF_MAP_DELETE_ELEM. By definition of Linux (linux/bpf.h).
const MAPS: Condition = Condition { call: libc::SYS_bpf, argument: 0, mask: !0, values: &[1, 2, 3] };
/// The name of a thread (PR_SET_NAME). By definition of prctl(2).
const NAMES: Condition =
    Condition { call: libc::SYS_prctl, argument: 0, mask: !0, values: &[libc::PR_SET_NAME as u32] };
/// Threads, not processes. By definition of clone(2). `clone3`, whose flags a filter cannot see, counts as
/// unknown, and the C library takes this one.
const THREADS: Condition = Condition {
    call: libc::SYS_clone,
    argument: 0,
    mask: libc::CLONE_THREAD as u32,
    values: &[libc::CLONE_THREAD as u32],
};
/// Sockets of netlink (AF_NETLINK). By definition of socket(2).
const NETLINK: Condition =
    Condition { call: libc::SYS_socket, argument: 0, mask: !0, values: &[libc::AF_NETLINK as u32] };
/// Files that are opened to be read. By definition of open(2).
const READING: Condition = Condition {
    call: libc::SYS_openat,
    argument: 2,
    mask: (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32,
    values: &[libc::O_RDONLY as u32],
};

/// The filter of a thread; empty on a processor without a list.
fn program(work: Confined) -> Vec<libc::sock_filter> {
    let Some(architecture) = former::ARCHITECTURE else { return Vec::new() };
    let (calls, conditions): (Vec<&[c_long]>, Vec<Condition>) = match work {
        Confined::Worker => (vec![FRAMES], vec![MAPS]),
        Confined::Follower => (vec![FRAMES, &[libc::SYS_bind]], vec![MAPS, NETLINK]),
        Confined::Http => (vec![SERVING, FILES, former::FILES], vec![MAPS, NAMES, THREADS, READING]),
        Confined::Observer => {
            (vec![FRAMES, FILES, former::FILES, WRITING, former::WRITING], vec![NAMES, THREADS])
        }
    };
    let calls = [COMMON, former::COMMON].into_iter().chain(calls).flatten();
    // Offsets in `struct seccomp_data` (linux/seccomp.h): number, architecture, arguments of 64 bits.
    let mut program = vec![load(4), equal(architecture, 1, 0), answer(deny(libc::ENOSYS)), load(0)];
    for call in calls {
        program.extend([equal(*call as u32, 0, 1), answer(libc::SECCOMP_RET_ALLOW)]);
    }
    for Condition { call, argument, mask, values } in conditions {
        program.push(equal(call as u32, 0, 3 + 2 * values.len() as u8));
        program.extend([load(16 + 8 * argument + LOW_HALF), and(mask)]);
        for value in values {
            program.extend([equal(*value, 0, 1), answer(libc::SECCOMP_RET_ALLOW)]);
        }
        program.push(answer(deny(libc::EPERM)));
    }
    program.extend([equal(libc::SYS_clone3 as u32, 0, 1), answer(deny(libc::ENOSYS))]);
    program.push(answer(deny(libc::EPERM)));
    program
}

/// Offset of the low half of an argument. By definition of the byte order.
const LOW_HALF: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };

fn deny(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error as u32
}
/// BPF_LD | BPF_W | BPF_ABS of linux/bpf_common.h.
fn load(offset: u32) -> libc::sock_filter {
    libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset }
}
/// BPF_JMP | BPF_JEQ | BPF_K: so many instructions are passed over if the value is this one, or another.
fn equal(value: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: 0x15, jt, jf, k: value }
}
/// BPF_ALU | BPF_AND | BPF_K.
fn and(mask: u32) -> libc::sock_filter {
    libc::sock_filter { code: 0x54, jt: 0, jf: 0, k: mask }
}
/// BPF_RET | BPF_K.
fn answer(action: u32) -> libc::sock_filter {
    libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: action }
}

fn install(program: &[libc::sock_filter]) -> nix::Result<()> {
    if program.is_empty() {
        return Ok(());
    }
    prctl::set_no_new_privs()?;
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads the program, which outlives the call.
    let result = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::c_ulong::from(libc::SECCOMP_MODE_FILTER), &raw const filter)
    };
    nix::errno::Errno::result(result).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::UdpSocket;
    use std::process::Command;
    use std::thread;

    fn confined<T: Send + 'static>(work: Confined, run: impl FnOnce() -> T + Send + 'static) -> T {
        thread::spawn(move || {
            confine(work).unwrap();
            run()
        })
        .join()
        .unwrap()
    }

    #[test]
    fn a_confined_thread_cannot_start_programs_open_sockets_or_write_where_it_must_not() {
        for work in [Confined::Worker, Confined::Http, Confined::Observer, Confined::Follower] {
            let (program, socket, opened) = confined(work, || {
                let program = Command::new("true").status().is_err();
                (program, UdpSocket::bind("127.0.0.1:0").is_err(), fs::File::open("/proc/self/stat").is_ok())
            });
            assert!(program && socket, "{work:?}");
            let opens = matches!(work, Confined::Http | Confined::Observer);
            assert_eq!(opened, opens, "{work:?}");
        }
        let path = std::env::temp_dir().join(format!("paceline-confined-{}", std::process::id()));
        let written = [Confined::Worker, Confined::Http, Confined::Observer].map(|work| {
            let path = path.clone();
            confined(work, move || fs::write(&path, "text").is_ok())
        });
        fs::remove_file(&path).unwrap();
        assert_eq!(written, [false, false, true]);
        // Other threads have no limits.
        assert!(Command::new("true").status().is_ok_and(|status| status.success()));
    }

    #[test]
    fn a_confined_thread_allocates_waits_and_starts_threads_where_its_work_needs_them() {
        let sum = confined(Confined::Http, || {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let named = thread::Builder::new().name("answer".into());
                    named.spawn(move || vec![n; 100_000].iter().sum::<u64>()).unwrap()
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        assert_eq!(sum, 600_000);
        let panicked = thread::spawn(|| {
            confine(Confined::Worker).unwrap();
            paceline_linux::clock::pause(paceline_net::Duration::from_millis(1));
            assert!(std::env::args().next().is_none(), "a panic unwinds as elsewhere");
        });
        assert!(panicked.join().is_err());
    }
}

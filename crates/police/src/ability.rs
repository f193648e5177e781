//! Whether this host can run the policer.

use crate::trial;
use paceline_linux::ability::{
    CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN, first_missing, has_capability, too_old,
};
use paceline_linux::bpf::bpf_fs;
use paceline_linux::kernel::LOOPS;

/// A remark without CAP_SYS_ADMIN.
const WITHOUT_ADMIN: &str = "attach, apply and estimate, at devices without other programs; show and detach \
    need CAP_SYS_ADMIN too";
/// A remark before Linux 6.6.
const WITHOUT_TCX: &str = "by clsact, whose filters stay after kill -9 until the next attach or detach";

/// The reason why `paceline police` cannot work here, if there is one.
pub fn problem() -> Option<String> {
    if let Some(problem) = too_old(&LOOPS, || trial().map(|_| ())) {
        return Some(problem);
    }
    let needed = [
        (CAP_NET_ADMIN, "CAP_NET_ADMIN to attach to interfaces"),
        (CAP_BPF, "CAP_BPF to load its kernel programs"),
        (CAP_PERFMON, "CAP_PERFMON to have them read packets"),
    ];
    if let Some(why) = first_missing(&needed) {
        return Some(format!(
            "needs {why}: run as root, or give it CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON, and CAP_SYS_ADMIN for \
             show and detach"
        ));
    }
    trial().err().map(|error| format!("{error:#}"))
}

/// Remarks on `paceline police` on this host.
pub fn remarks() -> Option<String> {
    let without_tcx = trial().is_ok_and(|has_tcx| !has_tcx);
    let without_admin = !has_capability(CAP_SYS_ADMIN);
    let remarks = [(without_tcx, WITHOUT_TCX), (without_admin, WITHOUT_ADMIN)];
    let remarks = remarks.into_iter().filter(|(is, _)| *is).map(|(_, remark)| remark.to_owned());
    // Without a pin, a policer ends with its process.
    let unpinned = bpf_fs::trial().err();
    let unpinned = unpinned.map(|error| format!("without --pin, which does not work: {error:#}"));
    let remarks: Vec<String> = remarks.chain(unpinned).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

//! Whether this host can run the gateway.

use super::steering::trial;
use paceline_linux::ability::{
    CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW, CAP_PERFMON, first_missing, missing_ip, too_old,
};
use paceline_linux::kernel::TCX;

/// The reason why `paceline gateway` cannot work here, if there is one.
pub fn problem() -> Option<String> {
    if let Some(problem) = too_old(&TCX, trial) {
        return Some(problem);
    }
    let needed = [
        (CAP_NET_ADMIN, "CAP_NET_ADMIN to make a bridge and attach to interfaces"),
        (CAP_NET_RAW, "CAP_NET_RAW for its packet sockets"),
        (CAP_BPF, "CAP_BPF to load its kernel programs"),
        (CAP_PERFMON, "CAP_PERFMON to have them read packets"),
    ];
    if let Some(why) = first_missing(&needed) {
        return Some(format!(
            "needs {why}: run as root, or give it CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON"
        ));
    }
    missing_ip().or_else(|| trial().err().map(|error| format!("{error:#}")))
}

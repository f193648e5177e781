//! Whether this host can run paced controls.

use crate::trial;
use paceline_linux::ability::{
    CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN, first_missing, has_capability, too_old,
};
use paceline_linux::kernel::PACED_CONTROLS;

/// The reason why `paceline pace` cannot work here, if there is one.
pub fn problem() -> Option<String> {
    if let Some(problem) = too_old(&PACED_CONTROLS, trial) {
        return Some(problem);
    }
    let needed = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON"), (CAP_NET_ADMIN, "CAP_NET_ADMIN")];
    if let Some(name) = first_missing(&needed) {
        return Some(format!(
            "needs {name} to register a congestion control: run as root, or give it CAP_BPF, CAP_PERFMON, \
             CAP_NET_ADMIN"
        ));
    }
    trial().err().map(|error| format!("{error:#}"))
}

/// The reason why the registered controls of `paceline pace` cannot be found here, if there is one. Unlike
/// [`problem`] it registers nothing.
pub fn show_problem() -> Option<String> {
    (!has_capability(CAP_SYS_ADMIN))
        .then(|| "needs CAP_SYS_ADMIN to find the controls of other processes: run as root".into())
}

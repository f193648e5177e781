//! The oldest Linux for each function of the program.
//!
//! Left out: functions that a distribution has added to an older version.
//! [`crate::ability::too_old`] tries them.

use std::fmt;

/// A version of Linux, without the numbers of fixes: `6.12`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u16, pub u16);

impl Version {
    /// The version in a release's name, such as `6.1.0-31-amd64`.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// A kernel as far as functions of the program depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Version.
    pub version: Version,
    /// Whether the kernel has type information (CONFIG_DEBUG_INFO_BTF).
    pub btf: bool,
}

impl Kernel {
    /// The kernel that runs here; None if its release has no version.
    pub fn running() -> Option<Self> {
        let version = Version::parse(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)?;
        Some(Self { version, btf: std::fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) })
    }
    /// The reason why a function cannot work on this kernel, if there is one.
    pub fn problem(self, need: &Need) -> Option<String> {
        let Need { least, reason, btf } = need;
        if self.version < *least {
            return Some(format!(
                "needs Linux {least} or newer for {reason}; here is {} (Debian 12 has 6.1, Debian 13 6.12)",
                self.version
            ));
        }
        (*btf && !self.btf).then(|| "the kernel has no type information (CONFIG_DEBUG_INFO_BTF)".into())
    }
}

/// The part of a kernel that a function needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// The oldest version that has it.
    pub least: Version,
    /// Its name.
    pub reason: &'static str,
    /// Type information is needed too.
    pub btf: bool,
}

/// Of `paceline gateway`: programs at the TCX hooks of interfaces, new in Linux 6.6 (commit e420bed02507).
pub const TCX: Need = Need { least: Version(6, 6), reason: "TCX", btf: false };
/// Of `paceline police`: loops in kernel programs, new in Linux 5.17 (commit e6f2dd0f8067). Tried from 6.1
/// on.
pub const LOOPS: Need = Need { least: Version(5, 17), reason: "bpf_loop", btf: false };
/// Of `paceline pace` (docs/pace.md).
pub const PACED_CONTROLS: Need =
    Need { least: Version(6, 9), reason: "congestion controls as kernel programs", btf: true };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_names_of_releases() {
        for (release, version) in [
            ("6.1.0-31-amd64", Some(Version(6, 1))),
            ("6.12.43+deb13-amd64", Some(Version(6, 12))),
            ("5.10.0", Some(Version(5, 10))),
            ("6.18-rc1", Some(Version(6, 18))),
            ("generic", None),
            ("6", None),
        ] {
            assert_eq!(Version::parse(release), version, "{release}");
        }
        assert!(Version(6, 12) > Version(6, 6) && Version(5, 19) < Version(6, 0));
    }

    #[test]
    fn verdicts_on_the_kernels_of_debian_are_those_of_the_manual() {
        let kernel = |release: &str, btf| Kernel { version: Version::parse(release).unwrap(), btf };
        for (kernel, tcx, paced) in [
            (kernel("5.10.0", true), Some("needs Linux 6.6"), Some("needs Linux 6.9")),
            (kernel("6.1.0-31-amd64", true), Some("needs Linux 6.6"), Some("needs Linux 6.9")),
            (kernel("6.12.43+deb13-amd64", true), None, None),
            (kernel("6.12.43+deb13-amd64", false), None, Some("no type information")),
            (kernel("6.6.0", true), None, Some("needs Linux 6.9")),
            (kernel("6.5.13", true), Some("needs Linux 6.6"), Some("needs Linux 6.9")),
        ] {
            let loops = (kernel.version == Version(5, 10)).then_some("needs Linux 5.17");
            for (need, expected) in [(&TCX, tcx), (&LOOPS, loops), (&PACED_CONTROLS, paced)] {
                let problem = kernel.problem(need);
                assert_eq!(problem.is_some(), expected.is_some(), "{kernel:?}: {problem:?}");
                assert!(problem.unwrap_or_default().contains(expected.unwrap_or_default()));
            }
        }
    }
}

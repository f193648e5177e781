//! The memory that this process may use: the machine's, or less by the limits of its control groups
//! (cgroups(7), versions 1 and 2), also inside of a container.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Limits of version 1 from here on are none. By definition of Linux, which rounds the largest number of
/// bytes down to a page.
const NO_LIMIT: u64 = 1 << 62;

/// An amount of memory and its source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Available {
    /// Bytes.
    pub bytes: u64,
    /// The file that limits them; None: the machine.
    limit: Option<PathBuf>,
}

impl Available {
    /// The memory of this process.
    pub fn read() -> Self {
        let machine = nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_total());
        let text = |path: &Path| fs::read_to_string(path).ok();
        let own = |name: &str| text(&Path::new("/proc/self").join(name)).unwrap_or_default();
        Self::least(machine, files(&own("cgroup"), &own("mountinfo")), text)
    }
    fn least(
        machine: u64,
        files: impl IntoIterator<Item = PathBuf>,
        read: impl Fn(&Path) -> Option<String>,
    ) -> Self {
        let mut least = Self { bytes: machine, limit: None };
        for file in files {
            let bytes = read(&file).and_then(|text| text.trim().parse::<u64>().ok());
            if let Some(bytes) = bytes.filter(|bytes| *bytes < NO_LIMIT && *bytes < least.bytes) {
                least = Self { bytes, limit: Some(file) };
            }
        }
        least
    }
}

impl fmt::Display for Available {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.limit {
            None => write!(f, "the machine's {} MiB", self.bytes >> 20),
            Some(file) => write!(f, "the {} MiB of {}", self.bytes >> 20, file.display()),
        }
    }
}

/// The files with the limits of this process: of its groups and all groups around them.
fn files(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, group) = (fields.next(), fields.next().unwrap_or(""), fields.next());
        let Some(group) = group else { continue };
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let names: &[&str] =
            if is_second { &["memory.max", "memory.high"] } else { &["memory.limit_in_bytes"] };
        for mount in mounts.lines().filter_map(|line| Mount::parse(line, is_second)) {
            let folders = mount.folder(group);
            let around = folders.ancestors().take_while(|folder| folder.starts_with(&mount.point));
            files.extend(around.flat_map(|folder| names.iter().map(move |name| folder.join(name))));
        }
    }
    files
}

/// Where the groups of a version are mounted.
struct Mount {
    /// The group that is seen at the mount point.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Parses a line of `mountinfo`; None for a mount of something else.
    fn parse(line: &str, is_second: bool) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let fits = match is_second {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        fits.then(|| Self { root: root.into(), point: point.into() })
    }
    /// The folder of a group. One outside of the mount is seen by its root alone.
    fn folder(&self, group: &str) -> PathBuf {
        let inside = Path::new(group).strip_prefix(&self.root).ok();
        let inside = inside.filter(|path| path.components().all(|part| part.as_os_str() != ".."));
        inside.map_or_else(|| self.point.clone(), |path| self.point.join(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The memory of a machine of 8 GiB with these files.
    fn available(groups: &str, mounts: &str, limits: &[(&str, &str)]) -> (u64, String) {
        let read = |path: &Path| {
            limits.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        let found = Available::least(8 * GIB, files(groups, mounts), read);
        (found.bytes, found.to_string())
    }

    const SECOND: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const FIRST: &str = "33 32 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory\n\
                         34 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn the_least_limit_of_the_group_and_those_around_it_counts() {
        let unit = "0::/system.slice/gw.service\n";
        assert_eq!(available(unit, SECOND, &[]).0, 8 * GIB);
        let own = ("/sys/fs/cgroup/system.slice/gw.service/memory.max", "2147483648\n");
        let high = ("/sys/fs/cgroup/system.slice/gw.service/memory.high", "1073741824\n");
        let slice = ("/sys/fs/cgroup/system.slice/memory.max", "536870912\n");
        let none = ("/sys/fs/cgroup/system.slice/gw.service/memory.max", "max\n");
        assert_eq!(available(unit, SECOND, &[own]).0, 2 * GIB);
        assert_eq!(available(unit, SECOND, &[own, high]).0, GIB);
        let (bytes, source) = available(unit, SECOND, &[own, slice]);
        assert_eq!(
            (bytes, source.as_str()),
            (GIB / 2, "the 512 MiB of /sys/fs/cgroup/system.slice/memory.max")
        );
        assert_eq!(available(unit, SECOND, &[none]), (8 * GIB, "the machine's 8192 MiB".to_owned()));
        // More than the machine has is no limit.
        let much = ("/sys/fs/cgroup/system.slice/gw.service/memory.max", "99999999999\n");
        assert_eq!(available(unit, SECOND, &[much]).0, 8 * GIB);
    }

    #[test]
    fn limits_of_the_first_version_and_of_containers_are_found() {
        let groups = "9:cpu,cpuacct:/docker/a\n5:memory:/docker/a\n0::/docker/a\n";
        let own = ("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "1073741824\n");
        assert_eq!(available(groups, FIRST, &[own]).0, GIB);
        let none = ("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(available(groups, FIRST, &[none]).0, 8 * GIB);
        // A container sees its own group at the mount point: with a namespace of groups, or by the mount.
        let seen = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        let mounted = FIRST.replace("0:29 / ", "0:29 /docker/a ");
        assert_eq!(available(groups, &mounted, &[seen]).0, GIB);
        let seen = ("/sys/fs/cgroup/memory.max", "1073741824\n");
        assert_eq!(available("0::/\n", SECOND, &[seen]).0, GIB);
        let outside = SECOND.replace("0:26 / ", "0:26 /../.. ");
        assert_eq!(available("0::/../b\n", &outside, &[seen]).0, GIB);
        for wrong in ["", "0::", "garbage", "5:memory"] {
            assert_eq!(available(wrong, FIRST, &[own]).0, 8 * GIB, "{wrong}");
        }
        assert_eq!(available(groups, "- cgroup\n29 23\n", &[own]).0, 8 * GIB);
    }
}

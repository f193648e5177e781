//! Checks of a configuration on this machine that `--check` makes beside those of the interfaces: whether
//! files can be written, and settings that an operator should know of. They change nothing.

use super::config::{GatewayConfig, Mode};
use super::interfaces::{firewall, mtu, router};
use crate::service::privileges;
use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, User, eaccess, geteuid, getgrouplist};
use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The result of [`check`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The effects of the configuration on this machine.
    pub facts: Vec<String>,
    /// Settings that cost much or show much.
    pub warnings: Vec<String>,
}

/// Checks accounts, files, MTUs and settings around the gateway. The error names the key.
pub fn check(config: &GatewayConfig) -> anyhow::Result<Report> {
    config.check_accounts()?;
    let user = config.user.as_deref().map(privileges::user).transpose()?;
    for (key, path) in [("records", &config.records), ("experiment", &config.experiment)] {
        if let Some(path) = path {
            check_file(path, user.as_ref())
                .with_context(|| format!("{key} = {:?}: cannot be written", path.display()))?;
        }
    }
    let mtus = mtu::check(config)?;
    let (mut facts, mut warnings) = (mtus.facts, mtus.warnings);
    facts.push(config.memory_source());
    warnings.extend(firewall::warning(config));
    if config.mode == Mode::Routed {
        warnings.extend(router::warnings(config));
    }
    if let Some(address) = config.metrics.filter(|address| address.ip().is_unspecified()) {
        warnings.push(format!(
            "metrics = {address}: everybody who reaches port {} of any of this machine's addresses sees the \
             figures and the devices' addresses; 127.0.0.1 shows them to this machine alone",
            address.port()
        ));
    }
    Ok(Report { facts, warnings })
}

/// Checks that a user, or else this one, can write a file: itself, or else the nearest folder that is there.
fn check_file(path: &Path, user: Option<&User>) -> anyhow::Result<()> {
    let there = path.ancestors().find_map(|path| Some((path, fs::symlink_metadata(path).ok()?)));
    let (there, found) = there.context("there is no folder")?;
    if there == path && !found.is_file() {
        bail!("allowed: a file, or nothing that is there");
    }
    if there != path && !there.is_dir() {
        bail!("{} is no folder", there.display());
    }
    let needed = if there == path { AccessFlags::W_OK } else { AccessFlags::W_OK | AccessFlags::X_OK };
    // A file system may be mounted without the right to write.
    let allowed = match eaccess(there, needed) {
        Ok(()) => user.is_none_or(|user| user.uid == geteuid() || may_write(&found, user)),
        Err(Errno::EACCES) => false,
        Err(error) => return Err(error).with_context(|| there.display().to_string()),
    };
    if !allowed {
        let who = user.map_or_else(|| "this user".to_owned(), |user| format!("the user {}", user.name));
        bail!("{who} must not write {}", there.display());
    }
    Ok(())
}

/// Whether the mode of a file lets a user write it.
fn may_write(file: &Metadata, user: &User) -> bool {
    let groups = || {
        let name = CString::new(user.name.as_bytes()).ok()?;
        getgrouplist(&name, user.gid).ok()
    };
    let bit = if file.uid() == user.uid.as_raw() {
        0o200
    } else if groups().is_some_and(|groups| groups.iter().any(|group| group.as_raw() == file.gid())) {
        0o020
    } else {
        0o002
    };
    user.uid.is_root() || file.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_that_cannot_be_written_are_named_with_the_reason() {
        let folder = std::env::temp_dir().join(format!("paceline-check-{}", std::process::id()));
        fs::create_dir_all(folder.join("open")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
        let check = |name: &str, user: Option<&User>| {
            check_file(&folder.join(name), user).map_err(|error| format!("{error:#}"))
        };
        let own = ["new.csv", "deeper/new.csv"].map(|name| check(name, None));
        let a_folder = check("open", None);
        fs::write(folder.join("file"), "").unwrap();
        let below_a_file = check("file/new.csv", None);
        let nobody = User::from_name("nobody").unwrap();
        let as_nobody =
            nobody.map(|user| [check("new.csv", Some(&user)), check("open/new.csv", Some(&user))]);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(own, [Ok(()), Ok(())]);
        assert!(a_folder.unwrap_err().contains("allowed: a file"));
        assert!(below_a_file.unwrap_err().ends_with("is no folder"));
        if let Some([closed, open]) = as_nobody
            && geteuid().is_root()
        {
            assert!(closed.unwrap_err().contains("the user nobody must not write"));
            assert_eq!(open, Ok(()));
        }
    }
}

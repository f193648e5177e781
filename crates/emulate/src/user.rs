//! The user as whom the programs of an emulation run: the caller of sudo, pkexec or doas, or a named one.

use anyhow::{Context, anyhow, bail};
use nix::unistd::{self, Gid, Uid, User};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables that have the caller's number, of sudo(8) and pkexec(1).
const CALLER_NUMBERS: [&str; 2] = ["SUDO_UID", "PKEXEC_UID"];
/// Variable that has the caller's name, of doas(1).
const CALLER_NAME: &str = "DOAS_USER";

/// A user with groups.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramUser {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    /// None for a number without a name on this machine.
    account: Option<User>,
}

impl ProgramUser {
    /// The user of this name or number. An error names the allowed ones.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let by_name = User::from_name(name).context("cannot read the users of this machine")?;
        let number = name.parse().ok().map(Uid::from_raw);
        let user = match (by_name, number) {
            (Some(user), _) => Self::of_account(user)?,
            (None, Some(uid)) => Self::of_number(uid)?,
            (None, None) => bail!("--user {name:?}: allowed: a user of this machine, by name or number"),
        };
        let own = unistd::geteuid();
        if !own.is_root() && own != user.uid {
            bail!(
                "--user {name:?}: allowed: the user who starts the emulation, or any user if root starts it"
            );
        }
        Ok(user)
    }
    /// The caller of sudo, pkexec or doas; none if root started this program itself, or another user did.
    pub fn caller() -> anyhow::Result<Option<Self>> {
        Self::caller_in(|name| std::env::var(name).ok())
    }
    fn caller_in(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        if !unistd::geteuid().is_root() {
            return Ok(None);
        }
        let number = CALLER_NUMBERS.iter().find_map(|name| variable(name)?.parse().ok());
        let user = match (number, variable(CALLER_NAME)) {
            (Some(number), _) => Self::of_number(Uid::from_raw(number))?,
            (None, Some(name)) => Self::named(&name)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(user).filter(|user| !user.uid.is_root()))
    }
    fn of_account(account: User) -> anyhow::Result<Self> {
        let name = CString::new(account.name.as_bytes()).map_err(|_| anyhow!("a user's name with a zero"))?;
        let groups = unistd::getgrouplist(&name, account.gid)
            .with_context(|| format!("cannot read the groups of user {}", account.name))?;
        Ok(Self { uid: account.uid, gid: account.gid, groups, account: Some(account) })
    }
    fn of_number(uid: Uid) -> anyhow::Result<Self> {
        match User::from_uid(uid).context("cannot read the users of this machine")? {
            Some(account) => Self::of_account(account),
            None => {
                let gid = Gid::from_raw(uid.as_raw());
                Ok(Self { uid, gid, groups: vec![gid], account: None })
            }
        }
    }
    /// The name, or the number.
    pub fn name(&self) -> String {
        self.account.as_ref().map_or_else(|| self.uid.to_string(), |account| account.name.clone())
    }
    /// The login shell.
    pub fn shell(&self) -> Option<String> {
        let shell = self.account.as_ref()?.shell.to_string_lossy().into_owned();
        Some(shell).filter(|shell| !shell.is_empty())
    }
    /// Sets the variables by which programs find the user's files and session.
    pub fn set_environment(&self, command: &mut Command) {
        if let Some(account) = &self.account {
            command.env("USER", &account.name).env("LOGNAME", &account.name).env("HOME", &account.dir);
        }
        if let Some(shell) = self.shell() {
            command.env("SHELL", shell);
        }
        // Browsers need the session's bus; sudo leaves its address out.
        let runtime = PathBuf::from(format!("/run/user/{}", self.uid));
        if runtime.is_dir() {
            let bus = runtime.join("bus");
            if bus.exists() && std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
                command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", bus.display()));
            }
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        let authority = self.account.as_ref().map(|account| account.dir.join(".Xauthority"));
        if let Some(file) = authority.filter(|file| is_file(file))
            && std::env::var_os("XAUTHORITY").is_none()
            && std::env::var_os("DISPLAY").is_some()
        {
            command.env("XAUTHORITY", file);
        }
    }
    /// Makes the calling process continue as this user, without capabilities. Only system calls, so that a
    /// process may call it between fork and exec.
    pub fn assume(&self) -> nix::Result<()> {
        if unistd::geteuid() == self.uid && !self.uid.is_root() {
            return Ok(());
        }
        unistd::setgroups(&self.groups)?;
        unistd::setresgid(self.gid, self.gid, self.gid)?;
        unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number_and_callers_by_their_variables() {
        let own = User::from_uid(unistd::geteuid()).unwrap();
        if let Some(own) = &own {
            assert_eq!(ProgramUser::named(&own.name).unwrap().uid, own.uid);
            assert_eq!(ProgramUser::named(&own.uid.to_string()).unwrap().name(), own.name);
        }
        let error = ProgramUser::named("nobody-of-this-name").unwrap_err().to_string();
        assert_eq!(
            error,
            "--user \"nobody-of-this-name\": allowed: a user of this machine, by name or number"
        );
        let caller = |name: &'static str, value: &'static str| {
            ProgramUser::caller_in(|asked| (asked == name).then(|| value.to_owned())).unwrap()
        };
        assert_eq!(caller("HOME", "/root"), None);
        if !unistd::geteuid().is_root() {
            return;
        }
        // A number of no user of this machine, as in a container.
        let user = caller("SUDO_UID", "3999999").unwrap();
        assert_eq!((user.name().as_str(), user.groups.len(), user.shell()), ("3999999", 1, None));
        assert_eq!(caller("PKEXEC_UID", "3999999"), Some(user));
        assert_eq!(caller("SUDO_UID", "0"), None, "root by sudo stays root");
    }
}

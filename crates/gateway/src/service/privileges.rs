//! Privileges that a program gives up when it has been set up (capabilities(7)).
//!
//! Capabilities are a thread's own: they have to be given up before further threads start. Programs that are
//! started later inherit the kept ones, as ambient capabilities or, for root, by a smaller bounding set.

use anyhow::{Context, anyhow, bail};
use caps::{CapSet, Capability};
use nix::fcntl::AtFlags;
use nix::sys::prctl;
use nix::unistd::{self, Group, User};
use std::ffi::CString;
use std::os::fd::AsFd;

/// Capabilities of a gateway after its set-up. Derived from its work: commands of `ip`, the guardian's packet
/// sockets, the workers' real-time priority.
pub const OF_GATEWAY: [Capability; 3] =
    [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_SYS_NICE];
/// Capabilities of the guardian. Derived from its work: packet sockets with large buffers.
pub const OF_GUARDIAN: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];

/// The user of this machine named `name`, as whom the gateway may continue.
pub fn user(name: &str) -> anyhow::Result<User> {
    let user = User::from_name(name).context("cannot read the users of this machine")?;
    let user = user.ok_or_else(|| anyhow!("user = {name:?}: allowed: a user of this machine"))?;
    let own = unistd::geteuid();
    if !own.is_root() && own != user.uid {
        bail!("user = {name:?}: allowed: the user who starts the gateway, or any user if root starts it");
    }
    Ok(user)
}

/// The group of this machine named `name`, the value of a key.
pub fn group(key: &str, name: &str) -> anyhow::Result<Group> {
    let group = Group::from_name(name).context("cannot read the groups of this machine")?;
    group.ok_or_else(|| anyhow!("{key} = {name:?}: allowed: a group of this machine"))
}

/// Gives an open file (O_PATH will do) to a user and a group, where they are named. By its path, the owner of
/// the folder could put another file in its place.
pub fn give(file: &impl AsFd, user: Option<&User>, group: Option<&Group>) -> anyhow::Result<()> {
    let (user, group) = (user.map(|user| user.uid), group.map(|group| group.gid));
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    unistd::fchownat(file, "", user, group, AtFlags::AT_EMPTY_PATH)
        .context("cannot give the file to its user and group")
}

/// Keeps no capabilities but `kept` (those of them that this thread has), continues as `user`, and never gets
/// privileges again by starting a program.
pub fn keep(kept: &[Capability], user: Option<&User>) -> anyhow::Result<()> {
    prctl::set_no_new_privs().context("cannot give up new privileges")?;
    // Without CAP_SETPCAP the bounding set stays: it gives nothing to a user who is not root.
    for capability in others(kept) {
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
    if let Some(user) = user.filter(|user| user.uid != unistd::geteuid()) {
        become_user(user)?;
    }
    // The permitted set is last: the others are subsets of it, but for the inheritable one.
    for set in [CapSet::Ambient, CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        for capability in others(kept) {
            caps::drop(None, set, capability).with_context(|| format!("cannot give up {capability}"))?;
        }
    }
    for &capability in kept {
        if caps::has_cap(None, CapSet::Permitted, capability)? {
            for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Ambient] {
                caps::raise(None, set, capability).with_context(|| format!("cannot keep {capability}"))?;
            }
        }
    }
    Ok(())
}

/// Changes the user of all threads, with the user's groups and the permitted capabilities.
fn become_user(user: &User) -> anyhow::Result<()> {
    let change = || -> nix::Result<()> {
        prctl::set_keepcaps(true)?;
        let name = CString::new(user.name.as_bytes()).map_err(|_| nix::errno::Errno::EINVAL)?;
        unistd::initgroups(&name, user.gid)?;
        unistd::setresgid(user.gid, user.gid, user.gid)?;
        unistd::setresuid(user.uid, user.uid, user.uid)
    };
    change().with_context(|| format!("cannot continue as user {}", user.name))
}

fn others(kept: &[Capability]) -> impl Iterator<Item = Capability> {
    let known = caps::runtime::thread_all_supported();
    known.into_iter().filter(move |capability| !kept.contains(capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(set: CapSet) -> Vec<Capability> {
        let mut held: Vec<_> = caps::read(None, set).unwrap().into_iter().collect();
        held.sort_by_key(Capability::index);
        held
    }

    #[test]
    fn a_thread_keeps_the_named_capabilities_only() {
        let own = held(CapSet::Permitted);
        let thread = std::thread::spawn(|| {
            keep(&OF_GUARDIAN, None).unwrap();
            [CapSet::Permitted, CapSet::Effective, CapSet::Inheritable, CapSet::Ambient].map(held)
        });
        let kept: Vec<_> = own.iter().copied().filter(|own| OF_GUARDIAN.contains(own)).collect();
        for set in thread.join().unwrap() {
            assert_eq!(set, kept);
        }
        assert_eq!(held(CapSet::Permitted), own, "other threads keep theirs");
    }

    #[test]
    fn unknown_users_and_groups_are_refused_by_key_and_name() {
        let error = user("nobody-of-this-name").unwrap_err().to_string();
        assert_eq!(error, "user = \"nobody-of-this-name\": allowed: a user of this machine");
        let error = group("control_group", "no-such-group").unwrap_err().to_string();
        assert!(error.starts_with("control_group = \"no-such-group\": allowed: "), "{error}");
    }
}

//! The programs in the stations' namespaces.

use super::user::ProgramUser;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use paceline_linux::network::netns::Namespace;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, ExitStatus};

/// Stands for the station's index in the arguments of a program.
const STATION: &str = "{station}";

/// Whether a command has its station's index in its arguments or by its environment.
pub fn names_station(command: &[String]) -> bool {
    command.iter().any(|part| part.contains(STATION) || part.contains("PACELINE_STATION"))
}

/// The running programs.
pub(super) struct Programs {
    namespaces: Vec<(usize, Namespace)>,
    pub running: Vec<(usize, Child)>,
    pub failed: Vec<(usize, ExitStatus)>,
}

impl Programs {
    /// Starts the program in each namespace. In its arguments, `{station}` stands for the station's index.
    /// `host` has the addresses of the host side.
    pub fn start(
        namespaces: Vec<(usize, Namespace)>,
        (argv, user): (&[String], Option<&ProgramUser>),
        host: (Ipv4Addr, Ipv6Addr),
    ) -> anyhow::Result<Self> {
        let mut programs = Self { namespaces, running: Vec::new(), failed: Vec::new() };
        let shell = user.and_then(ProgramUser::shell).or_else(|| std::env::var("SHELL").ok());
        let shell = shell.unwrap_or_else(|| "/bin/sh".into());
        // Only one interactive shell can use the terminal.
        let count = if argv.is_empty() { 1 } else { programs.namespaces.len() };
        for (station, namespace) in &programs.namespaces[..count] {
            let name = argv.first().unwrap_or(&shell);
            let mut command = Command::new(name);
            command.args(argv.iter().skip(1).map(|argument| for_station(argument, *station)));
            command.env("PACELINE_STATION", station.to_string());
            command.env("PACELINE_HOST", host.0.to_string());
            command.env("PACELINE_HOST6", host.1.to_string());
            let become_user = user.cloned();
            if let Some(user) = user {
                user.set_environment(&mut command);
            }
            namespace
                .enter(&mut command, move || become_user.as_ref().map_or(Ok(()), ProgramUser::assume))?;
            let child = command.spawn().with_context(|| match user {
                Some(user) => format!("cannot run `{name}` as user {}", user.name()),
                None => format!("cannot run `{name}`"),
            })?;
            programs.running.push((*station, child));
        }
        Ok(programs)
    }
    /// Removes the programs that have ended; keeps the status of those that failed.
    pub fn reap(&mut self) -> anyhow::Result<()> {
        let mut index = 0;
        while index < self.running.len() {
            let (station, child) = &mut self.running[index];
            let Some(status) = child.try_wait().context("cannot wait for a program")? else {
                index += 1;
                continue;
            };
            if !status.success() {
                self.failed.push((*station, status));
            }
            self.running.remove(index);
        }
        Ok(())
    }
    /// Sends a signal to all processes in the namespaces.
    pub fn signal(&self, signal: Signal) {
        for pid in self.namespaces.iter().flat_map(|(_, namespace)| namespace.processes()) {
            let _ = kill(pid, signal);
        }
    }
}

impl Drop for Programs {
    /// Kills the remaining processes in the namespaces, which have no network any more.
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.running.iter_mut().for_each(|(_, child)| drop(child.wait()));
    }
}

/// An argument with the station's index in place of `{station}`. The shell's `${station}` is left as it is.
fn for_station(argument: &str, station: usize) -> String {
    let shell = "$\0";
    argument.replace("${station}", shell).replace(STATION, &station.to_string()).replace(shell, "${station}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_stations_index_and_variables_of_a_shell_stay() {
        assert_eq!(for_station("file-{station}.{station}", 12), "file-12.12");
        assert_eq!(for_station("echo ${station} {} {other}", 3), "echo ${station} {} {other}");
    }
}

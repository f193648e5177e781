//! The process of the gateway as the kernel counts it (proc(5)): start, processor time, memory.

use std::fs;

/// Units of processor time in a second. By definition of Linux (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

/// Figures of this process.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Process {
    /// Unix time of its start, in seconds.
    pub started: f64,
    /// Processor time of all its threads, in seconds.
    pub cpu: f64,
    /// Resident memory in bytes.
    pub resident: u64,
}

impl Process {
    /// The figures at present; zero where the kernel does not say them.
    pub fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text("/proc/self/stat"), &text("/proc/stat"), &text("/proc/self/status"))
    }
    fn parse(own: &str, machine: &str, status: &str) -> Self {
        // The name of the program may contain spaces and parentheses.
        let fields: Vec<&str> = own.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        // Fields are counted from 1 in proc(5), and the third is the first here.
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok());
        let named = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        };
        let [user, system, started] = [14, 15, 22].map(|number| field(number).unwrap_or(0.0) / TICKS_PER_S);
        let booted = named(machine, "btime ");
        Self {
            started: booted.map_or(0.0, |booted| booted + started),
            cpu: user + system,
            resident: named(status, "VmRSS:").map_or(0, |kilobytes| kilobytes as u64 * 1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_kernels_text() {
        let own = "7 (a ) name) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 12345 1000 200";
        let found = Process::parse(own, "cpu  1 2\nbtime 1700000000\n", "Name:\tx\nVmRSS:\t    2048 kB\n");
        assert_eq!(found, Process { started: 1_700_000_123.45, cpu: 2.0, resident: 2 << 20 });
        assert_eq!(Process::parse("", "", ""), Process::default());
        let now = Process::read();
        assert!(now.started > 1e9 && now.resident > 1 << 20, "{now:?}");
    }
}

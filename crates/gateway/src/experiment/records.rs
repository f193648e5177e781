//! A record of each transfer to a device, accelerated or not, as a line of a CSV file (key `records`).
//!
//! A thread of its own observes the interface towards the devices, as an experiment does. A file that has
//! reached its limit is renamed to the ending `.1`, in place of the one before. Lines that cannot be written,
//! as on a full disk, are left out; forwarding is not concerned.

use super::tap::{Successor, Tap};
use crate::service::confinement::{Confined, confine};
use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use paceline_experiment::{Measured, Observer};
use paceline_linux::clock;
use paceline_net::{Duration, FlowKey};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

/// Bytes of a file. Chosen: half a million transfers, a fraction of any disk.
const MAX_BYTES: u64 = 64 << 20;
/// Time between two writes. Chosen: a reader sees transfers within a second of their end.
const WRITE_INTERVAL: Duration = Duration::from_millis(500);
/// Columns of the file. The times are seconds, that of the end in Unix time.
const HEAD: &str = "ended,server,server_port,device,device_port,bytes,seconds,rtt,sent,repeated,finished\n";

/// The file of records.
struct Records {
    path: PathBuf,
    limit: u64,
    file: Option<File>,
    len: u64,
    /// The last error was reported.
    reported: bool,
}

impl Records {
    fn new(path: &Path, limit: u64) -> Self {
        Self { path: path.to_owned(), limit, file: None, len: 0, reported: false }
    }
    fn open(&mut self) -> anyhow::Result<()> {
        // A link in the place of the file could name any other one.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file = OpenOptions::new().append(true).create(true).custom_flags(flags).open(&self.path)?;
        if !file.metadata()?.is_file() {
            bail!("allowed: a file");
        }
        self.len = file.metadata()?.len();
        if self.len == 0 {
            file.write_all(HEAD.as_bytes())?;
            self.len = HEAD.len() as u64;
        }
        self.file = Some(file);
        Ok(())
    }
    fn write(&mut self, lines: &str) {
        let written = self.try_write(lines);
        if let Err(error) = &written
            && !self.reported
        {
            eprintln!("paceline: records = {}: transfers are left out: {error:#}", self.path.display());
        }
        if written.is_err() {
            self.file = None; // opened again by the next write
        }
        self.reported = written.is_err();
    }
    fn try_write(&mut self, lines: &str) -> anyhow::Result<()> {
        if self.file.is_none() {
            self.open()?;
        }
        if self.len + lines.len() as u64 > self.limit && self.len > HEAD.len() as u64 {
            fs::rename(&self.path, numbered(&self.path))?;
            self.open()?;
        }
        let file = self.file.as_mut().context("the file is not open")?;
        if let Err(error) = file.write_all(lines.as_bytes()) {
            // No part of a line stays.
            let _ = file.set_len(self.len);
            return Err(error.into());
        }
        self.len += lines.len() as u64;
        Ok(())
    }
}

/// The name of the file before the present one.
fn numbered(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn line(text: &mut String, ended: f64, key: &FlowKey, transfer: &Measured) {
    let rtt = transfer.rtt.map_or(String::new(), |rtt| format!("{:.6}", rtt.as_secs_f64()));
    let _ = writeln!(
        text,
        "{ended:.3},{},{},{},{},{},{:.6},{rtt},{},{},{}",
        key.src,
        key.src_port,
        key.dst,
        key.dst_port,
        transfer.bytes,
        transfer.time.as_secs_f64(),
        transfer.sent,
        transfer.repeated,
        u8::from(transfer.finished)
    );
}

fn unix_time() -> f64 {
    clock_gettime(ClockId::CLOCK_REALTIME)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

/// Opens the file, and starts the thread. Returns the place for its next socket on the interface.
pub fn start(path: &Path, interface: u32) -> anyhow::Result<Successor> {
    let mut records = Records::new(path, MAX_BYTES);
    records.open().with_context(|| format!("records = {}: cannot write it", path.display()))?;
    let mut tap = Tap::open(interface).context("records: cannot observe the interface")?;
    let successor = tap.successor();
    let work = move || {
        // Headers of strangers are parsed without any privilege.
        if let Err(error) = confine(Confined::Observer) {
            eprintln!("paceline: records: no transfers are written: {error:#}");
            return;
        }
        let (mut observer, mut written_at) = (Observer::default(), clock::now());
        loop {
            let mut fds = [PollFd::new(tap.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::from(100u8)); // a signal is no matter
            while tap.receive(|at, key, segment| observer.on_segment(at, key, segment)).unwrap_or(false) {}
            let now = clock::now();
            if now.since(written_at) < WRITE_INTERVAL {
                continue;
            }
            written_at = now;
            observer.sweep(now);
            let mut text = String::new();
            while let Some((key, transfer)) = observer.poll() {
                line(&mut text, unix_time(), &key, &transfer);
            }
            if !text.is_empty() {
                records.write(&text);
            }
        }
    };
    thread::Builder::new().name("records".into()).spawn(work).context("cannot start a thread")?;
    Ok(successor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(device: [u8; 4]) -> (FlowKey, Measured) {
        let key = FlowKey { src: [192, 0, 2, 1].into(), dst: device.into(), src_port: 443, dst_port: 5000 };
        let measured = Measured {
            device: device.into(),
            bytes: 1000,
            time: Duration::from_millis(250),
            rtt: Some(Duration::from_millis(40)),
            sent: 1100,
            repeated: 100,
            finished: true,
            opened_at: clock::now(),
            began_at: clock::now(),
        };
        (key, measured)
    }

    #[test]
    fn files_have_a_limit_and_lines_are_never_divided() {
        let folder = std::env::temp_dir().join(format!("paceline-records-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("transfers.csv");
        let mut records = Records::new(&path, 500);
        for n in 0..20 {
            let (key, measured) = transfer([10, 0, 0, n]);
            let mut text = String::new();
            line(&mut text, 1_700_000_000.25, &key, &measured);
            records.write(&text);
        }
        let [now, before] = [path.clone(), numbered(&path)].map(|file| fs::read_to_string(file).unwrap());
        // A folder in the place of the file: the error is reported, and nothing else happens.
        let mut wrong = Records::new(&folder, 500);
        wrong.write("a line\n");
        assert!(wrong.reported);
        // A link in the place of the file is not followed.
        let (victim, planted) = (folder.join("victim"), folder.join("planted.csv"));
        fs::write(&victim, "root only").unwrap();
        std::os::unix::fs::symlink(&victim, &planted).unwrap();
        Records::new(&planted, 500).write("a line\n");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "root only");
        fs::remove_dir_all(&folder).unwrap();
        for text in [&now, &before] {
            assert!(text.starts_with(HEAD) && text.len() <= 500 && text.ends_with('\n'), "{text}");
            assert!(text.lines().all(|line| line.split(',').count() == 11), "{text}");
        }
        let last = "1700000000.250,192.0.2.1,443,10.0.0.19,5000,1000,0.250000,0.040000,1100,100,1\n";
        assert!(now.ends_with(last), "{now}");
    }
}

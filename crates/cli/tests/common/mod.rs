//! Runs the command `paceline` for tests: bounded in time, with all it says.
#![allow(dead_code)] // each test program uses a part

pub mod bed;
pub mod outer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The program under test.
pub const PACELINE: &str = env!("CARGO_BIN_EXE_paceline");
/// A scenario that is valid and small.
pub const GOOD: &str = "[run]\nduration = \"300 ms\"\nwarmup = \"50 ms\"\n\n[[station]]\ncount = 1\n";

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Exit code; 124 after the time limit.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A folder for one test, with a valid scenario `good.toml`.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// Makes it.
    pub fn new() -> Self {
        let place = Self { folder: TempDir::new().expect("a temporary folder can be made") };
        place.write("good.toml", GOOD);
        place
    }
    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    /// A file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.join(name), content).expect("the file can be written");
    }
    /// Reads a text file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
    /// All files and folders in it, hidden ones included.
    pub fn names(&self) -> Vec<PathBuf> {
        let mut names = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("the folder can be read") {
                let path = entry.expect("the folder can be read").path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                names.push(path);
            }
        }
        names.sort();
        names
    }
    /// Runs `paceline` here; one minute is the limit.
    pub fn paceline(&self, args: &[&str]) -> Said {
        said(Command::new("timeout").args(["-k", "5", "60", PACELINE]).args(args).current_dir(self.path()))
    }
    /// Runs a shell command here, with the program under test as `$PACELINE`; one minute is the limit.
    pub fn shell(&self, script: &str) -> Said {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60", "sh", "-c", script]).env("PACELINE", PACELINE);
        said(command.current_dir(self.path()))
    }
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output().expect("`timeout` of coreutils is needed");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let said = Said { code: output.status.code().unwrap_or(-1), stdout, stderr };
    assert!(!said.stderr.contains("panicked"), "a panic is never an answer: {said:?}");
    assert_ne!(said.code, 124, "it does not end: {said:?}");
    said
}

/// Whether a program can be run on this host.
pub fn has(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The value of these fields of every packet that passes the filter, as `tshark` sees them.
pub fn tshark(file: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("timeout");
    command.args(["60", "tshark", "-r", file, "-Y", filter, "-T", "fields"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    // A capture holds the beginnings of segments: what of a file's bytes looks like a protocol is none.
    command.args(["-d", "tcp.port==1-65535,data"]);
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let said = said(&mut command);
    let complaints: Vec<&str> =
        said.stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
    assert!(said.code == 0 && complaints.is_empty(), "{said:?}");
    said.stdout.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

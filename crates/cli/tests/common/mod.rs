//! Helpers of the tests: run the command `paceline` with a time limit, and collect its output.
#![allow(dead_code)] // every test program uses a part

pub mod emulation;
pub mod namespace;
pub mod testbed;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The program under test.
pub const PACELINE: &str = env!("CARGO_BIN_EXE_paceline");
/// A valid scenario that takes little time.
pub const GOOD: &str = "[run]\nduration = \"300 ms\"\nwarmup = \"50 ms\"\n\n[[station]]\ncount = 1\n";
/// Hang guard: a program or a condition that takes longer hangs. Chosen: many times what a slow machine
/// takes, since no test asserts how long something takes: a browser that opens twenty reports needs half a
/// minute, and three behind four processes that burn two cores.
pub const HANG_GUARD: Duration = Duration::from_secs(600);

/// Output and exit code of a program.
#[derive(Debug)]
pub struct Output {
    /// Exit code; -1 after a signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A temporary folder for one test, with a valid scenario `good.toml`.
pub struct TestDir {
    folder: TempDir,
}

impl TestDir {
    pub fn new() -> Self {
        let dir = Self { folder: TempDir::new().expect("a temporary folder can be made") };
        dir.write("good.toml", GOOD);
        dir
    }
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    /// The path of a file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.join(name), content).expect("the file can be written");
    }
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
    pub fn json(&self, name: &str) -> Value {
        parse_json(&self.read(name))
    }
    /// Fails if two files differ.
    pub fn assert_same(&self, one: &str, other: &str) {
        let read = |name: &str| fs::read(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (one_bytes, other_bytes) = (read(one), read(other));
        // At once, not byte by byte: the tests' own code is not optimised.
        if one_bytes != other_bytes {
            let at = one_bytes.iter().zip(&other_bytes).position(|(a, b)| a != b);
            let lengths = (one_bytes.len(), other_bytes.len());
            panic!("{other} differs from {one} at byte {at:?}; lengths: {lengths:?}");
        }
    }
    /// Paths of all files and folders in it, hidden ones included, in alphabetical order.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("the folder can be read") {
                let path = entry.expect("the folder can be read").path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                paths.push(path);
            }
        }
        paths.sort();
        paths
    }
    /// Runs `paceline` in the folder.
    pub fn paceline(&self, args: &[&str]) -> Output {
        run(with_time_limit(&[&[PACELINE], args].concat()).current_dir(self.path()))
    }
    /// Runs `paceline`, which must succeed without a message on stderr but the place of its results; gives
    /// stdout.
    pub fn paceline_ok(&self, args: &[&str]) -> String {
        let output = self.paceline(args);
        let silent = output.stderr.lines().all(|line| line.starts_with("results: "));
        assert!(output.code == 0 && silent, "{args:?}: {output:?}");
        output.stdout
    }
    /// Runs a shell script in the folder, with the program under test as `$PACELINE`.
    pub fn shell(&self, script: &str) -> Output {
        let mut command = with_time_limit(&["sh", "-c", script]);
        run(command.env("PACELINE", PACELINE).current_dir(self.path()))
    }
}

pub fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON: {error}: {text}"))
}

/// The arguments of `timeout` ahead of a command: it ends the command at the hang guard, with exit code 124.
pub fn time_limit() -> [String; 4] {
    ["timeout".into(), "-k".into(), "5".into(), HANG_GUARD.as_secs().to_string()]
}

fn with_time_limit(argv: &[&str]) -> Command {
    let [program, options @ ..] = time_limit();
    let mut command = Command::new(program);
    command.args(options).args(argv);
    command
}

/// Runs a command until it ends. Fails if it panics or hangs.
pub fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("`timeout` of coreutils is needed");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let output = Output { code: output.status.code().unwrap_or(-1), stdout, stderr };
    assert!(!output.stderr.contains("panicked"), "the program panicked: {output:?}");
    assert_ne!(output.code, 124, "the program hangs: {output:?}");
    output
}

pub fn has_program(program: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The values of some fields of every packet that matches a display filter of `tshark`.
pub fn tshark(file: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = with_time_limit(&["tshark", "-r", file, "-Y", filter, "-T", "fields"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    // Random payload may look like a protocol, and captures have the first bytes of segments only: decode no
    // payload.
    command.args(["-d", "tcp.port==1-65535,data"]);
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let output = run(&mut command);
    let complaints: Vec<&str> =
        output.stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
    assert!(output.code == 0 && complaints.is_empty(), "{output:?}");
    output.stdout.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

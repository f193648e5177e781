//! The control socket: requests a line each, answers in JSON, a line each; the connection ends with the answer.
//!
//! | request | answer |
//! |---|---|
//! | `status` | a [`Status`] |
//! | `flows` | lines `{"flows":[...]}` of [`FlowStatus`], the last `{"end":true}` |
//! | `devices` | `{"devices":[...]}`, those that have acknowledged most |
//! | `reload` | `{"reloaded":true}` |
//! | `stop [NANOSECONDS]` | `{"stopping":true}`, and at the end `{"ended":{"detached":N,"reset":N}}` |
//! | `capture SERVER MOBILE PACKETS NANOSECONDS` | `{"capturing":true}`, then pcapng |
//!
//! What cannot be done is answered by `{"error":"..."}`.

use super::capture;
use super::desk::Desk;
use super::metrics::TOP;
use super::status::{FlowStatus, Status};
use crate::clock;
use anyhow::{Context, bail};
use paceline_net::{Duration, FlowKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time;

/// Where sockets are if nothing else is said.
pub const FOLDER: &str = "/run/paceline";
/// A request has at most so many bytes.
const MAX_REQUEST: u64 = 1024;
/// Requests at a time.
const MAX_CLIENTS: usize = 32;
/// A client that is slower is left.
const PATIENCE: time::Duration = time::Duration::from_secs(5);

/// An open control socket. Its file goes when it is dropped.
pub struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens at `path`, or in the usual folder under a name made of the interfaces'.
    pub fn open(path: Option<&Path>, (server, mobile): (&str, &str)) -> anyhow::Result<(Self, UnixListener)> {
        let usual = |end: &str| Path::new(FOLDER).join(format!("{server}-{mobile}{end}.sock"));
        let path = match path {
            Some(path) if is_alive(path) => bail!("control = {:?}: a gateway listens there", path.display()),
            Some(path) => path.to_owned(),
            None => {
                fs::create_dir_all(FOLDER).with_context(|| format!("cannot make {FOLDER}"))?;
                // In another network namespace, interfaces may have the same names.
                let taken = is_alive(&usual(""));
                usual(&if taken { format!("-{}", std::process::id()) } else { String::new() })
            }
        };
        let context = || format!("cannot listen at {}", path.display());
        match fs::metadata(&path) {
            Ok(left) if left.file_type().is_socket() => fs::remove_file(&path).with_context(context)?,
            Ok(_) => bail!("control = {:?}: allowed: a socket, or nothing that is there", path.display()),
            Err(_) => {} // what else is wrong is found below
        }
        let listener = UnixListener::bind(&path).with_context(context)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).with_context(context)?;
        Ok((Self { path }, listener))
    }
    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Answers what comes, a thread for each request.
    pub fn serve(listener: UnixListener, desk: Arc<Desk>) -> anyhow::Result<()> {
        let clients = Arc::new(AtomicUsize::new(0));
        let accept = move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    clock::pause(Duration::from_millis(100));
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
                    continue; // it is closed
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let (desk, own) = (Arc::clone(&desk), Arc::clone(&clients));
                let work = move || {
                    let _ = answer(stream, &desk); // who asked may be gone
                    own.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().name("request".into()).spawn(work).is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        thread::Builder::new().name("control".into()).spawn(accept).context("cannot start a thread")?;
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_alive(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

fn answer(mut stream: UnixStream, desk: &Desk) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_REQUEST)).read_line(&mut line)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["status"] => say(&mut stream, &desk.status())?,
        ["devices"] => writeln!(stream, "{}", desk.top_devices(TOP))?,
        ["flows"] => {
            desk.flows(|flows| say(&mut stream, &Flows { flows, ..Flows::default() }).is_ok());
            say(&mut stream, &serde_json::json!({ "end": true }))?;
        }
        ["reload"] => match desk.reload() {
            Ok(()) => say(&mut stream, &serde_json::json!({ "reloaded": true }))?,
            Err(problem) => refuse(&mut stream, &problem)?,
        },
        ["stop"] => stop(stream, desk, None)?,
        ["stop", limit] => match limit.parse() {
            Ok(ns) => stop(stream, desk, Some(Duration::from_nanos(ns)))?,
            Err(_) => refuse(&mut stream, "stop: allowed: nanoseconds")?,
        },
        ["capture", server, mobile, packets, time] => {
            let parsed = (server.parse(), mobile.parse(), packets.parse(), time.parse());
            let (Ok(server), Ok(mobile), Ok(packets), Ok(time)) = parsed else {
                return refuse(
                    &mut stream,
                    "capture: allowed: two addresses with ports, packets, nanoseconds",
                );
            };
            capture(stream, desk, (server, mobile), (packets, Duration::from_nanos(time)))?;
        }
        _ => refuse(&mut stream, "allowed: status, flows, devices, reload, stop, capture")?,
    }
    Ok(())
}

/// A line of the answer to `flows`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Flows {
    flows: Vec<FlowStatus>,
    #[serde(skip_serializing)]
    end: bool,
    #[serde(skip_serializing)]
    error: Option<String>,
}

/// A line, in one piece: each piece is a system call.
fn say(stream: &mut UnixStream, what: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(Into::into)
}

fn refuse(stream: &mut UnixStream, problem: &str) -> anyhow::Result<()> {
    say(stream, &serde_json::json!({ "error": problem }))
}

fn stop(mut stream: UnixStream, desk: &Desk, limit: Option<Duration>) -> anyhow::Result<()> {
    say(&mut stream, &serde_json::json!({ "stopping": true }))?;
    desk.ask_to_stop(limit, stream);
    Ok(())
}

fn capture(
    mut stream: UnixStream,
    desk: &Desk,
    (server, mobile): (SocketAddr, SocketAddr),
    (packets, time): (u64, Duration),
) -> anyhow::Result<()> {
    let key =
        FlowKey { src: server.ip(), dst: mobile.ip(), src_port: server.port(), dst_port: mobile.port() };
    let (packets, time) = (packets.min(capture::MAX_PACKETS), time.min(capture::MAX_TIME));
    let Some(captured) = desk.capture(key, time) else {
        return refuse(&mut stream, &format!("{server}-{mobile}: no such connection is accelerated"));
    };
    say(&mut stream, &serde_json::json!({ "capturing": true }))?;
    capture::write(stream, &captured, packets, time)
}

/// The other end: a request to a gateway.
pub struct Client {
    lines: BufReader<UnixStream>,
}

impl Client {
    /// Finds the gateway at `path`, or the only one in the usual folder.
    pub fn find(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path {
            let stream = UnixStream::connect(path);
            let stream = stream.with_context(|| format!("no gateway listens at {}", path.display()))?;
            return Ok(Self { lines: BufReader::new(stream) });
        }
        let entries = fs::read_dir(FOLDER).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "sock"));
        paths.sort();
        let open = |path: &PathBuf| Some((path.clone(), UnixStream::connect(path).ok()?));
        let mut found: Vec<(PathBuf, UnixStream)> = paths.iter().filter_map(open).collect();
        match (found.len(), paths.first()) {
            (0, None) => {
                bail!("no gateway runs here: there is no socket in {FOLDER}; --control names another")
            }
            (0, Some(path)) => {
                bail!("no gateway runs here that this user may ask: nobody answers at {}", path.display())
            }
            (1, _) => Ok(Self { lines: BufReader::new(found.remove(0).1) }),
            _ => {
                let names: Vec<String> = found.iter().map(|(path, _)| path.display().to_string()).collect();
                bail!("several gateways run here: choose by --control one of {}", names.join(", "))
            }
        }
    }
    /// Asks; the answer comes by lines.
    pub fn ask(&mut self, request: &str) -> anyhow::Result<()> {
        writeln!(self.lines.get_mut(), "{request}").context("the gateway does not listen")
    }
    /// The next line of the answer, parsed; none at the end. An answer that is an error is an error.
    pub fn line(&mut self) -> anyhow::Result<Option<serde_json::Value>> {
        let Some(value) = self.read::<serde_json::Value>()? else { return Ok(None) };
        match value.get("error").and_then(|error| error.as_str()) {
            Some(error) => bail!("{error}"),
            None => Ok(Some(value)),
        }
    }
    fn read<T: DeserializeOwned>(&mut self) -> anyhow::Result<Option<T>> {
        let mut line = String::new();
        if self.lines.read_line(&mut line).context("the gateway does not answer")? == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line).map(Some).context("the gateway's answer is not what was asked for")
    }
    /// The next line, which has to come.
    pub fn answer(&mut self) -> anyhow::Result<serde_json::Value> {
        self.line()?.context("the gateway ended without an answer")
    }
    /// What comes behind the lines.
    pub fn rest(&mut self) -> &mut impl Read {
        &mut self.lines
    }
    /// Status of the gateway.
    pub fn status(&mut self) -> anyhow::Result<Status> {
        self.ask("status")?;
        serde_json::from_value(self.answer()?).context("the gateway is of another version")
    }
    /// All its connections.
    pub fn flows(&mut self) -> anyhow::Result<Vec<FlowStatus>> {
        self.ask("flows")?;
        let mut all = Vec::new();
        loop {
            let line: Flows = self.read()?.context("the gateway ended without an answer")?;
            if let Some(error) = line.error {
                bail!("{error}");
            }
            if line.end {
                return Ok(all);
            }
            all.extend(line.flows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_socket_that_was_left_gives_way_to_a_new_one() {
        let folder = std::env::temp_dir().join(format!("paceline-control-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, socket) = (folder.join("box.toml"), folder.join("left.sock"));
        fs::write(&file, "server").unwrap();
        drop(UnixListener::bind(&socket).unwrap());
        let open = |path: &Path| Control::open(Some(path), ("eth0", "eth1")).map(|_| ());
        let refused = open(&file).map_err(|error| format!("{error:#}"));
        let kept = fs::read_to_string(&file);
        let opened = open(&socket);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(kept.unwrap(), "server");
        assert!(refused.unwrap_err().contains("box.toml\": allowed: "));
        assert!(opened.is_ok(), "{opened:?}");
    }
}

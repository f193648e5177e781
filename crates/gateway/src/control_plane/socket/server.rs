//! The control socket: a Unix stream socket on which a running gateway answers the requests of
//! [`super::protocol`].

use super::protocol::{ExperimentRequest, Request, Response};
use crate::config::CONTROL_FOLDER;
use crate::control_plane::capture;
use crate::control_plane::operations::{ControlPlane, TOP_DEVICES};
use crate::service::{peer, privileges};
use anyhow::{Context, bail};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Group, User, geteuid};
use paceline_linux::clock;
use paceline_net::{Duration, FlowKey};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time;

/// Longest request line. Chosen: the longest valid request, a capture between IPv6 addresses, has about 200
/// bytes.
const MAX_REQUEST_BYTES: u64 = 1024;
/// Requests answered at the same time; further ones are refused. Chosen: far more than operators have,
/// few enough threads to be harmless.
const MAX_CLIENTS: usize = 32;
/// A client that does not send its request, or does not read its answer, for this long is disconnected.
/// Chosen: longer than a person notices, so that a stalled client does not keep a thread.
const CLIENT_TIMEOUT: time::Duration = time::Duration::from_secs(5);
/// Pause after a failed accept(2). Chosen: the usual error is a lack of descriptors, which lasts.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The accounts that may use the socket, beside root and the user of this process.
#[derive(Clone, Copy, Default)]
pub struct Accounts<'a> {
    /// The user of the gateway after the set-up.
    pub user: Option<&'a User>,
    /// Members may do everything.
    pub control: Option<&'a Group>,
    /// Members may look.
    pub view: Option<&'a Group>,
}

/// The rights of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    All,
    View,
    Nothing,
}

/// The groups that decide on the rights of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles {
    control: Option<Gid>,
    view: Option<Gid>,
}

/// An open control socket. Its file is removed when it is dropped.
pub struct ControlSocket {
    path: PathBuf,
    replaced: bool,
}

impl ControlSocket {
    /// Listens at `path`, or else at `default`, which is in the default folder.
    /// The socket belongs to the user of the gateway after the set-up, and to the group whose members may use
    /// it.
    pub fn open(
        path: Option<&Path>,
        default: &Path,
        accounts: Accounts<'_>,
    ) -> anyhow::Result<(Self, UnixListener)> {
        let path = match path {
            Some(path) if is_alive(path) => bail!("control = {:?}: a gateway listens there", path.display()),
            Some(path) => path.to_owned(),
            None => {
                let context = || format!("cannot make {CONTROL_FOLDER}");
                fs::create_dir_all(CONTROL_FOLDER).with_context(context)?;
                let folder = open_as(Path::new(CONTROL_FOLDER), OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW)
                    .with_context(context)?;
                // Another user has to remove the socket at the end.
                privileges::give(&folder, accounts.user, None).with_context(context)?;
                // In another network namespace, interfaces may have the same names.
                let name = default.file_stem().unwrap_or_default().to_string_lossy();
                let other = || default.with_file_name(format!("{name}-{}.sock", std::process::id()));
                if is_alive(default) { other() } else { default.to_owned() }
            }
        };
        let (listener, replaced) =
            bind(&path, accounts).with_context(|| format!("cannot listen at {}", path.display()))?;
        Ok((Self { path, replaced }, listener))
    }
    /// Whether the socket of a gateway was there that did not end in order.
    pub fn has_replaced(&self) -> bool {
        self.replaced
    }
    /// The socket's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Answers requests, each in a thread of its own.
    pub fn serve(
        listener: UnixListener,
        control_plane: Arc<ControlPlane>,
        roles: Roles,
    ) -> anyhow::Result<()> {
        let clients = Arc::new(AtomicUsize::new(0));
        let accept = move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else {
                    clock::pause(ACCEPT_PAUSE);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
                    // The empty buffer of a new connection has room for the line.
                    let problem =
                        format!("refused: {MAX_CLIENTS} requests are being answered; try again later");
                    let _ = Response::Error(problem).write_line(&mut stream);
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let (control_plane, clients_here) = (Arc::clone(&control_plane), Arc::clone(&clients));
                let work = move || {
                    let _ = answer(stream, &control_plane, roles); // the client may have disconnected
                    clients_here.fetch_sub(1, Ordering::Relaxed);
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

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_alive(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

/// Opens a path as a reference to the file (O_PATH). By open(2) itself: musl's access modes contain O_PATH,
/// and `OpenOptions` takes them out of its flags.
fn open_as(path: &Path, flags: OFlag) -> std::io::Result<File> {
    Ok(File::from(open(path, OFlag::O_PATH | OFlag::O_CLOEXEC | flags, Mode::empty())?))
}

/// Makes the socket, and gives it to its accounts. Whether it replaces one to which nobody listens. The owner
/// of the folder may put other files in the place of folder and socket at any time: both are opened, and the
/// opened ones are used.
fn bind(path: &Path, accounts: Accounts<'_>) -> anyhow::Result<(UnixListener, bool)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder =
        open_as(parent, OFlag::O_DIRECTORY).with_context(|| format!("cannot open {}", parent.display()))?;
    let name = path.file_name().context("the path has no name")?;
    let path_there = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    let stale = match fs::symlink_metadata(&path_there) {
        Ok(found) if found.file_type().is_socket() => true,
        Ok(_) => bail!("control = {:?}: allowed: a socket, or nothing that is there", path.display()),
        Err(_) => false, // bind(2) reports any other problem
    };
    if stale {
        fs::remove_file(&path_there)?;
    }
    let listener = UnixListener::bind(&path_there)?;
    let socket = open_as(&path_there, OFlag::O_NOFOLLOW)?;
    let made = socket.metadata()?;
    // A hard link could be to any other socket.
    if !made.file_type().is_socket() || made.uid() != geteuid().as_raw() || made.nlink() != 1 {
        bail!("somebody else has put another file in its place");
    }
    let Accounts { user, control, view } = accounts;
    privileges::give(&socket, user, control.or(view))?;
    let mode = match (control, view) {
        (None, None) => 0o600,
        (Some(_), None) | (None, Some(_)) => 0o660,
        // One group owns the file: every client may connect, and its own groups decide.
        (Some(_), Some(_)) => 0o666,
    };
    let opened = format!("/proc/self/fd/{}", socket.as_raw_fd());
    fs::set_permissions(opened, fs::Permissions::from_mode(mode))?;
    Ok((listener, stale))
}

impl Roles {
    /// The groups of the accounts.
    pub fn new(accounts: Accounts<'_>) -> Self {
        Self { control: accounts.control.map(|group| group.gid), view: accounts.view.map(|group| group.gid) }
    }
    /// The rights of a client. Without a `view_group`, the rights of the file decide.
    fn of(&self, stream: &UnixStream) -> Role {
        let Some(view) = self.view else { return Role::All };
        let (Ok(user), Ok(groups)) = (peer::user(stream.as_fd()), peer::groups(stream.as_fd())) else {
            return Role::Nothing;
        };
        if user.is_root() || user == geteuid() || self.control.is_some_and(|own| groups.contains(&own)) {
            Role::All
        } else if groups.contains(&view) {
            Role::View
        } else {
            Role::Nothing
        }
    }
}

impl Role {
    /// Whether a request changes nothing and shows no packets.
    fn allows(self, request: &Request) -> Result<(), String> {
        let looks = matches!(
            request,
            Request::Status
                | Request::Flows
                | Request::Devices
                | Request::Experiment(ExperimentRequest::Report)
        );
        match self {
            Self::All => Ok(()),
            Self::View if looks => Ok(()),
            Self::View => Err("refused: allowed for members of view_group: status, flows, devices, \
                               the experiment's report"
                .into()),
            Self::Nothing => Err("refused: allowed for members of control_group and view_group".into()),
        }
    }
}

fn answer(mut stream: UnixStream, control_plane: &ControlPlane, roles: Roles) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut line = Vec::new();
    BufReader::new((&stream).take(MAX_REQUEST_BYTES)).read_until(b'\n', &mut line)?;
    let request = match parse(&line) {
        Ok(request) => request,
        Err(problem) => return Response::Error(problem).write_line(&mut stream),
    };
    if let Err(problem) = roles.of(&stream).allows(&request) {
        return Response::Error(problem).write_line(&mut stream);
    }
    match request {
        Request::Status => Response::Status(Box::new(control_plane.status())).write_line(&mut stream),
        Request::Devices => Response::Devices(control_plane.top_devices(TOP_DEVICES)).write_line(&mut stream),
        Request::Flows => {
            control_plane.flows(|flows| Response::Flows(flows).write_line(&mut stream).is_ok());
            Response::End.write_line(&mut stream)
        }
        Request::Reload => {
            let reloaded = control_plane.reload();
            reloaded.map_or_else(Response::Error, |()| Response::Reloaded).write_line(&mut stream)
        }
        Request::Stop { limit } => {
            Response::Stopping.write_line(&mut stream)?;
            control_plane.request_stop(limit, stream);
            Ok(())
        }
        Request::Experiment(request) => {
            let done = control_plane.experiment(&request);
            let response =
                done.map_or_else(Response::Error, |status| Response::Experiment(status.map(Box::new)));
            response.write_line(&mut stream)
        }
        Request::Capture { server, mobile, packets, time } => {
            capture(stream, control_plane, (server, mobile), (packets, time))
        }
    }
}

/// Parses a request line. The error names the fault and the allowed requests.
fn parse(line: &[u8]) -> Result<Request, String> {
    if line.len() as u64 == MAX_REQUEST_BYTES && line.last() != Some(&b'\n') {
        return Err(format!("request refused: allowed: a line of up to {MAX_REQUEST_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| {
        format!(
            "request refused: {error}; allowed: one JSON line, \"status\", \"flows\", \"devices\", \"reload\", \
             {{\"stop\":{{\"limit\":TIME}}}}, {{\"experiment\":\"report\"}}, {{\"experiment\":\"stop\"}}, \
             {{\"experiment\":{{\"start\":{{\"share\":SHARE, \"duration\":TIME}}}}}} or {{\"capture\":{{\"server\":..., \"mobile\":..., \"packets\":..., \
             \"time\":TIME}}}}"
        )
    })
}

fn capture(
    mut stream: UnixStream,
    control_plane: &ControlPlane,
    (server, mobile): (SocketAddr, SocketAddr),
    (packets, time): (u64, Duration),
) -> anyhow::Result<()> {
    let key =
        FlowKey { src: server.ip(), dst: mobile.ip(), src_port: server.port(), dst_port: mobile.port() };
    let (packets, time) = (packets.min(capture::MAX_PACKETS), time.min(capture::MAX_TIME));
    let Some(captured) = control_plane.capture(key, time) else {
        let problem = format!("{server}-{mobile}: no such connection is accelerated");
        return Response::Error(problem).write_line(&mut stream);
    };
    Response::Capturing.write_line(&mut stream)?;
    capture::write(stream, &captured, packets, time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_experiment::Design;

    #[test]
    fn a_stale_socket_is_replaced_and_any_other_file_is_kept() {
        let folder = std::env::temp_dir().join(format!("paceline-control-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, socket) = (folder.join("box.toml"), folder.join("stale.sock"));
        fs::write(&file, "server").unwrap();
        drop(UnixListener::bind(&socket).unwrap());
        let open = |path: &Path| {
            let opened = ControlSocket::open(Some(path), Path::new("unused"), Accounts::default());
            opened.map(|(opened, _)| opened.has_replaced())
        };
        let refused = open(&file).map_err(|error| format!("{error:#}"));
        let kept = fs::read_to_string(&file);
        let opened = [open(&socket), open(&folder.join("new.sock"))];
        // A link is neither followed nor replaced.
        let link = folder.join("link.sock");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let linked = open(&link).map_err(|error| format!("{error:#}"));
        let still = fs::read_to_string(&file);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((kept.unwrap().as_str(), still.unwrap().as_str()), ("server", "server"));
        assert!(refused.unwrap_err().contains("box.toml\": allowed: "));
        assert!(linked.unwrap_err().contains("link.sock\": allowed: "));
        assert_eq!(opened.map(Result::unwrap), [true, false], "a stale one is replaced");
    }

    #[test]
    fn those_who_may_look_cannot_change_anything() {
        let allowed = |request: &Request| {
            [Role::All, Role::View, Role::Nothing].map(|role| role.allows(request).is_ok())
        };
        let report = Request::Experiment(ExperimentRequest::Report);
        for request in [Request::Status, Request::Flows, Request::Devices, report] {
            assert_eq!(allowed(&request), [true, true, false], "{request:?}");
        }
        let start = ExperimentRequest::Start {
            share: 0.5,
            duration: Duration::from_secs(60),
            seed: None,
            design: Design::Parallel,
            practical: None,
        };
        let capture =
            parse(br#"{"capture":{"server":"10.0.0.1:1","mobile":"10.0.0.2:2","packets":1,"time":"1 s"}}"#);
        let stop = Request::Stop { limit: None };
        let experiments = [start, ExperimentRequest::Stop].map(Request::Experiment);
        for request in [Request::Reload, stop, capture.unwrap()].into_iter().chain(experiments) {
            assert_eq!(allowed(&request), [true, false, false], "{request:?}");
        }
    }

    #[test]
    fn a_malformed_request_is_refused_with_its_fault_and_the_allowed_requests() {
        for (line, fault) in [
            (&b""[..], "EOF"),
            (b"status\n", "expected value"),
            (b"\"restart\"\n", "unknown variant `restart`"),
            (b"{\"status\":{}}\n", "status"),
            (b"{\"stop\":{\"limit\":5}}\n", "quantity with its unit"),
            (b"{\"stop\":{\"limit\":\"10 parsecs\"}}\n", "parsecs"),
            (b"{\"stop\":{\"hurry\":true}}\n", "unknown field `hurry`"),
            (b"{\"capture\":{\"server\":\"here\"}}\n", "socket address"),
            (b"\"status\" \"stop\"\n", "trailing"),
            (b"\"stat\xff\"\n", "invalid"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(fault) && problem.contains("allowed: "), "{problem}");
        }
        let problem = parse(&[b'"'; MAX_REQUEST_BYTES as usize]).unwrap_err();
        assert!(problem.contains("up to 1024 bytes"), "{problem}");
        assert_eq!(parse(b"\"status\"\n"), Ok(Request::Status));
        assert_eq!(parse(b"{\"stop\":{}}"), Ok(Request::Stop { limit: None }));
    }
}

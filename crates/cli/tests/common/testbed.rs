//! A client, a middlebox with two interfaces, and a server, each a network namespace, for tests of `paceline
//! gateway`.
//!
//! ```text
//! client cli0 -- mob middlebox srv -- srv0 server
//! ```

use super::namespace::{Namespace, Program, exclusive, have_programs, skip, wait_for};
use super::{Output, PACELINE, TestDir, parse_json, run, time_limit};
use serde_json::Value;
use std::process::Command;
use std::sync::MutexGuard;

pub const CLIENT: &str = "10.9.0.2";
pub const SERVER: &str = "10.9.0.1";
pub const SERVER6: &str = "fd09::1";
/// The server's files over both versions of IP.
pub const HTTP: &str = "http://10.9.0.1:8000";
pub const HTTP6: &str = "http://[fd09::1]:8000";
/// The smallest configuration of a gateway: its two interfaces.
pub const INTERFACES: &str = "server = \"srv\"\nmobile = \"mob\"\n";
/// Setting of `drain` for tests in which no connection may be reset: long, so that a slow machine delivers
/// everything.
pub const LONG_DRAIN: &str = "drain = \"120 s\"\n";
/// A Python program that receives one upload into the file `uploaded`.
const UPLOAD_SERVER: &str = "python3 -c 'import socket,shutil
s=socket.create_server((\"::\",9000),family=socket.AF_INET6,dualstack_ipv6=True)
c,_=s.accept(); f=open(\"uploaded\",\"wb\"); shutil.copyfileobj(c.makefile(\"rb\"),f); f.close(); c.close()'";

/// The three namespaces, and a folder that all of them share.
pub struct Testbed {
    pub client: Namespace,
    pub middlebox: Namespace,
    pub server: Namespace,
    pub dir: TestDir,
    _exclusive: MutexGuard<'static, ()>,
}

impl Testbed {
    /// Makes the namespaces; none if this host cannot run a gateway or lacks a program.
    pub fn new(programs: &[&str]) -> Option<Self> {
        let doctor = run(Command::new(PACELINE).arg("doctor"));
        let gateway = doctor.stdout.lines().find(|line| line.starts_with("gateway: ")).unwrap_or("");
        if !gateway.starts_with("gateway: yes") {
            skip(gateway);
            return None;
        }
        if !have_programs(&[&["unshare", "nsenter", "ip", "ss", "timeout"], programs].concat()) {
            return None;
        }
        let exclusive = exclusive();
        let [client, middlebox, server] = std::array::from_fn(|_| Namespace::new());
        let testbed = Self { client, middlebox, server, dir: TestDir::new(), _exclusive: exclusive };
        testbed.add_links();
        Some(testbed)
    }
    fn add_links(&self) {
        let ends = [
            (&self.client, "cli0", "mob", CLIENT, "fd09::2"),
            (&self.server, "srv0", "srv", SERVER, SERVER6),
        ];
        for (end, name, port, v4, v6) in ends {
            let (end_id, middlebox) = (end.id(), self.middlebox.id());
            let veth =
                format!("ip link add {name} netns {end_id} type veth peer name {port} netns {middlebox}");
            self.shell(end, &veth);
            self.shell(end, &format!("ip link set {name} up; ip addr add {v4}/24 dev {name}"));
            self.shell(end, &format!("ip -6 addr add {v6}/64 dev {name} nodad"));
            self.shell(&self.middlebox, &format!("ip link set {port} up"));
        }
    }
    /// Makes the middlebox a router between the client's network and the server's, which becomes 10.20.0.0/24
    /// and fd20::/64; the server's addresses there are 10.20.0.1 and fd20::1.
    pub fn route(&self) {
        self.shell(
            &self.middlebox,
            "ip addr add 10.9.0.254/32 dev mob; ip route add 10.9.0.2 dev mob; ip route add 10.20.0.1 dev srv; \
             ip addr add 10.20.0.254/32 dev srv; ip -6 addr add fd09::fe/128 dev mob nodad; \
             ip -6 addr add fd20::fe/128 dev srv nodad; ip -6 route add fd09::2 dev mob; ip -6 route add fd20::1 dev srv; \
             echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
        );
        self.shell(
            &self.client,
            "ip route add 10.20.0.0/24 via 10.9.0.254; ip -6 route add fd20::/64 via fd09::fe",
        );
        self.shell(
            &self.server,
            "ip addr flush dev srv0; ip addr add 10.20.0.1/24 dev srv0; ip route add default via 10.20.0.254; \
             ip -6 addr add fd20::1/64 dev srv0 nodad; ip -6 route add default via fd20::fe",
        );
    }
    /// Runs a shell command in a namespace; it must succeed.
    pub fn shell(&self, namespace: &Namespace, line: &str) -> Output {
        let output = self.try_shell(namespace, line);
        assert_eq!(output.code, 0, "{line}: {output:?}");
        output
    }
    pub fn try_shell(&self, namespace: &Namespace, line: &str) -> Output {
        let mut command = namespace.command();
        run(command.args(time_limit()).args(["sh", "-c", line]).current_dir(self.dir.path()))
    }
    pub fn start(&self, namespace: &Namespace, name: &str, line: &str) -> Program {
        let mut command = namespace.command();
        command.args(["sh", "-c", &format!("exec {line}")]).current_dir(self.dir.path());
        Program::spawn(&self.dir, name, &mut command)
    }
    /// Starts a server and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, line: &str) -> Program {
        self.serve_in(&self.server, name, port, line)
    }
    /// Starts a server in any of the namespaces and waits until it listens on `port`.
    pub fn serve_in(&self, namespace: &Namespace, name: &str, port: u16, line: &str) -> Program {
        let program = self.start(namespace, name, line);
        let listeners = format!("ss -Hlnt 'sport = :{port}'");
        wait_for(name, || (!self.shell(namespace, &listeners).stdout.is_empty()).then_some(()));
        program
    }
    /// Serves the folder on port 8000, over IPv4 and IPv6.
    pub fn serve_files(&self) -> Program {
        self.serve("http", 8000, "python3 -m http.server --bind :: 8000")
    }
    /// A download of `file` by a client that never reads, in a small receive buffer: data stay exposed, that
    /// is acknowledged to the server and not by the client, as long as the program runs.
    pub fn exposed_download(&self) -> Program {
        const CLIENT: &str = "import socket,time
s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_RCVBUF,16384); s.connect((\"10.9.0.1\",8000))
s.sendall(b\"GET /file HTTP/1.0\\r\\n\\r\\n\"); time.sleep(600)";
        let download = self.start(&self.client, "exposed", &format!("python3 -c '{CLIENT}'"));
        wait_for("exposed data", || (self.status()["exposure"].as_u64() > Some(20_000)).then_some(()));
        download
    }
    /// A configuration with the control socket `ctl`, and more settings.
    pub fn config(&self, more: &str) -> String {
        format!("control = \"{}\"\n{INTERFACES}{more}", self.dir.join("ctl").display())
    }
    /// Starts the gateway and waits until it accelerates.
    pub fn gateway(&self, config: &str) -> Program {
        self.dir.write("gateway.toml", config);
        self.start_gateway(&format!("{PACELINE} gateway gateway.toml --json"))
    }
    /// Starts a gateway by a command line of its own and waits until it accelerates.
    pub fn start_gateway(&self, line: &str) -> Program {
        let mut gateway = self.start(&self.middlebox, "gateway", line);
        wait_for_message(&mut gateway, "accelerating");
        gateway
    }
    /// Sends a command to the control socket `ctl`: `paceline gateway ARGS`.
    pub fn control(&self, args: &[&str]) -> Output {
        self.dir.paceline(&[&["gateway"], args, &["--control", "ctl"]].concat())
    }
    /// The status of a gateway with the control socket `ctl`.
    pub fn status(&self) -> Value {
        let output = self.control(&["status", "--json"]);
        assert_eq!(output.code, 0, "{output:?}");
        parse_json(&output.stdout)
    }
    /// One counter of a running gateway with the control socket `ctl`.
    pub fn counter(&self, name: &str) -> u64 {
        counter(&self.status()["counters"], name)
    }
    /// Ends the gateway by SIGTERM; gives its counters.
    pub fn stop(&self, mut gateway: Program) -> Value {
        gateway.signal("TERM");
        let output = gateway.finish();
        assert_eq!(output.code, 0, "{output:?}");
        parse_json(&output.stdout)
    }
    /// Downloads a file with curl; it must arrive byte-exact.
    pub fn download(&self, file: &str, url: &str) {
        self.download_from(None, file, url);
    }
    /// Downloads a file with curl from one of the client's addresses; it must arrive byte-exact.
    pub fn download_from(&self, address: Option<&str>, file: &str, url: &str) {
        let name = "downloaded";
        let interface = address.map_or(String::new(), |address| format!("--interface {address}"));
        let output = self.shell(&self.client, &format!("curl -sS {interface} -o {name} '{url}/{file}'"));
        assert_eq!(output.stderr, "");
        self.dir.assert_same(file, name);
    }
    /// Downloads a file; whether the connection was accelerated. Needs the control socket `ctl`.
    pub fn accelerates(&self, file: &str, url: &str) -> bool {
        let before = self.counter("flows");
        self.download(file, url);
        self.counter("flows") > before
    }
    /// Uploads the file named `file`; it must arrive byte-exact.
    pub fn upload(&self, to: &str) {
        let _ = std::fs::remove_file(self.dir.join("uploaded"));
        let mut server = self.serve("upload-server", 9000, UPLOAD_SERVER);
        let send = format!(
            "python3 -c 'import socket; s=socket.create_connection((\"{to}\",9000)); \
             s.sendfile(open(\"file\",\"rb\")); s.shutdown(1); s.recv(1)'"
        );
        self.shell(&self.client, &send);
        assert_eq!(server.finish().code, 0);
        self.dir.assert_same("file", "uploaded");
    }
    /// A counter of a namespace's TCP (`TcpExt` of `/proc/net/netstat`), such as `TCPSynRetrans`.
    pub fn kernel_tcp_counter(&self, namespace: &Namespace, name: &str) -> u64 {
        let text = self.shell(namespace, "cat /proc/net/netstat").stdout;
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        let (_, value) = pairs.find(|(other, _)| *other == name).unwrap_or_else(|| panic!("no {name}"));
        value.parse().expect("a number")
    }
}

/// Waits until a program has written a text to stderr.
pub fn wait_for_message(program: &mut Program, text: &str) {
    wait_for(text, || program.output_so_far().stderr.contains(text).then_some(()));
}

/// Waits until a program has written a text to stderr `count` times.
pub fn wait_for_messages(program: &mut Program, text: &str, count: usize) {
    wait_for(text, || (program.output_so_far().stderr.matches(text).count() == count).then_some(()));
}

pub fn counter(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}: {counters}"))
}

//! A client, a box with two interfaces and a server, each a network namespace, for the gateway.

use super::outer::{Holder, Program, TURN, have, skip, until};
use super::{PACELINE, Place, Said, said};
use serde_json::Value;
use std::process::Command;
use std::sync::MutexGuard;
use std::time::Duration;

/// Addresses of client and server.
pub const CLIENT: &str = "10.9.0.2";
pub const SERVER: &str = "10.9.0.1";
pub const SERVER6: &str = "fd09::1";
/// Receives one upload into a file.
const SINK: &str = "python3 -c 'import socket,shutil
s=socket.create_server((\"::\",9000),family=socket.AF_INET6,dualstack_ipv6=True)
c,_=s.accept(); f=open(\"uploaded\",\"wb\"); shutil.copyfileobj(c.makefile(\"rb\"),f); f.close(); c.close()'";
/// The gateway between the two.
pub const PLAIN: &str = "server = \"srv\"\nmobile = \"mob\"\n";

/// The three namespaces: `cli0` - `mob` and `srv` - `srv0`.
pub struct Bed {
    pub client: Holder,
    pub middle: Holder,
    pub server: Holder,
    /// Files of this test.
    pub place: Place,
    _turn: MutexGuard<'static, ()>,
}

impl Bed {
    /// Makes them; none if this host cannot run a gateway or lacks a program.
    pub fn new(programs: &[&str]) -> Option<Self> {
        let doctor = said(Command::new(PACELINE).arg("doctor"));
        let gateway = doctor.stdout.lines().find(|line| line.starts_with("gateway: ")).unwrap_or("");
        if !gateway.starts_with("gateway: yes") {
            skip(gateway);
            return None;
        }
        if !have(&[&["unshare", "nsenter", "ip", "ss", "timeout"], programs].concat()) {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let [client, middle, server] = std::array::from_fn(|_| Holder::new());
        let bed = Self { client, middle, server, place: Place::new(), _turn: turn };
        bed.wire();
        Some(bed)
    }
    fn wire(&self) {
        let ends = [
            (&self.client, "cli0", "mob", CLIENT, "fd09::2"),
            (&self.server, "srv0", "srv", SERVER, SERVER6),
        ];
        for (end, name, port, v4, v6) in ends {
            let (end_id, middle) = (end.id(), self.middle.id());
            let veth = format!("ip link add {name} netns {end_id} type veth peer name {port} netns {middle}");
            self.shell(end, &veth);
            self.shell(end, &format!("ip link set {name} up; ip addr add {v4}/24 dev {name}"));
            self.shell(end, &format!("ip -6 addr add {v6}/64 dev {name} nodad"));
            self.shell(&self.middle, &format!("ip link set {port} up"));
        }
    }
    /// Makes the box a router between the client's network and another one, 10.20.0.0/24 and fd20::/64, in which the server
    /// is number 1.
    pub fn route(&self) {
        self.shell(
            &self.middle,
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
    /// Runs a shell command, which has to end well, in a namespace.
    pub fn shell(&self, place: &Holder, line: &str) -> Said {
        let said = self.try_shell(place, line);
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said
    }
    /// Runs a shell command in a namespace.
    pub fn try_shell(&self, place: &Holder, line: &str) -> Said {
        said(
            place
                .command()
                .args(["timeout", "-k", "5", "60", "sh", "-c", line])
                .current_dir(self.place.path()),
        )
    }
    /// Starts a program in a namespace.
    pub fn start(&self, place: &Holder, name: &str, line: &str) -> Program {
        let mut command = place.command();
        command.args(["sh", "-c", &format!("exec {line}")]).current_dir(self.place.path());
        Program::spawn(&self.place, name, &mut command)
    }
    /// Starts a server and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, line: &str) -> Program {
        let program = self.start(&self.server, name, line);
        let listens = format!("ss -Hlnt 'sport = :{port}'");
        until(name, || (!self.shell(&self.server, &listens).stdout.is_empty()).then_some(()));
        program
    }
    /// Serves the folder on port 8000, IPv4 and IPv6.
    pub fn serve_files(&self) -> Program {
        self.serve("http", 8000, "python3 -m http.server --bind :: 8000")
    }
    /// Starts the gateway and waits until it takes packets.
    pub fn gateway(&self, config: &str) -> Program {
        self.place.write("box.toml", config);
        let mut gateway = self.start(&self.middle, "gateway", &format!("{PACELINE} gateway box.toml --json"));
        until("the gateway", || gateway.so_far().stderr.contains("accelerating").then_some(()));
        gateway
    }
    /// Asks the gateway to end; what it did.
    pub fn stop(&self, mut gateway: Program) -> Value {
        gateway.signal("TERM");
        let said = gateway.finish(Duration::from_secs(15));
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.stdout).expect("it is JSON")
    }
    /// Downloads a file by curl, which has to come as it was.
    pub fn download(&self, file: &str, url: &str) {
        let name = "download";
        let said = self.shell(&self.client, &format!("curl -sS --max-time 30 -o {name} '{url}/{file}'"));
        assert_eq!(said.stderr, "");
        self.assert_same(file, name);
    }
    /// Uploads the file named `file`, which has to come as it was.
    pub fn upload(&self, to: &str) {
        let _ = std::fs::remove_file(self.place.join("uploaded"));
        let mut sink = self.serve("sink", 9000, SINK);
        let send = format!(
            "python3 -c 'import socket; s=socket.create_connection((\"{to}\",9000)); \
             s.sendfile(open(\"file\",\"rb\")); s.shutdown(1); s.recv(1)'"
        );
        self.shell(&self.client, &send);
        assert_eq!(sink.finish(Duration::from_secs(10)).code, 0);
        self.assert_same("file", "uploaded");
    }
    /// Two files are equal.
    pub fn assert_same(&self, one: &str, other: &str) {
        let read = |name: &str| std::fs::read(self.place.join(name)).unwrap();
        assert!(read(one) == read(other), "{other} differs from {one}");
    }
}

//! The test network: namespaces of the clients, the server and the middlebox, and one with the switches
//! between them. The middlebox has two interfaces, which are ports of a kernel bridge. All links are veth
//! pairs with offloads.
//!
//! ```text
//! clients --+
//! attacker -+- switch `mobile` -- m0 [middlebox] c0 -- switch `core` -- server
//! ```

use crate::common::namespace::{Namespace, Program, exclusive, have_programs, skip, wait_for};
use crate::common::{Output, TestDir, run, time_limit};
use crate::gateway_clients::servers::SOCKETS;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::MutexGuard;

/// The namespace of the switches.
pub const SWITCHES: &str = "switches";
/// The namespace of the gateway.
pub const MIDDLEBOX: &str = "middlebox";

#[derive(Clone, Copy)]
pub struct Host {
    pub name: &'static str,
    /// Last part of its addresses, `10.77.0.x` and `fd77::x`.
    pub number: u8,
    switch: &'static str,
    mtu: u32,
    /// Settings in `/proc/sys/net`, with their values.
    sysctls: &'static str,
}

const fn client(name: &'static str, number: u8, sysctls: &'static str) -> Host {
    Host { name, number, switch: "mobile", mtu: 1500, sysctls }
}

pub const SERVER: Host =
    Host { name: "server", number: 1, switch: "core", mtu: 9000, sysctls: "ipv4/tcp_fastopen=3" };
/// The client of most tests.
pub const CLIENT: Host = client("client", 10, "ipv4/tcp_fastopen=1");
/// Clients with other TCP options or another MTU.
pub const VARIANTS: [Host; 5] = [
    client("no-sack", 11, "ipv4/tcp_sack=0"),
    client("no-timestamps", 12, "ipv4/tcp_timestamps=0"),
    client("no-window-scaling", 13, "ipv4/tcp_window_scaling=0"),
    client("ecn", 14, "ipv4/tcp_ecn=1"),
    Host { mtu: 9000, ..client("jumbo", 16, "") },
];
/// A client behind a path that can be made to drop long packets.
pub const NARROW: Host = client("narrow", 17, "");
/// A host on the clients' side that sends hostile packets.
pub const ATTACKER: Host = client("attacker", 66, "");

impl Host {
    pub fn v4(self) -> String {
        format!("10.77.0.{}", self.number)
    }
    pub fn v6(self) -> String {
        format!("fd77::{}", self.number)
    }
}

/// The namespaces, and a folder that all of them share.
pub struct Network {
    namespaces: Vec<(&'static str, Namespace)>,
    pub dir: TestDir,
    _exclusive: MutexGuard<'static, ()>,
}

impl Network {
    /// Builds the network with the server and these hosts; skips, and gives none, where that is not possible.
    pub fn new(hosts: &[Host]) -> Option<Self> {
        let programs = ["unshare", "nsenter", "setpriv", "ip", "ss", "tc", "timeout", "python3", "chmod"];
        if !have_programs(&programs) {
            return None;
        }
        let exclusive = exclusive();
        if run(Command::new("unshare").args(["-n", "ip", "link", "add", "type", "bridge"])).code != 0 {
            skip("no namespaces or no bridges here: needs root and the kernel's bridge");
            return None;
        }
        let hosts = || [SERVER].iter().chain(hosts);
        let names = [SWITCHES, MIDDLEBOX].into_iter().chain(hosts().map(|host| host.name));
        let namespaces = names.map(|name| (name, Namespace::new())).collect();
        let network = Self { namespaces, dir: TestDir::new(), _exclusive: exclusive };
        // Some servers change to users of their own, which must be able to enter the folder.
        assert_eq!(network.shell(SWITCHES, "chmod 711 .").code, 0);
        network.dir.write("sockets.py", include_str!("sockets.py"));
        network.build();
        for host in hosts() {
            network.connect(*host);
        }
        Some(network)
    }
    fn build(&self) {
        for (switch, port) in [("mobile", "m0"), ("core", "c0")] {
            let script = format!(
                "ip link add name {switch} type bridge && ip link set dev {switch} mtu 9000 up && \
                 ip link add name to-{port} mtu 9000 type veth peer name {port} mtu 9000 netns {} && \
                 ip link set dev to-{port} master {switch} up",
                self.namespace(MIDDLEBOX).id()
            );
            self.shell_ok(SWITCHES, &script);
        }
        // No addresses, not even link-local ones: the bridge sends no packets of its own.
        self.shell_ok(
            MIDDLEBOX,
            "for i in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $i; done; \
             ip link add name br0 type bridge && ip link set dev br0 mtu 9000 up && \
             ip link set dev m0 master br0 up && ip link set dev c0 master br0 up && ip link set dev lo up",
        );
    }
    /// Connects a host to its switch, and configures it.
    fn connect(&self, host: Host) {
        let Host { name, number, switch, mtu, sysctls } = host;
        let namespace = self.namespace(name).id();
        self.shell_ok(
            SWITCHES,
            &format!(
                "ip link add name h{number} mtu 9000 type veth peer name eth0 mtu {mtu} netns {namespace} && \
                 ip link set dev h{number} master {switch} up"
            ),
        );
        let script = format!(
            "for setting in {sysctls}; do echo ${{setting#*=}} > /proc/sys/net/${{setting%%=*}} || exit 1; done; \
             ip link set dev lo up && ip link set dev eth0 up && ip addr add {}/24 dev eth0 && \
             ip addr add {}/64 dev eth0 nodad",
            host.v4(),
            host.v6()
        );
        self.shell_ok(name, &script);
    }
    fn namespace(&self, host: &str) -> &Namespace {
        let found = self.namespaces.iter().find(|(name, _)| *name == host);
        &found.unwrap_or_else(|| panic!("no host {host}")).1
    }
    pub fn command(&self, host: &str, argv: &[&str]) -> Command {
        let mut command = self.namespace(host).command();
        command.args(argv).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }
    pub fn run(&self, host: &str, argv: &[&str]) -> Output {
        let limit = time_limit();
        run(&mut self.command(host, &[&limit.each_ref().map(String::as_str), argv].concat()))
    }
    pub fn shell(&self, host: &str, script: &str) -> Output {
        self.run(host, &["sh", "-c", script])
    }
    /// Runs a shell script on a host, which must succeed; gives stdout.
    pub fn shell_ok(&self, host: &str, script: &str) -> String {
        let output = self.shell(host, script);
        assert_eq!(output.code, 0, "in {host}: {script}\n{}{}", output.stdout, output.stderr);
        output.stdout
    }
    /// Starts a program on a host. The kernel kills it when this thread ends. Its output goes to the files
    /// `name.*`.
    pub fn start(&self, host: &str, name: &str, argv: &[&str]) -> Program {
        let argv = [&["setpriv", "--pdeathsig", "KILL", "--"], argv].concat();
        Program::spawn(&self.dir, name, &mut self.command(host, &argv))
    }
    /// Starts a server on the server host, and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, argv: &[&str]) -> Program {
        let mut server = self.start(SERVER.name, name, argv);
        self.listens(name, port, &mut server);
        server
    }
    pub fn listens(&self, name: &str, port: u16, server: &mut Program) {
        wait_for(name, || {
            server.output_so_far();
            let output = self.run(SERVER.name, &["ss", "-Hlnt", &format!("sport = :{port}")]);
            (!output.stdout.is_empty()).then_some(())
        });
    }
    /// Runs an exchange of `sockets.py` with the server at `address`.
    pub fn exchange(&self, host: &str, exchange: &str, address: &str, port: u16, number: u64) -> Output {
        let (port, number) = (port.to_string(), number.to_string());
        self.run(host, &["python3", "sockets.py", exchange, address, &port, &number])
    }
    /// Runs an exchange of `sockets.py` between [`CLIENT`] and the server, which must succeed; gives stdout.
    pub fn exchange_ok(&self, exchange: &str, number: u64) -> String {
        let output = self.exchange(CLIENT.name, exchange, &SERVER.v4(), SOCKETS, number);
        assert_eq!(output.code, 0, "{exchange}: {output:?}");
        output.stdout
    }
    /// Limits the rate of the links to the clients, with `rate` and `queue` in the notation of `tc`.
    pub fn shape(&self, rate: &str, queue: &str) {
        self.shell_ok(
            SWITCHES,
            &format!(
                "for i in $(ip -br link show master mobile | sed -n 's/^\\(h[0-9]*\\)@.*/\\1/p'); do \
                 tc qdisc replace dev $i root tbf rate {rate} burst 20k limit {queue} || exit 1; done"
            ),
        );
    }
}

impl Drop for Network {
    /// Ends all processes in the namespaces, also children of servers.
    fn drop(&mut self) {
        let own: BTreeSet<_> = self
            .namespaces
            .iter()
            .filter_map(|(_, namespace)| fs::read_link(namespace.path()).ok())
            .collect();
        for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let inside = fs::read_link(process.path().join("ns/net")).is_ok_and(|link| own.contains(&link));
            if let (true, Some(id)) =
                (inside, process.file_name().to_str().and_then(|id| id.parse::<u32>().ok()))
            {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

//! Where the tests live: homes (network namespaces) of clients and servers, a yard with the switches between them and
//! the box, and the box with its two interfaces in a kernel bridge. All links are veth pairs with offloads.
//!
//! ```text
//! clients --+                                +-- server
//! attacker -+ switch `mobile` - m0 [box] c0 - switch `core` -+
//! ```

use crate::common::outer::{Program, have, until};
use crate::common::{Place, Said, said};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// One town at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What a home is for. Its number is the last of its addresses.
#[derive(Clone, Copy)]
pub struct Home {
    /// Its name here.
    pub name: &'static str,
    /// Number of its addresses, `10.77.0.x` and `fd77::x`.
    pub number: u8,
    switch: &'static str,
    mtu: u32,
    /// `sys/net/` settings, with their values.
    sysctls: &'static str,
}

const fn client(name: &'static str, number: u8, sysctls: &'static str) -> Home {
    Home { name, number, switch: "mobile", mtu: 1500, sysctls }
}

/// The server.
pub const SERVER: Home =
    Home { name: "server", number: 1, switch: "core", mtu: 9000, sysctls: "ipv4/tcp_fastopen=3" };
/// The client that most programs run in.
pub const CLIENT: Home = client("client", 10, "ipv4/tcp_fastopen=1");
/// Clients whose kernels differ.
pub const KINDS: [Home; 5] = [
    client("no-sack", 11, "ipv4/tcp_sack=0"),
    client("no-timestamps", 12, "ipv4/tcp_timestamps=0"),
    client("no-window-scaling", 13, "ipv4/tcp_window_scaling=0"),
    client("ecn", 14, "ipv4/tcp_ecn=1"),
    Home { mtu: 9000, ..client("jumbo", 16, "") },
];
/// A client behind a path that can be made to swallow long packets.
pub const NARROW: Home = client("narrow", 17, "");
/// A host of evil intent on the clients' side.
pub const ATTACKER: Home = client("attacker", 66, "");

impl Home {
    /// Its IPv4 address.
    pub fn v4(self) -> String {
        format!("10.77.0.{}", self.number)
    }
    /// Its IPv6 address.
    pub fn v6(self) -> String {
        format!("fd77::{}", self.number)
    }
}

/// A namespace that a sleeping process holds.
struct Holder(Child);

impl Holder {
    fn new() -> Self {
        let holder = Command::new("unshare").args(["-n", "sleep", "900"]).stdin(Stdio::null()).spawn();
        let holder = Self(holder.expect("unshare runs"));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        until("a namespace", || fs::read_link(holder.path()).is_ok_and(|held| held != own).then_some(()));
        holder
    }
    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The town, and a folder that all see.
pub struct Town {
    holders: Vec<(&'static str, Holder)>,
    /// Files of this test.
    pub place: Place,
    _turn: MutexGuard<'static, ()>,
}

impl Town {
    /// Builds it with these homes beside the server's; none where that cannot be done, which is said.
    pub fn new(homes: &[Home]) -> Option<Self> {
        if !have(&["unshare", "nsenter", "setpriv", "ip", "ss", "tc", "timeout", "python3", "chmod"]) {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if said(Command::new("unshare").args(["-n", "ip", "link", "add", "type", "bridge"])).code != 0 {
            crate::common::outer::skip(
                "no namespaces or no bridges here: needs root and the kernel's bridge",
            );
            return None;
        }
        let names = ["yard", "box"].into_iter().chain([SERVER].iter().chain(homes).map(|home| home.name));
        let holders = names.map(|name| (name, Holder::new())).collect();
        let town = Self { holders, place: Place::new(), _turn: turn };
        assert_eq!(town.shell("yard", "chmod 711 .").code, 0); // servers with users of their own look in
        town.place.write("sockets.py", include_str!("sockets.py"));
        town.build();
        for home in [SERVER].iter().chain(homes) {
            town.settle(*home);
        }
        Some(town)
    }
    fn build(&self) {
        for (switch, port) in [("mobile", "m0"), ("core", "c0")] {
            let script = format!(
                "ip link add name {switch} type bridge && ip link set dev {switch} mtu 9000 up && \
                 ip link add name to-{port} mtu 9000 type veth peer name {port} mtu 9000 netns {} && \
                 ip link set dev to-{port} master {switch} up",
                self.holder("box").0.id()
            );
            self.must("yard", &script);
        }
        // Without addresses: a bridge that is only a bridge.
        self.must(
            "box",
            "for i in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $i; done; \
             ip link add name br0 type bridge && ip link set dev br0 mtu 9000 up && \
             ip link set dev m0 master br0 up && ip link set dev c0 master br0 up && ip link set dev lo up",
        );
    }
    fn settle(&self, home: Home) {
        let Home { name, number, switch, mtu, sysctls } = home;
        let holder = self.holder(name).0.id();
        self.must(
            "yard",
            &format!(
                "ip link add name h{number} mtu 9000 type veth peer name eth0 mtu {mtu} netns {holder} && \
                 ip link set dev h{number} master {switch} up"
            ),
        );
        let script = format!(
            "for setting in {sysctls}; do echo ${{setting#*=}} > /proc/sys/net/${{setting%%=*}} || exit 1; done; \
             ip link set dev lo up && ip link set dev eth0 up && ip addr add {}/24 dev eth0 && \
             ip addr add {}/64 dev eth0 nodad",
            home.v4(),
            home.v6()
        );
        self.must(name, &script);
    }
    fn holder(&self, home: &str) -> &Holder {
        let found = self.holders.iter().find(|(name, _)| *name == home);
        &found.unwrap_or_else(|| panic!("no home {home}")).1
    }
    /// A command in a home; its process is the one that is spawned.
    pub fn command(&self, home: &str, argv: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.holder(home).path())).arg("--").args(argv);
        command.current_dir(self.place.path()).stdin(Stdio::null());
        command
    }
    /// Runs a command in a home; 200 seconds are the limit: connections may idle for minutes.
    pub fn run(&self, home: &str, argv: &[&str]) -> Said {
        said(&mut self.command(home, &[&["timeout", "-k", "5", "200"], argv].concat()))
    }
    /// Runs a shell script in a home.
    pub fn shell(&self, home: &str, script: &str) -> Said {
        self.run(home, &["sh", "-c", script])
    }
    /// Runs a shell script that must end well; what it prints.
    pub fn must(&self, home: &str, script: &str) -> String {
        let said = self.shell(home, script);
        assert_eq!(said.code, 0, "in {home}: {script}\n{}{}", said.stdout, said.stderr);
        said.stdout
    }
    /// Starts a program in a home, which ends with this thread. Its output goes to files called `name`.
    pub fn start(&self, home: &str, name: &str, argv: &[&str]) -> Program {
        let argv = [&["setpriv", "--pdeathsig", "KILL", "--"], argv].concat();
        Program::spawn(&self.place, name, &mut self.command(home, &argv))
    }
    /// Starts a server in the server's home, and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, argv: &[&str]) -> Program {
        let mut server = self.start(SERVER.name, name, argv);
        self.listens(name, port, &mut server);
        server
    }
    /// Waits until a server listens on `port`.
    pub fn listens(&self, name: &str, port: u16, server: &mut Program) {
        until(name, || {
            server.so_far();
            let said = self.run(SERVER.name, &["ss", "-Hlnt", &format!("sport = :{port}")]);
            (!said.stdout.is_empty()).then_some(())
        });
    }
    /// One talk of `sockets.py` in a home.
    pub fn talk(&self, home: &str, what: &str, address: &str, port: u16, number: u64) -> Said {
        let (port, number) = (port.to_string(), number.to_string());
        self.run(home, &["python3", "sockets.py", what, address, &port, &number])
    }
    /// Shapes what goes to the clients: rate as `tc` writes it, and how long its queue may be.
    pub fn shape(&self, rate: &str, queue: &str) {
        self.must(
            "yard",
            &format!(
                "for i in $(ip -br link show master mobile | sed -n 's/^\\(h[0-9]*\\)@.*/\\1/p'); do \
                 tc qdisc replace dev $i root tbf rate {rate} burst 20k limit {queue} || exit 1; done"
            ),
        );
    }
}

impl Drop for Town {
    /// Ends all that runs in the homes: servers leave children.
    fn drop(&mut self) {
        let homes: BTreeSet<_> =
            self.holders.iter().filter_map(|(_, holder)| fs::read_link(holder.path()).ok()).collect();
        for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let inside = fs::read_link(process.path().join("ns/net")).is_ok_and(|home| homes.contains(&home));
            if let (true, Some(id)) =
                (inside, process.file_name().to_str().and_then(|id| id.parse::<u32>().ok()))
            {
                let _ = Command::new("kill").args(["-9", &id.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

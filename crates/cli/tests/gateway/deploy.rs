//! The recipes of docs/deploy.md, with the commands as they stand in the page: set-up, check, the gateway,
//! self-test, a download, roll back, and download and self-test without the gateway.

use crate::common::PACELINE;
use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::Testbed;
use crate::gateway::tun;

/// The code blocks of a language below a heading of the page, until the next heading.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/deploy.md");
    let start = page.find(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = page[start + 4..].split("\n##").next().unwrap();
    let fence = format!("```{language}\n");
    let parts = section.split(&fence).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// The parts of a test that are not in the page.
struct Trial<'a> {
    heading: &'a str,
    /// Commands after the set-up, in place of the rest of the network.
    prepare: &'a str,
    /// Prefix of the self-test: another namespace.
    tester: &'a str,
    /// Prefix of `curl`, and its URL: of a device and a server.
    device: &'a str,
    url: &'a str,
    /// A counter of `status` that must not be zero.
    counter: &'a str,
}

/// Runs a recipe in the middlebox of a testbed.
fn follow(testbed: &Testbed, trial: &Trial<'_>) {
    let Trial { heading, prepare, tester, device, url, counter } = trial;
    testbed.dir.write("file", random_bytes(3_000_000));
    let (toml, sh) = (blocks(heading, "toml"), blocks(heading, "sh"));
    let [set_up, check, test, roll_back] = &sh[..] else { panic!("four steps: {sh:?}") };
    testbed.dir.write("box.toml", &toml[0]);
    let download = format!(
        "{device} curl -sS -m 60 --retry 20 --retry-delay 1 --retry-connrefused -o got {url}/file; cmp file got"
    );
    // Names of namespaces and the control socket are in /run, which this script has for itself.
    let script = format!(
        "mount --make-rprivate /; mount -t tmpfs none /run\n\
         PATH=$(dirname {PACELINE}):$PATH\n{set_up}{prepare}\n{check}\
         paceline gateway box.toml 2>messages & gateway=$!\n\
         for n in $(seq 300); do if grep -q accelerating messages; then break; fi; sleep 0.1; done\n\
         {tester} {test}{download}\n\
         paceline gateway status | tee status\n\
         {roll_back}wait $gateway\n{download}\n{tester} {test}"
    );
    testbed.dir.write("recipe", script);
    let output = testbed.shell(&testbed.middlebox, "unshare -m sh -ex recipe");
    assert_eq!(output.stdout.matches(" bytes pass to ").count(), 2, "{output:?}");
    assert!(output.stdout.lines().any(|line| line.starts_with(counter)), "{output:?}");
}

/// A prefix that runs a command in a namespace of the testbed.
fn inside(process: u32) -> String {
    format!("nsenter --net=/proc/{process}/ns/net --")
}

/// Renames an interface of the middlebox.
fn rename(testbed: &Testbed, old: &str, new: &str) {
    let line = format!("ip link set {old} down; ip link set {old} name {new}; ip link set {new} up");
    testbed.shell(&testbed.middlebox, &line);
}

#[test]
fn the_recipe_for_a_user_plane_in_a_namespace_works_as_it_stands_in_the_page() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "unshare"]) else { return };
    let _server = testbed.serve_files();
    rename(&testbed, "srv", "eth0");
    let device = "ip netns exec upf";
    let url = "http://10.9.0.1:8000";
    follow(
        &testbed,
        &Trial { heading: "## 1.", prepare: "", tester: "", device, url, counter: "early-acks" },
    );
}

#[test]
fn the_recipe_for_the_tun_device_of_a_user_plane_works_as_it_stands_in_the_page() {
    let Some((testbed, _pair)) = tun::with_tun(tun::End::Client, tun::NONE, false) else { return };
    let _server = testbed.serve_files();
    rename(&testbed, "srv", "eth0");
    rename(&testbed, "tunm", "ogstun");
    testbed.shell(
        &testbed.middlebox,
        "ip link set ogstun mtu 1400; ip route replace 10.20.0.1 dev eth0; echo 0 > /proc/sys/net/ipv4/ip_forward",
    );
    testbed.shell(&testbed.client, "ip -4 addr flush dev tune; ip addr add 10.45.0.2/32 dev tune");
    testbed.shell(&testbed.client, "ip link set tune mtu 1400; ip route replace default dev tune");
    let device = inside(testbed.client.id());
    let url = "http://10.20.0.1:8000";
    follow(
        &testbed,
        &Trial {
            heading: "### Routed mode",
            prepare: "",
            tester: "",
            device: &device,
            url,
            counter: "early-acks",
        },
    );
}

#[test]
fn the_recipe_for_n3_works_as_it_stands_in_the_page() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "unshare"]) else { return };
    testbed.dir.write("gtpu_peer.py", include_str!("tunnels/gtpu_peer.py"));
    rename(&testbed, "srv", "eth0");
    rename(&testbed, "mob", "eth1");
    let ends = [
        (&testbed.client, "cli0", "ue0", "10.45.0.2/24 10.9.0.2 10.9.0.1 11 21"),
        (&testbed.server, "srv0", "ogstun", "10.45.0.1/24 10.9.0.1 10.9.0.2 21 11"),
    ];
    let _ends = ends.map(|(namespace, port, tun, arguments)| {
        testbed.shell(namespace, &format!("ip link set {port} mtu 1550"));
        let mut end = testbed.start(namespace, tun, &format!("python3 gtpu_peer.py {tun} {arguments}"));
        wait_for("an end", || end.output_so_far().stdout.contains("ready").then_some(()));
        testbed.shell(namespace, &format!("ip link set {tun} mtu 1500"));
        end
    });
    let _server = testbed.serve_files();
    let device = inside(testbed.client.id());
    let url = "http://10.45.0.1:8000";
    follow(
        &testbed,
        &Trial {
            heading: "## 2.",
            prepare: "",
            tester: &device,
            device: &device,
            url,
            counter: "frames-tunnelled",
        },
    );
}

#[test]
fn the_recipe_for_a_router_with_a_modem_works_as_it_stands_in_the_page() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "unshare", "sysctl"]) else { return };
    testbed.route();
    let _server = testbed.serve_files();
    rename(&testbed, "srv", "wwan0");
    rename(&testbed, "mob", "lan0");
    let (lan, network) = ("192.168.1.1/24 dev lan0", "10.20.0.254/24 dev wwan0");
    testbed.shell(
        &testbed.middlebox,
        &format!("ip -4 addr flush dev wwan0; ip addr replace {network}; ip addr add {lan}; echo 0 > /proc/sys/net/ipv4/ip_forward"),
    );
    testbed.shell(
        &testbed.client,
        "ip -4 addr flush dev cli0; ip addr add 192.168.1.2/24 dev cli0; ip route add default via 192.168.1.1",
    );
    let device = inside(testbed.client.id());
    let url = "http://10.20.0.1:8000";
    follow(
        &testbed,
        &Trial { heading: "## 3.", prepare: "", tester: "", device: &device, url, counter: "filter-acks-in" },
    );
}

#[test]
fn the_recipe_for_a_server_in_a_namespace_works_as_it_stands_in_the_page() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "unshare"]) else { return };
    rename(&testbed, "mob", "eth0");
    let prepare = "ip netns exec web python3 -m http.server 8000 >/dev/null 2>&1 & trap \"kill $!\" EXIT";
    let device = inside(testbed.client.id());
    let url = "http://10.9.0.10:8000";
    follow(
        &testbed,
        &Trial { heading: "## 4.", prepare, tester: "", device: &device, url, counter: "early-acks" },
    );
}

#[test]
fn the_recipe_for_a_lab_works_as_it_stands_in_the_page() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "unshare"]) else { return };
    let prepare = "ip netns exec server python3 -m http.server 8000 >/dev/null 2>&1 & trap \"kill $!\" EXIT";
    let (device, url) = ("ip netns exec phone", "http://10.99.0.1:8000");
    follow(&testbed, &Trial { heading: "## 5.", prepare, tester: "", device, url, counter: "early-acks" });
}

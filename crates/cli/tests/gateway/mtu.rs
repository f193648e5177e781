//! MTUs: the self-tests, and `mss_clamp`, with which connections work through a gateway in front of a link
//! whose MTU is smaller than that of both hosts, and without any message about it (a PMTU black hole).

use crate::common::namespace::{Namespace, Program, random_bytes, wait_for};
use crate::common::testbed::{CLIENT, HTTP, HTTP6, SERVER, SERVER6, Testbed};
use crate::common::{PACELINE, parse_json};

/// The exit code of curl at its own time limit.
const TIMEOUT: i32 = 28;
/// The kernel forwards everything.
pub const LEAVE: &str = "[[policy]]\nprefix = \"0.0.0.0/0\"\naction = \"leave\"\n\
                     [[policy]]\nprefix = \"::/0\"\naction = \"leave\"\n";

/// Puts a bridge between the client and the middlebox whose port to the client has an MTU of 1400. It drops
/// longer frames of both directions and says nothing, as a switch does.
fn add_black_hole(testbed: &Testbed) -> Namespace {
    let hop = Namespace::new();
    let hop_id = hop.id();
    testbed.shell(
        &testbed.client,
        &format!("ip link set cli0 netns {hop_id}; ip link add cli1 type veth peer name near netns {hop_id}"),
    );
    testbed.shell(
        &testbed.client,
        &format!(
            "ip link set cli1 up; ip addr add {CLIENT}/24 dev cli1; ip -6 addr add fd09::2/64 dev cli1 nodad"
        ),
    );
    testbed.shell(
        &hop,
        "ip link add br0 type bridge; ip link set cli0 master br0; ip link set near master br0; \
         ip link set near mtu 1400; for port in br0 cli0 near; do ip link set $port up; done",
    );
    // Super-packets pass a bridge whatever their segments' size.
    for (namespace, device) in [(&testbed.middlebox, "mob"), (&testbed.client, "cli1")] {
        testbed.shell(namespace, &format!("ethtool -K {device} tso off gso off gro off >/dev/null"));
    }
    hop
}

/// Starts the server of [`sizes`].
pub fn serve_sizes(testbed: &Testbed) -> Program {
    testbed.dir.write("segment_sizes.py", include_str!("../common/segment_sizes.py"));
    testbed.serve("sizes", 7000, "python3 segment_sizes.py serve 7000")
}

/// The segment sizes of client and server in a connection to an address.
pub fn sizes(testbed: &Testbed, address: &str) -> String {
    let output = testbed.shell(&testbed.client, &format!("python3 segment_sizes.py {address} 7000"));
    output.stdout.trim().to_owned()
}

/// Without the clamp, a download that the kernel forwards hangs; with it, all arrive, accelerated or not, in
/// both directions and over both versions of IP.
#[test]
fn a_path_that_drops_full_segments_silently_works_with_the_clamp_alone() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    testbed.dir.write("file", random_bytes(2_000_000));
    let _hop = add_black_hole(&testbed);
    let (_server, _sizes) = (testbed.serve_files(), serve_sizes(&testbed));
    let gateway = testbed.gateway(&testbed.config(LEAVE));
    for url in [HTTP, HTTP6] {
        let hangs = testbed.try_shell(&testbed.client, &format!("curl -sS -m 4 -o got '{url}/file'"));
        assert_eq!(hangs.code, TIMEOUT, "{hangs:?}");
    }
    testbed.stop(gateway);
    for policy in [LEAVE, ""] {
        let gateway = testbed.gateway(&testbed.config(&format!("mss_clamp = 1360\n{policy}")));
        for (url, address) in [(HTTP, SERVER), (HTTP6, SERVER6)] {
            testbed.download("file", url);
            testbed.upload(address);
        }
        // Timestamps take 12 bytes.
        assert_eq!(
            (sizes(&testbed, SERVER), sizes(&testbed, SERVER6)),
            ("1348 1348".into(), "1328 1328".into())
        );
        assert_eq!(testbed.counter("black-holes"), 0, "the accelerator knows the size");
        assert_eq!(testbed.counter("flows") > 0, policy.is_empty());
        testbed.stop(gateway);
    }
}

/// A value derived from the MTU follows it, and so does a new value in the file; a SYN is never raised.
#[test]
fn the_clamp_follows_the_shorter_mtu_and_the_configuration() {
    let Some(testbed) = Testbed::new(&["python3"]) else { return };
    let _sizes = serve_sizes(&testbed);
    let mut gateway = testbed.gateway(&testbed.config("mss_clamp = \"auto\"\n"));
    let wait_for_sizes = |v4: &str, v6: &str| {
        wait_for(&format!("{v4} and {v6}"), || {
            ((sizes(&testbed, SERVER), sizes(&testbed, SERVER6)) == (v4.into(), v6.into())).then_some(())
        });
    };
    wait_for_sizes("1448 1448", "1428 1428");
    testbed.shell(&testbed.middlebox, "ip link set mob mtu 1400");
    wait_for_sizes("1348 1348", "1328 1328");
    testbed.shell(&testbed.middlebox, "ip link set mob mtu 1500");
    wait_for_sizes("1448 1448", "1428 1428");
    let reload = |line: &str| {
        testbed.dir.write("gateway.toml", testbed.config(line));
        testbed.control(&["reload"])
    };
    assert_eq!(reload("mss_clamp = 1000\n").code, 0);
    wait_for_sizes("988 988", "968 968");
    assert_eq!(reload("mss_clamp = 9000\n").code, 0);
    wait_for_sizes("1448 1448", "1428 1428");
    let refused = reload("mss_clamp = 500\n");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("mss_clamp = 500: allowed: 536 to 65495 bytes"), "{refused:?}");
    assert_eq!(reload("").code, 0);
    gateway.output_so_far();
    testbed.stop(gateway);
}

/// `paceline gateway mtu ADDRESS` from the client: exit code and output.
fn longest(testbed: &Testbed, address: &str) -> (i32, String) {
    let output = testbed.try_shell(&testbed.client, &format!("{PACELINE} gateway mtu {address}"));
    assert_eq!(output.stderr, "");
    (output.code, output.stdout)
}

#[test]
fn the_self_test_finds_the_longest_packet_that_passes_the_gateway() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "ethtool"]) else { return };
    let gateway = testbed.gateway(&testbed.config(""));
    for address in [SERVER, SERVER6] {
        let whole = format!("packets of 1500 bytes pass to {address}: the MTU of cli0\n");
        assert_eq!(longest(&testbed, address), (0, whole));
    }
    let _hop = add_black_hole(&testbed);
    for address in [SERVER, SERVER6] {
        let (code, text) = longest(&testbed, address);
        // A bridge's port lets a VLAN tag of 4 bytes pass beyond its MTU, whether there is one or not.
        let longest =
            (1400..=1404).any(|size| text.starts_with(&format!("packets of up to {size} bytes pass")));
        assert!(
            code == 1 && longest && text.contains("the MTU of cli1 is 1500: longer ones are lost"),
            "{text}"
        );
    }
    testbed.stop(gateway);
    let nobody = testbed.try_shell(&testbed.client, &format!("{PACELINE} gateway mtu 10.9.0.77"));
    assert!(nobody.code == 1 && nobody.stderr.contains("10.9.0.77 does not answer"), "{nobody:?}");
    let nowhere = testbed.try_shell(&testbed.client, &format!("{PACELINE} gateway mtu 192.0.2.1"));
    assert!(nowhere.code == 1 && nowhere.stderr.contains("192.0.2.1: there is no route"), "{nowhere:?}");
    let wrong = testbed.try_shell(&testbed.client, &format!("{PACELINE} gateway mtu server"));
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn the_self_test_says_that_a_router_tells_the_mtu() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    testbed.route();
    for port in [(&testbed.middlebox, "srv"), (&testbed.server, "srv0")] {
        testbed.shell(port.0, &format!("ip link set {} mtu 1400", port.1));
    }
    for address in ["10.20.0.1", "fd20::1"] {
        let (code, text) = longest(&testbed, address);
        assert!(
            code == 1 && text.contains("up to 1400 bytes") && text.contains("a router says so"),
            "{text}"
        );
        let json = testbed.try_shell(&testbed.client, &format!("{PACELINE} gateway mtu {address} --json"));
        let json = parse_json(&json.stdout);
        assert_eq!((json["longest"].as_u64(), json["packet_too_big"].as_bool()), (Some(1400), Some(true)));
    }
}

#[test]
fn the_check_reports_the_mtus_and_warns_of_those_that_do_not_fit() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    let check = |more: &str| {
        testbed.dir.write("box.toml", testbed.config(more));
        let output = testbed.shell(&testbed.middlebox, &format!("{PACELINE} gateway box.toml --check"));
        // The facts are comments: the output is a configuration.
        testbed.dir.write("again.toml", &output.stdout);
        testbed.shell(&testbed.middlebox, &format!("{PACELINE} gateway again.toml --check"));
        output
    };
    let whole = check("");
    assert!(
        whole.stdout.contains("# MTU of srv 1500, of mob 1500\n") && whole.stderr.is_empty(),
        "{whole:?}"
    );
    testbed.shell(&testbed.middlebox, "ip link set mob mtu 1400");
    let short = check("mss_clamp = 1400\n");
    assert!(short.stderr.contains("box.toml: MTU of srv = 1500 and of mob = 1400"), "{short:?}");
    assert!(short.stderr.contains("mss_clamp = 1400: up to 1360 fits into the MTU of 1400"), "{short:?}");
}

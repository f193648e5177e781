//! The same clients through the bridge with the ACK policer instead of the gateway.

use crate::common::PACELINE;
use crate::common::namespace::wait_for;
use crate::common::parse_json;
use crate::gateway_clients::clients;
use crate::gateway_clients::network::{CLIENT, MIDDLEBOX, Network};
use crate::gateway_clients::servers;

/// Clients that the path behind the policer does not refuse. The others need hosts or paths of their own.
const CLIENTS: [&str; 9] =
    ["curl", "curl uploads", "wget", "iperf3", "ssh", "scp", "rsync", "rsync over ssh", "websocket"];

#[test]
fn common_programs_transfer_byte_exact_through_the_safe_policer() {
    if let Some(problem) = paceline_police::problem() {
        assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "{problem}");
        eprintln!("skipped: {problem}");
        return;
    }
    let Some(network) = Network::new(&[CLIENT]) else { return };
    let _servers = servers::start(&network);
    // Without offloads the receivers send all their ACKs.
    for (host, device) in [(CLIENT.name, "eth0"), ("server", "eth0"), (MIDDLEBOX, "m0"), (MIDDLEBOX, "c0")] {
        network.shell_ok(host, &format!("ethtool -K {device} tso off gso off gro off"));
    }
    let argv = [PACELINE, "police", "attach", "m0", "--direction", "ingress", "--drop-share", "80%"];
    let mut policer = network.start(MIDDLEBOX, "policer", &argv);
    wait_for("the policer", || policer.output_so_far().stderr.contains("attached").then_some(()));
    let cases: Vec<clients::Case> =
        clients::ALL.iter().filter(|case| CLIENTS.contains(&case.0)).copied().collect();
    assert_eq!(cases.len(), CLIENTS.len());
    let failed = clients::run(&network, &cases);
    assert!(failed.is_empty(), "{failed:?}");
    let report = parse_json(&network.shell_ok(MIDDLEBOX, &format!("{PACELINE} police show m0 --json")));
    let report = &report["policers"][0];
    println!("{} ACKs, {} dropped, {} connections", report["acks"], report["dropped"], report["connections"]);
    assert!(report["acks"].as_u64().unwrap() > 1000, "{report}");
    assert!(report["connections"].as_u64().unwrap() > 10, "{report}");
}

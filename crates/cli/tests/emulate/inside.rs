//! Reach of programs inside an emulation: names of hosts, and the host around an outer emulation.

use crate::common::PACELINE;
use crate::common::emulation::EmulationHost;
use crate::common::namespace::random_bytes;
use crate::emulate::figures::rows;
use crate::emulate::{ONE, assert_good};

/// A resolver that answers each query for an address with 192.0.2.7, over UDP and, with `truncate`, over TCP
/// only.
const RESOLVER: &str = r#"
import socket, struct, sys, threading

address, truncate = sys.argv[1], sys.argv[2:] == ["truncate"]

def answer(query, truncated):
    end = query.index(b"\0", 12) + 5
    is_a = query[end - 4 : end - 2] == b"\0\x01" and not truncated
    flags = 0x8180 | (0x200 if truncated else 0)
    record = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + bytes([192, 0, 2, 7]) if is_a else b""
    return query[:2] + struct.pack("!HHHHH", flags, 1, int(is_a), 0, 0) + query[12:end] + record

def tcp(listener):
    while True:
        stream, _ = listener.accept()
        length = struct.unpack("!H", stream.recv(2, socket.MSG_WAITALL))[0]
        reply = answer(stream.recv(length, socket.MSG_WAITALL), False)
        stream.sendall(struct.pack("!H", len(reply)) + reply)
        stream.close()

threading.Thread(target=tcp, args=[socket.create_server((address, 53))], daemon=True).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind((address, 53))
while True:
    query, sender = udp.recvfrom(4096)
    udp.sendto(answer(query, truncate), sender)
"#;

/// Prints the address of a name by the C library's resolver, and how long it took in ms, in one write: both
/// stations print into one pipe.
const LOOK_UP: &str = "import os, socket, time\nstart = time.monotonic()\n\
    address = socket.gethostbyname('host.paceline.test')\n\
    os.write(1, b'%s %d\\n' % (address.encode(), 1000 * (time.monotonic() - start)))\n";

#[test]
fn names_resolve_inside_by_the_hosts_resolver_over_the_radio() {
    let Some(host) = EmulationHost::new(&["python3", "mount"]) else { return };
    host.dir.write("resolver.py", RESOLVER);
    host.dir.write("look_up.py", LOOK_UP);
    host.dir.write("radio.toml", ONE);
    assert_eq!(host.run(&["ip", "addr", "add", "192.0.2.53/32", "dev", "lo"]).code, 0);
    // A resolver at a loopback address; one that truncates; one at another address of the host.
    for (address, how) in [("127.0.0.53", ""), ("127.0.0.54", "truncate"), ("192.0.2.53", "")] {
        let name = format!("resolver-{address}");
        let mut argv = vec!["python3", "resolver.py", address];
        argv.extend((!how.is_empty()).then_some(how));
        let _resolver = host.serve_at(&name, address, 53, &argv);
        host.dir.write("resolv.conf", format!("# of a test\nnameserver {address}\noptions timeout:20\n"));
        let script = format!(
            "mount --make-rprivate / && mount --bind resolv.conf /etc/resolv.conf && \
             exec {PACELINE} emulate radio.toml --station 0-1 -- python3 look_up.py"
        );
        let scenario = ONE.replace("direction", "count = 2\ndirection");
        host.dir.write("radio.toml", scenario);
        let output = host.run(&["unshare", "--mount", "sh", "-c", &script]);
        assert_good(&output);
        assert!(!output.stderr.contains("names"), "{output:?}");
        let found: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(found.len(), 2, "{output:?}");
        for line in found {
            // The core delays by 5 ms each way.
            assert!(line[0] == "192.0.2.7" && line[1].parse::<u32>().unwrap() >= 10, "{address}: {output:?}");
        }
    }
}

#[test]
fn an_emulation_inside_an_emulation_reaches_the_outer_host() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(100_000));
    let _server = host.serve_files();
    let inner = "echo $PACELINE_HOST $PACELINE_HOST6; curl -sSfo got4 http://198.18.0.1:8000/file && \
                 curl -sSfo got6 http://[2001:2::1]:8000/file && \
                 curl -sSfo between http://$PACELINE_HOST:8001/file";
    host.dir.write("inner.sh", inner);
    let outer = format!(
        "python3 -m http.server --bind :: 8001 >/dev/null 2>&1 & \
         {PACELINE} emulate radio.toml --out inner -- sh inner.sh; code=$?; kill $!; exit $code"
    );
    let output = host.emulate(ONE, &["--out", "outer", "--", "sh", "-c", &outer]);
    assert_good(&output);
    assert_eq!(output.stdout, "198.19.0.1 2001:2:0:10::1\n");
    for got in ["got4", "got6", "between"] {
        host.dir.assert_same("file", got);
    }
    // Both emulations have carried the files, the outer one for its own station.
    let downloaded = |folder: &str| {
        let connections = rows(&host, &format!("{folder}/kernel_connections.csv"));
        connections.iter().map(|row| row["downloaded"].parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    for (folder, connections) in [("inner", 3), ("outer", 2)] {
        let bytes = downloaded(folder);
        assert!(bytes.len() == connections && bytes.iter().all(|n| *n > 100_000), "{folder}: {bytes:?}");
    }
    assert_eq!(host.tun_devices(), "");
}

#[test]
fn emulations_inside_two_stations_have_addresses_of_their_own() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(100_000));
    let _server = host.serve_files();
    host.dir.write("inner.toml", ONE);
    host.dir.write("inner.sh", "echo $PACELINE_HOST && curl -sSfo $1 http://198.18.0.1:8000/file");
    let inner = [PACELINE, "emulate", "inner.toml", "--", "sh", "inner.sh", "got-{station}"];
    let outer = ONE.replace("direction", "count = 2\ndirection");
    let output = host.emulate(&outer, &[&["--station", "0-1", "--"], &inner[..]].concat());
    assert_good(&output);
    let mut hosts: Vec<&str> = output.stdout.lines().collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["198.19.0.1", "198.19.16.1"]);
    for got in ["got-0", "got-1"] {
        host.dir.assert_same("file", got);
    }
    assert!(!output.stderr.contains("the same addresses"), "{output:?}");
}

//! Clients of common programs, all at once through one gateway. Every transfer must be byte-exact.

use crate::common::namespace::{have_programs, skip};
use crate::common::parse_json;
use crate::gateway_clients::network::{CLIENT, NARROW, Network, SERVER, SWITCHES, VARIANTS};
use crate::gateway_clients::servers::{FILES, IPERF3, MPTCP, SHORT, SOCKETS, WEBSOCKET};
use serde_json::Value;
use std::fs;

/// A client: name, required programs, function.
pub type Case = (&'static str, &'static [&'static str], fn(&Network));

pub const ALL: &[Case] = &[
    ("curl", &["curl", "nginx", "openssl"], curl),
    ("curl uploads", &["curl", "nginx", "openssl"], curl_uploads),
    ("wget", &["wget", "nginx", "openssl"], wget),
    ("iperf3", &["iperf3"], iperf3),
    ("ssh", &["ssh", "sshd", "ssh-keygen"], ssh),
    ("scp", &["scp", "sshd", "ssh-keygen"], scp),
    ("rsync", &["rsync"], rsync),
    ("rsync over ssh", &["rsync", "ssh", "sshd", "ssh-keygen"], rsync_over_ssh),
    ("psql", &["psql", "pg_ctlcluster"], psql),
    ("ftp, active", &["vsftpd", "curl"], ftp),
    ("websocket", &[], websocket),
    ("half-closed", &[], half_closed),
    ("resets", &[], resets),
    ("stalls", &[], stalls),
    ("idle", &[], idle),
    ("drips", &[], drips),
    ("4,000 short", &[], short),
    ("multipath", &[], multipath),
    ("fast open", &[], fast_open),
    ("other kernels", &["curl", "nginx", "openssl"], variants),
    ("black hole", &["curl", "nginx", "ethtool"], black_hole),
];

/// The server's addresses as in URLs, with the version of IP.
fn addresses() -> [(&'static str, String); 2] {
    [("4", SERVER.v4()), ("6", format!("[{}]", SERVER.v6()))]
}

/// Fails if a received file differs from the served one; removes it.
fn assert_exact(network: &Network, got: &str, served: &str) {
    network.dir.assert_same(&format!("www/{served}"), got);
    fs::remove_file(network.dir.join(got)).unwrap();
}

fn curl(network: &Network) {
    for (version, host) in addresses() {
        for (kind, options, url) in [
            ("http1", "--http1.1", format!("http://{host}")),
            ("http2", "--http2-prior-knowledge", "http://".to_owned() + &SERVER.v4() + ":8080"),
            ("tls1", "--http1.1 -k", format!("https://{host}")),
            ("tls2", "--http2 -k", format!("https://{host}")),
        ] {
            for (file, _) in FILES {
                let got = format!("curl-{kind}-{version}-{file}");
                let output = network.shell_ok(
                    CLIENT.name,
                    &format!("curl -sSfg {options} -w '%{{http_version}}' -o {got} {url}/{file}"),
                );
                assert_eq!(output, if kind.ends_with('2') { "2" } else { "1.1" });
                assert_exact(network, &got, file);
            }
        }
        // Several files over one connection, and over several connections at once.
        let files =
            FILES.map(|(name, _)| format!("-o curl-again-{version}-{name} http://{host}/{name} ")).concat();
        network.shell_ok(CLIENT.name, &format!("curl -sSfg {files} && curl -sSfgZ {files}"));
        FILES
            .iter()
            .for_each(|(name, _)| assert_exact(network, &format!("curl-again-{version}-{name}"), name));
    }
}

fn curl_uploads(network: &Network) {
    for (version, host) in addresses() {
        for scheme in ["http", "https"] {
            for (file, _) in FILES {
                let name = format!("in/{scheme}-{version}-{file}");
                network.shell_ok(CLIENT.name, &format!("curl -sSfgk -T www/{file} {scheme}://{host}/{name}"));
                assert_exact(network, &format!("www/{name}"), file);
            }
        }
    }
}

fn wget(network: &Network) {
    for (version, host) in addresses() {
        for scheme in ["http", "https"] {
            for (file, _) in FILES {
                let got = format!("wget-{version}-{scheme}-{file}");
                let script =
                    format!("wget -q -t 1 -T 20 --no-check-certificate -O {got} {scheme}://{host}/{file}");
                network.shell_ok(CLIENT.name, &script);
                assert_exact(network, &got, file);
            }
        }
    }
}

fn iperf3(network: &Network) {
    std::thread::scope(|scope| {
        for (port, options, sums) in [
            (IPERF3[0], "-4 -R", &["sum_received"][..]),
            (IPERF3[1], "-4", &["sum_received"]),
            (IPERF3[2], "-6 --bidir", &["sum_received", "sum_received_bidir_reverse"]),
        ] {
            scope.spawn(move || {
                let address = if options.contains("-6") { SERVER.v6() } else { SERVER.v4() };
                // At a limited rate, since other clients run at the same time.
                let script = format!("iperf3 -J -b 200M -P 2 -n 40M {options} -p {port} -c {address}");
                let json: Value = parse_json(&network.shell_ok(CLIENT.name, &script));
                assert!(json["error"].is_null(), "{options}: {json}");
                for sum in sums {
                    let bytes = json["end"][sum]["bytes"].as_f64();
                    let bytes = bytes.unwrap_or_else(|| panic!("no {sum}: {json}"));
                    println!("iperf3 {options} {sum}: {bytes} bytes");
                    assert!(bytes > 1e6, "{options}: {sum} {bytes} bytes");
                }
            });
        }
    });
}

fn ssh(network: &Network) {
    for (version, address) in [("4", SERVER.v4()), ("6", SERVER.v6())] {
        let (folder, got) = (network.dir.path().display(), format!("ssh-{version}"));
        let remote = format!("ssh -F ssh_config {address}");
        network.shell_ok(CLIENT.name, &format!("{remote} cat {folder}/www/large > {got}"));
        assert_exact(network, &got, "large");
        network.shell_ok(CLIENT.name, &format!("{remote} 'cat > {folder}/{got}' < www/large"));
        assert_exact(network, &got, "large");
        // Data in both directions at once, and small messages.
        network.shell_ok(CLIENT.name, &format!("{remote} cat < www/middle > {got}"));
        assert_exact(network, &got, "middle");
        assert_eq!(network.shell_ok(CLIENT.name, &format!("{remote} seq 300")).lines().count(), 300);
    }
}

fn scp(network: &Network) {
    let folder = network.dir.path().display();
    for (name, host) in addresses() {
        for (options, kind) in [("", "sftp"), ("-O", "rcp")] {
            let got = format!("scp-{kind}-{name}");
            let scp = format!("scp -q {options} -F ssh_config");
            network.shell_ok(CLIENT.name, &format!("{scp} '{host}:{folder}/www/large' {got}"));
            assert_exact(network, &got, "large");
            network.shell_ok(CLIENT.name, &format!("{scp} www/large '{host}:{folder}/{got}'"));
            assert_exact(network, &got, "large");
        }
    }
}

/// Copies the files from the served folder `remote` and back by `rsync`.
fn rsync_both_ways(network: &Network, name: &str, remote: &str) {
    let copy =
        format!("rsync -a --exclude=in {remote}/ {name}-got/ && rsync -a {name}-got/ {remote}/in/{name}/");
    network.shell_ok(CLIENT.name, &copy);
    for (file, _) in FILES {
        assert_exact(network, &format!("{name}-got/{file}"), file);
        assert_exact(network, &format!("www/in/{name}/{file}"), file);
    }
}

fn rsync(network: &Network) {
    rsync_both_ways(network, "rsync", &format!("rsync://{}:8730/www", SERVER.v4()));
}

fn rsync_over_ssh(network: &Network) {
    let remote = format!("{}:{}/www", SERVER.v4(), network.dir.path().display());
    rsync_both_ways(network, "rsync-ssh", &format!("-e 'ssh -F ssh_config' {remote}"));
}

fn psql(network: &Network) {
    for (version, address) in [("4", SERVER.v4()), ("6", SERVER.v6())] {
        let table = format!("t{version}");
        network.dir.write(
            &format!("{table}.sql"),
            format!(
                "CREATE TABLE {table} (n int, word text);\nCREATE TABLE {table}b (n int, word text);\n\
                 INSERT INTO {table} SELECT i, repeat(md5(i::text), 3) FROM generate_series(1, 60000) i;\n\
                 \\copy {table} TO '{table}.tsv'\n\\copy {table}b FROM '{table}.tsv'\n\
                 SELECT md5(string_agg(n || word, ',' ORDER BY n)) FROM {table};\n\
                 SELECT md5(string_agg(n || word, ',' ORDER BY n)) FROM {table}b;\nSELECT word FROM {table}b;\n"
            ),
        );
        let psql =
            format!("psql -qAtX -v ON_ERROR_STOP=1 -h {address} -p 5433 -U postgres -f {table}.sql postgres");
        let output = network.shell_ok(CLIENT.name, &psql);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!((lines[0].len(), lines[0]), (32, lines[1]));
        let copied = network.dir.read(&format!("{table}.tsv"));
        assert_eq!((lines.len(), copied.lines().count()), (60_002, 60_000));
        let words = copied.lines().map(|line| line.split_once('\t').expect("two columns").1);
        assert!(words.eq(lines[2..].iter().copied()), "rows differ");
    }
}

/// Active mode: the server opens the data connections to the client.
fn ftp(network: &Network) {
    for (file, _) in FILES {
        let got = format!("ftp-{file}");
        let url = format!("ftp://{}:2121", SERVER.v4());
        network.shell_ok(CLIENT.name, &format!("curl -sSf --ftp-port - -o {got} {url}/{file}"));
        assert_exact(network, &got, file);
        network.shell_ok(CLIENT.name, &format!("curl -sSf --ftp-port - -T www/{file} {url}/in/ftp-{file}"));
        assert_exact(network, &format!("www/in/ftp-{file}"), file);
    }
}

fn websocket(network: &Network) {
    let library =
        |python: &&str| network.shell(CLIENT.name, &format!("{python} -c 'import websockets'")).code == 0;
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(library) else {
        return skip("no Python library `websockets`");
    };
    network.dir.write("websocket.py", include_str!("websocket.py"));
    let port = WEBSOCKET.to_string();
    let _server = network.serve("websocket", WEBSOCKET, &[python, "websocket.py", "serve", &port]);
    for (_, host) in addresses() {
        network.shell_ok(CLIENT.name, &format!("{python} websocket.py talk '{host}' {port}"));
    }
}

/// Runs an exchange of `sockets.py` over both versions of IP.
fn exchange(network: &Network, name: &str, port: u16, number: u64) {
    for address in [SERVER.v4(), SERVER.v6()] {
        let output = network.exchange(CLIENT.name, name, &address, port, number);
        assert_eq!(output.code, 0, "{name} {address}: {output:?}");
    }
}

fn half_closed(network: &Network) {
    exchange(network, "get", SOCKETS, 1);
    exchange(network, "client-fin-first", SOCKETS, 2);
    exchange(network, "server-fin-first", SOCKETS, 3);
}

fn resets(network: &Network) {
    exchange(network, "server-resets", SOCKETS, 4);
    exchange(network, "client-resets", SOCKETS, 5);
    exchange(network, "urgent", SOCKETS, 6);
}

fn stalls(network: &Network) {
    exchange(network, "stalls", SOCKETS, 7);
}

/// Idle time of ten seconds, or of `PACELINE_IDLE` seconds.
fn idle(network: &Network) {
    let seconds =
        std::env::var("PACELINE_IDLE").map_or(10, |seconds| seconds.parse().expect("whole seconds"));
    assert!(seconds <= 150, "PACELINE_IDLE: {seconds}, up to 150 seconds allowed");
    exchange(network, "idle", SOCKETS, seconds);
}

fn drips(network: &Network) {
    exchange(network, "drip", SOCKETS, 8);
}

/// Four thousand short connections, half over each version of IP.
fn short(network: &Network) {
    exchange(network, "short", SHORT, 2_000);
}

fn multipath(network: &Network) {
    let output = network.exchange(CLIENT.name, "mptcp", &SERVER.v4(), MPTCP, 9);
    assert_eq!(output.code, 0, "{output:?}");
}

fn fast_open(network: &Network) {
    exchange(network, "fast-open", SOCKETS, 10);
}

/// Clients without SACK, timestamps or window scaling, with ECN, and with jumbo frames.
fn variants(network: &Network) {
    std::thread::scope(|scope| {
        VARIANTS.iter().for_each(|host| drop(scope.spawn(|| variant(network, host.name))))
    });
}

fn variant(network: &Network, client: &str) {
    for (version, host) in addresses() {
        let (got, up) = (format!("{client}-{version}"), format!("in/{client}-{version}"));
        network.shell_ok(client, &format!("curl -sSfg -o {got} http://{host}/large"));
        assert_exact(network, &got, "large");
        network.shell_ok(client, &format!("curl -sSfg -T www/large http://{host}/{up}"));
        assert_exact(network, &format!("www/{up}"), "large");
    }
    for name in ["client-fin-first", "stalls"] {
        let output = network.exchange(client, name, &SERVER.v4(), SOCKETS, 11);
        assert_eq!(output.code, 0, "{name}: {output:?}");
    }
}

/// A path MTU black hole (RFC 4821): the client receives no packets longer than 1300 bytes, its SYN announces
/// an MSS for 1500, and no ICMP reaches the server. Without the gateway the download would hang.
fn black_hole(network: &Network) {
    if std::env::var_os("PACELINE_MIDDLE").is_some() {
        return println!("black hole: only the gateway detects it");
    }
    let port = format!("h{}", NARROW.number);
    // Without offloads, so that the last hop receives single segments.
    network.shell_ok(SWITCHES, &format!("ethtool -K {port} tso off gso off"));
    let script = "ip link set dev eth0 mtu 1300 && ip route replace 10.77.0.0/24 dev eth0 advmss 1460 && \
                  ip -6 route change fd77::/64 dev eth0 proto kernel metric 256 advmss 1440";
    network.shell_ok(NARROW.name, script);
    for (version, host) in addresses() {
        let got = format!("narrow-{version}");
        network.shell_ok(NARROW.name, &format!("curl -sSfg --max-time 60 -o {got} http://{host}/large"));
        assert_exact(network, &got, "large");
    }
}

/// Runs all cases at once whose programs are installed; gives the failed ones with their messages.
pub fn run(network: &Network, cases: &[Case]) -> Vec<(String, String)> {
    let cases: Vec<&Case> = cases.iter().filter(|(_, programs, _)| have_programs(programs)).collect();
    std::thread::scope(|scope| {
        let running = cases.iter().map(|(name, _, run)| {
            let handle = scope.spawn(move || {
                run(network);
                println!("{name}: exact");
            });
            (*name, handle)
        });
        let running: Vec<_> = running.collect();
        running
            .into_iter()
            .filter_map(|(name, handle)| handle.join().err().map(|panic| (name.to_owned(), message(&panic))))
            .collect()
    })
}

fn message(panic: &Box<dyn std::any::Any + Send>) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or(panic.downcast_ref::<&str>().map(|output| (*output).to_owned()))
        .unwrap_or_default()
}

//! Programs that we did not write, each byte-exact, all at once through one gateway.

use crate::common::outer::have;
use crate::servers::{FILES, IPERF3, MPTCP, SHORT, SOCKETS, WEBSOCKET};
use crate::town::{CLIENT, KINDS, NARROW, SERVER, Town};
use serde_json::Value;
use std::fs;

/// A client: what it is called, the programs that it needs, and what it does.
pub type Case = (&'static str, &'static [&'static str], fn(&Town));

/// All of them.
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
    ("10,000 short", &[], short),
    ("multipath", &[], multipath),
    ("fast open", &[], fast_open),
    ("other kernels", &["curl", "nginx", "openssl"], kinds),
    ("black hole", &["curl", "nginx", "ethtool"], black_hole),
];

/// The server as URLs and `sockets.py` have it.
fn addresses() -> [(&'static str, String); 2] {
    [("4", SERVER.v4()), ("6", format!("[{}]", SERVER.v6()))]
}

/// Whether a file is what was served under that name.
fn exact(town: &Town, got: &str, served: &str) {
    let read = |name: &str| fs::read(town.place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (got_bytes, served) = (read(got), read(&format!("www/{served}")));
    let at = got_bytes.iter().zip(&served).position(|(a, b)| a != b);
    assert!(got_bytes == served, "{got}: {} bytes of {}, differs at {at:?}", got_bytes.len(), served.len());
    fs::remove_file(town.place.join(got)).unwrap();
}

fn curl(town: &Town) {
    for (version, host) in addresses() {
        for (kind, options, url) in [
            ("http1", "--http1.1", format!("http://{host}")),
            ("http2", "--http2-prior-knowledge", "http://".to_owned() + &SERVER.v4() + ":8080"),
            ("tls1", "--http1.1 -k", format!("https://{host}")),
            ("tls2", "--http2 -k", format!("https://{host}")),
        ] {
            for (file, _) in FILES {
                let got = format!("curl-{kind}-{version}-{file}");
                let said = town.must(
                    CLIENT.name,
                    &format!("curl -sSfg {options} -w '%{{http_version}}' -o {got} {url}/{file}"),
                );
                assert_eq!(said, if kind.ends_with('2') { "2" } else { "1.1" });
                exact(town, &got, file);
            }
        }
        // One connection for many, and many connections at once.
        let files =
            FILES.map(|(name, _)| format!("-o curl-again-{version}-{name} http://{host}/{name} ")).concat();
        town.must(CLIENT.name, &format!("curl -sSfg {files} && curl -sSfgZ {files}"));
        FILES.iter().for_each(|(name, _)| exact(town, &format!("curl-again-{version}-{name}"), name));
    }
}

fn curl_uploads(town: &Town) {
    for (version, host) in addresses() {
        for scheme in ["http", "https"] {
            for (file, _) in FILES {
                let name = format!("in/{scheme}-{version}-{file}");
                town.must(CLIENT.name, &format!("curl -sSfgk -T www/{file} {scheme}://{host}/{name}"));
                exact(town, &format!("www/{name}"), file);
            }
        }
    }
}

fn wget(town: &Town) {
    for (version, host) in addresses() {
        for scheme in ["http", "https"] {
            for (file, _) in FILES {
                let got = format!("wget-{version}-{scheme}-{file}");
                let script =
                    format!("wget -q -t 1 -T 20 --no-check-certificate -O {got} {scheme}://{host}/{file}");
                town.must(CLIENT.name, &script);
                exact(town, &got, file);
            }
        }
    }
}

fn iperf3(town: &Town) {
    std::thread::scope(|scope| {
        for (port, options, sums) in [
            (IPERF3[0], "-4 -R", &["sum_received"][..]),
            (IPERF3[1], "-4", &["sum_received"]),
            (IPERF3[2], "-6 --bidir", &["sum_received", "sum_received_bidir_reverse"]),
        ] {
            scope.spawn(move || {
                let address = if options.contains("-6") { SERVER.v6() } else { SERVER.v4() };
                // Held to a rate: it is not alone.
                let script = format!("iperf3 -J -b 200M -P 2 -t 3 {options} -p {port} -c {address}");
                let json: Value = serde_json::from_str(&town.must(CLIENT.name, &script)).expect("JSON");
                for sum in sums {
                    let rate = json["end"][sum]["bits_per_second"].as_f64();
                    let rate = rate.unwrap_or_else(|| panic!("no {sum}: {json}")) / 1e6;
                    println!("iperf3 {options} {sum}: {rate:.0} Mb/s");
                    assert!(rate > 10.0, "{options}: {sum} {rate} Mb/s");
                }
            });
        }
    });
}

fn ssh(town: &Town) {
    for (version, address) in [("4", SERVER.v4()), ("6", SERVER.v6())] {
        let (folder, got) = (town.place.path().display(), format!("ssh-{version}"));
        let remote = format!("ssh -F ssh_config {address}");
        town.must(CLIENT.name, &format!("{remote} cat {folder}/www/large > {got}"));
        exact(town, &got, "large");
        town.must(CLIENT.name, &format!("{remote} 'cat > {folder}/{got}' < www/large"));
        exact(town, &got, "large");
        // Both ways at once, and small messages.
        town.must(CLIENT.name, &format!("{remote} cat < www/middle > {got}"));
        exact(town, &got, "middle");
        assert_eq!(town.must(CLIENT.name, &format!("{remote} seq 300")).lines().count(), 300);
    }
}

fn scp(town: &Town) {
    let folder = town.place.path().display();
    for (name, host) in addresses() {
        for (options, kind) in [("", "sftp"), ("-O", "rcp")] {
            let got = format!("scp-{kind}-{name}");
            let scp = format!("scp -q {options} -F ssh_config");
            town.must(CLIENT.name, &format!("{scp} '{host}:{folder}/www/large' {got}"));
            exact(town, &got, "large");
            town.must(CLIENT.name, &format!("{scp} www/large '{host}:{folder}/{got}'"));
            exact(town, &got, "large");
        }
    }
}

/// Files there and back by `rsync`, where `remote` is the served folder.
fn rsynced(town: &Town, name: &str, remote: &str) {
    let copy =
        format!("rsync -a --exclude=in {remote}/ {name}-got/ && rsync -a {name}-got/ {remote}/in/{name}/");
    town.must(CLIENT.name, &copy);
    for (file, _) in FILES {
        exact(town, &format!("{name}-got/{file}"), file);
        exact(town, &format!("www/in/{name}/{file}"), file);
    }
}

fn rsync(town: &Town) {
    rsynced(town, "rsync", &format!("rsync://{}:8730/www", SERVER.v4()));
}

fn rsync_over_ssh(town: &Town) {
    let remote = format!("{}:{}/www", SERVER.v4(), town.place.path().display());
    rsynced(town, "rsync-ssh", &format!("-e 'ssh -F ssh_config' {remote}"));
}

fn psql(town: &Town) {
    for (version, address) in [("4", SERVER.v4()), ("6", SERVER.v6())] {
        let table = format!("t{version}");
        town.place.write(
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
        let said = town.must(CLIENT.name, &psql);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0].len(), lines[0]), (32, lines[1]));
        let copied = town.place.read(&format!("{table}.tsv"));
        assert_eq!((lines.len(), copied.lines().count()), (60_002, 60_000));
        let words = copied.lines().map(|line| line.split_once('\t').expect("two columns").1);
        assert!(words.eq(lines[2..].iter().copied()), "rows differ");
    }
}

/// The server opens the connection for data: the client is the one who listens.
fn ftp(town: &Town) {
    for (file, _) in FILES {
        let got = format!("ftp-{file}");
        let url = format!("ftp://{}:2121", SERVER.v4());
        town.must(CLIENT.name, &format!("curl -sSf --ftp-port - -o {got} {url}/{file}"));
        exact(town, &got, file);
        town.must(CLIENT.name, &format!("curl -sSf --ftp-port - -T www/{file} {url}/in/ftp-{file}"));
        exact(town, &format!("www/in/ftp-{file}"), file);
    }
}

fn websocket(town: &Town) {
    let library =
        |python: &&str| town.shell(CLIENT.name, &format!("{python} -c 'import websockets'")).code == 0;
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(library) else {
        return crate::common::outer::skip("no Python library `websockets`");
    };
    town.place.write("websocket.py", include_str!("websocket.py"));
    let port = WEBSOCKET.to_string();
    let _server = town.serve("websocket", WEBSOCKET, &[python, "websocket.py", "serve", &port]);
    for (_, host) in addresses() {
        town.must(CLIENT.name, &format!("{python} websocket.py talk '{host}' {port}"));
    }
}

/// A talk of `sockets.py` by both versions of IP.
fn talk(town: &Town, what: &str, port: u16, number: u64) {
    for address in [SERVER.v4(), SERVER.v6()] {
        let said = town.talk(CLIENT.name, what, &address, port, number);
        assert_eq!(said.code, 0, "{what} {address}: {said:?}");
    }
}

fn half_closed(town: &Town) {
    talk(town, "get", SOCKETS, 1);
    talk(town, "client-fin-first", SOCKETS, 2);
    talk(town, "server-fin-first", SOCKETS, 3);
}

fn resets(town: &Town) {
    talk(town, "server-resets", SOCKETS, 4);
    talk(town, "client-resets", SOCKETS, 5);
    talk(town, "urgent", SOCKETS, 6);
}

fn stalls(town: &Town) {
    talk(town, "stalls", SOCKETS, 7);
}

/// Silence of some seconds; of `PACELINE_IDLE` seconds where that is set.
fn idle(town: &Town) {
    let seconds =
        std::env::var("PACELINE_IDLE").map_or(10, |seconds| seconds.parse().expect("whole seconds"));
    assert!(seconds <= 180, "PACELINE_IDLE: {seconds}, up to 180 seconds allowed");
    talk(town, "idle", SOCKETS, seconds);
}

fn drips(town: &Town) {
    talk(town, "drip", SOCKETS, 8);
}

/// Ten thousand, half by each version of IP.
fn short(town: &Town) {
    talk(town, "short", SHORT, 5_000);
}

fn multipath(town: &Town) {
    let said = town.talk(CLIENT.name, "mptcp", &SERVER.v4(), MPTCP, 9);
    assert_eq!(said.code, 0, "{said:?}");
}

fn fast_open(town: &Town) {
    talk(town, "fast-open", SOCKETS, 10);
}

/// SACK, timestamps and window scaling each off, ECN, jumbo frames.
fn kinds(town: &Town) {
    std::thread::scope(|scope| KINDS.iter().for_each(|home| drop(scope.spawn(|| kind(town, home.name)))));
}

fn kind(town: &Town, home: &str) {
    for (version, host) in addresses() {
        let (got, up) = (format!("{home}-{version}"), format!("in/{home}-{version}"));
        town.must(home, &format!("curl -sSfg -o {got} http://{host}/large"));
        exact(town, &got, "large");
        town.must(home, &format!("curl -sSfg -T www/large http://{host}/{up}"));
        exact(town, &format!("www/{up}"), "large");
    }
    for what in ["client-fin-first", "stalls"] {
        let said = town.talk(home, what, &SERVER.v4(), SOCKETS, 11);
        assert_eq!(said.code, 0, "{what}: {said:?}");
    }
}

/// The client takes no frames of more than 1300 bytes, its SYN speaks of 1500, and nobody tells the server: without a gateway
/// it would get nothing.
fn black_hole(town: &Town) {
    if std::env::var_os("PACELINE_MIDDLE").is_some() {
        return println!("black hole: only the gateway finds it out");
    }
    let port = format!("h{}", NARROW.number);
    town.must("yard", &format!("ethtool -K {port} tso off gso off")); // the last hop sees single segments
    let script = "ip link set dev eth0 mtu 1300 && ip route replace 10.77.0.0/24 dev eth0 advmss 1460 && \
                  ip -6 route change fd77::/64 dev eth0 proto kernel metric 256 advmss 1440";
    town.must(NARROW.name, script);
    for (version, host) in addresses() {
        let got = format!("narrow-{version}");
        town.must(NARROW.name, &format!("curl -sSfg --max-time 60 -o {got} http://{host}/large"));
        exact(town, &got, "large");
    }
}

/// Runs those that can run here, all at once; which ones failed, and why.
pub fn run(town: &Town, cases: &[Case]) -> Vec<(String, String)> {
    let cases: Vec<&Case> = cases.iter().filter(|(_, programs, _)| have(programs)).collect();
    std::thread::scope(|scope| {
        let running = cases.iter().map(|(name, _, run)| {
            let handle = scope.spawn(move || {
                let start = std::time::Instant::now();
                run(town);
                println!("{name}: exact, {:.1} s", start.elapsed().as_secs_f64());
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
        .or(panic.downcast_ref::<&str>().map(|said| (*said).to_owned()))
        .unwrap_or_default()
}

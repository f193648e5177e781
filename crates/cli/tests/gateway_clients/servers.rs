//! The servers. Each has its own configuration in the test's folder; the host's configuration is not used.

use crate::common::has_program;
use crate::common::namespace::{Program, random_bytes};
use crate::gateway_clients::network::{Network, SERVER};
use std::fs;
use std::os::unix::fs::symlink;

/// Port of `sockets.py serve`.
pub const SOCKETS: u16 = 7000;
/// Port of a second process of `sockets.py serve`, for the many short connections.
pub const SHORT: u16 = 7001;
/// Port of `sockets.py serve` with Multipath TCP.
pub const MPTCP: u16 = 7002;
/// Port of the WebSocket server.
pub const WEBSOCKET: u16 = 7003;
/// Ports of the servers of `iperf3`, one for each direction.
pub const IPERF3: [u16; 3] = [5201, 5202, 5203];
/// Files in `www`, with their lengths in bytes.
pub const FILES: [(&str, u64); 3] = [("small", 5_000), ("middle", 2_000_000), ("large", 12_000_000)];

/// Starts the servers that are installed on this host.
pub fn start(network: &Network) -> Vec<Program> {
    let dir = &network.dir;
    fs::create_dir(dir.join("www")).unwrap();
    for (name, length) in FILES {
        dir.write(&format!("www/{name}"), random_bytes(length));
    }
    network.shell_ok(SERVER.name, "mkdir -m 777 www/in empty && chmod 755 www empty");
    let mut servers = sockets(network);
    for (program, serve) in [
        ("nginx", nginx as fn(&Network) -> Vec<Program>),
        ("iperf3", iperf3),
        ("sshd", sshd),
        ("rsync", rsync),
        ("vsftpd", vsftpd),
        ("psql", postgresql),
    ] {
        if has_program(program) {
            servers.extend(serve(network));
        }
    }
    servers
}

/// Starts `sockets.py serve` on its three ports.
pub fn sockets(network: &Network) -> Vec<Program> {
    let serve = |port: u16, kind: &[&str]| {
        let number = port.to_string();
        let argv = [&["python3", "sockets.py", "serve", &number], kind].concat();
        network.serve(&format!("sockets-{port}"), port, &argv)
    };
    vec![serve(SOCKETS, &[]), serve(SHORT, &[]), serve(MPTCP, &["mptcp"])]
}

fn nginx(network: &Network) -> Vec<Program> {
    network.shell_ok(
        SERVER.name,
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=server -keyout key.pem -out cert.pem",
    );
    let root = network.dir.path().display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {root}/{kind};\n"))
        .concat();
    network.dir.write(
        "nginx.conf",
        format!(
            "user root; daemon off; master_process off; pid {root}/nginx.pid; error_log {root}/nginx.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; default_type application/octet-stream; sendfile on; {temporary}\
             client_max_body_size 0; ssl_certificate {root}/cert.pem; ssl_certificate_key {root}/key.pem;\n\
             server {{ listen 80; listen [::]:80; listen 443 ssl http2; listen [::]:443 ssl http2;\n\
             listen 8080 http2; root {root}/www; dav_methods PUT; }} }}\n"
        ),
    );
    let file = format!("{root}/nginx.conf");
    vec![network.serve("nginx", 80, &["nginx", "-e", "stderr", "-c", &file])]
}

fn iperf3(network: &Network) -> Vec<Program> {
    let serve = |port: u16| {
        network.serve(&format!("iperf3-{port}"), port, &["iperf3", "-s", "-p", &port.to_string()])
    };
    IPERF3.map(serve).into()
}

/// The server of `ssh` with its own keys. The folder `/run/sshd`, which sshd needs, is made in a mount
/// namespace of its own.
fn sshd(network: &Network) -> Vec<Program> {
    let root = network.dir.path().display().to_string();
    network.shell_ok(
        SERVER.name,
        "ssh-keygen -q -t ed25519 -N '' -f host-key && ssh-keygen -q -t ed25519 -N '' -f user-key && \
         cp user-key.pub authorized",
    );
    network.dir.write(
        "sshd_config",
        format!(
            "Port 2222\nHostKey {root}/host-key\nPidFile none\nAuthorizedKeysFile {root}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             Subsystem sftp internal-sftp\n"
        ),
    );
    network.dir.write(
        "ssh_config",
        format!(
            "Host *\nPort 2222\nUser root\nIdentityFile {root}/user-key\nIdentitiesOnly yes\nBatchMode yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        ),
    );
    // sshd must be started by its absolute path.
    let script = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && \
                  exec $(command -v sshd) -D -e -f $PWD/sshd_config";
    vec![network.serve("sshd", 2222, &["unshare", "-m", "sh", "-c", script])]
}

fn rsync(network: &Network) -> Vec<Program> {
    let root = network.dir.path().display();
    network.dir.write(
        "rsyncd.conf",
        format!(
            "port = 8730\nuse chroot = no\nuid = root\ngid = root\n[www]\npath = {root}/www\nread only = no\n"
        ),
    );
    vec![network.serve(
        "rsync",
        8730,
        &["rsync", "--daemon", "--no-detach", "--config=rsyncd.conf", "--ipv4"],
    )]
}

/// An FTP server for anonymous users that opens data connections to the client (active mode).
fn vsftpd(network: &Network) -> Vec<Program> {
    let root = network.dir.path().display();
    network.dir.write(
        "vsftpd.conf",
        format!(
            "listen=YES\nbackground=NO\nlisten_port=2121\nanonymous_enable=YES\nlocal_enable=NO\n\
             write_enable=YES\nanon_upload_enable=YES\nanon_root={root}/www\nport_enable=YES\n\
             connect_from_port_20=YES\nsecure_chroot_dir={root}/empty\nseccomp_sandbox=NO\n\
             anon_world_readable_only=NO\nno_anon_password=YES\nxferlog_enable=NO\n"
        ),
    );
    let file = format!("{root}/vsftpd.conf");
    vec![network.serve("vsftpd", 2121, &["vsftpd", &file])]
}

/// A PostgreSQL cluster, which must belong to the user that the server runs as.
fn postgresql(network: &Network) -> Vec<Program> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let Some(version) = versions.last() else { return Vec::new() };
    symlink(version.path().join("bin"), network.dir.join("pg")).unwrap();
    let as_postgres = "setpriv --reuid postgres --regid postgres --clear-groups --";
    network.shell_ok(
        SERVER.name,
        &format!(
            "mkdir -m 700 data && chown postgres: data && \
             {as_postgres} pg/initdb -D data -A trust --no-sync --no-instructions -E UTF8 --locale=C -U postgres"
        ),
    );
    let argv = "pg/postgres -D data -p 5433 -k '' -c listen_addresses=* -c fsync=off \
                -c shared_buffers=16MB -c hba_file=hba.conf";
    network.dir.write("hba.conf", "host all all all trust\n");
    let hba = network.dir.join("hba.conf").display().to_string();
    let argv = argv.replace("hba.conf", &hba);
    vec![network.serve("postgres", 5433, &["sh", "-c", &format!("exec {as_postgres} {argv}")])]
}

//! The servers, each with a configuration of its own in the test's folder and without the host's.

use crate::common::has;
use crate::common::outer::{Program, random_bytes};
use crate::town::{SERVER, Town};
use std::fs;
use std::os::unix::fs::symlink;

/// Ports of `sockets.py`: everything, the same for short connections, and Multipath TCP.
pub const SOCKETS: u16 = 7000;
/// Short connections have a process of their own.
pub const SHORT: u16 = 7001;
/// Multipath TCP.
pub const MPTCP: u16 = 7002;
/// A WebSocket.
pub const WEBSOCKET: u16 = 7003;
/// Servers of `iperf3`, one for each direction.
pub const IPERF3: [u16; 3] = [5201, 5202, 5203];
/// Files in `www`, with their lengths.
pub const FILES: [(&str, u64); 3] = [("small", 5_000), ("middle", 2_000_000), ("large", 12_000_000)];

/// Starts those that this host has.
pub fn start(town: &Town) -> Vec<Program> {
    let place = &town.place;
    fs::create_dir(place.join("www")).unwrap();
    for (name, length) in FILES {
        place.write(&format!("www/{name}"), random_bytes(length));
    }
    town.must(SERVER.name, "mkdir -m 777 www/in empty && chmod 755 www empty");
    let mut servers = sockets(town);
    for (program, serve) in [
        ("nginx", nginx as fn(&Town) -> Vec<Program>),
        ("iperf3", iperf3),
        ("sshd", sshd),
        ("rsync", rsync),
        ("vsftpd", vsftpd),
        ("psql", postgresql),
    ] {
        if has(program) {
            servers.extend(serve(town));
        }
    }
    servers
}

/// `sockets.py` on its ports.
pub fn sockets(town: &Town) -> Vec<Program> {
    let serve = |port: u16, kind: &[&str]| {
        let number = port.to_string();
        let argv = [&["python3", "sockets.py", "serve", &number], kind].concat();
        town.serve(&format!("sockets-{port}"), port, &argv)
    };
    vec![serve(SOCKETS, &[]), serve(SHORT, &[]), serve(MPTCP, &["mptcp"])]
}

fn nginx(town: &Town) -> Vec<Program> {
    town.must(
        SERVER.name,
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=server -keyout key.pem -out cert.pem",
    );
    let root = town.place.path().display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {root}/{kind};\n"))
        .concat();
    town.place.write(
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
    vec![town.serve("nginx", 80, &["nginx", "-e", "stderr", "-c", &file])]
}

fn iperf3(town: &Town) -> Vec<Program> {
    let serve =
        |port: u16| town.serve(&format!("iperf3-{port}"), port, &["iperf3", "-s", "-p", &port.to_string()]);
    IPERF3.map(serve).into()
}

/// The server of `ssh` with keys and settings of its own. It wants a folder in `/run`, which is given to it alone.
fn sshd(town: &Town) -> Vec<Program> {
    let root = town.place.path().display().to_string();
    town.must(
        SERVER.name,
        "ssh-keygen -q -t ed25519 -N '' -f host-key && ssh-keygen -q -t ed25519 -N '' -f user-key && \
         cp user-key.pub authorized",
    );
    town.place.write(
        "sshd_config",
        format!(
            "Port 2222\nHostKey {root}/host-key\nPidFile none\nAuthorizedKeysFile {root}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             Subsystem sftp internal-sftp\n"
        ),
    );
    town.place.write(
        "ssh_config",
        format!(
            "Host *\nPort 2222\nUser root\nIdentityFile {root}/user-key\nIdentitiesOnly yes\nBatchMode yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        ),
    );
    // sshd refuses to be called by a relative name.
    let script = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && \
                  exec $(command -v sshd) -D -e -f $PWD/sshd_config";
    vec![town.serve("sshd", 2222, &["unshare", "-m", "sh", "-c", script])]
}

fn rsync(town: &Town) -> Vec<Program> {
    let root = town.place.path().display();
    town.place.write(
        "rsyncd.conf",
        format!(
            "port = 8730\nuse chroot = no\nuid = root\ngid = root\n[www]\npath = {root}/www\nread only = no\n"
        ),
    );
    vec![town.serve("rsync", 8730, &["rsync", "--daemon", "--no-detach", "--config=rsyncd.conf", "--ipv4"])]
}

/// Anonymous, and connects to the client for data.
fn vsftpd(town: &Town) -> Vec<Program> {
    let root = town.place.path().display();
    town.place.write(
        "vsftpd.conf",
        format!(
            "listen=YES\nbackground=NO\nlisten_port=2121\nanonymous_enable=YES\nlocal_enable=NO\n\
             write_enable=YES\nanon_upload_enable=YES\nanon_root={root}/www\nport_enable=YES\n\
             connect_from_port_20=YES\nsecure_chroot_dir={root}/empty\nseccomp_sandbox=NO\n\
             anon_world_readable_only=NO\nno_anon_password=YES\nxferlog_enable=NO\n"
        ),
    );
    let file = format!("{root}/vsftpd.conf");
    vec![town.serve("vsftpd", 2121, &["vsftpd", &file])]
}

/// A cluster of its own, which nobody else may own but its user.
fn postgresql(town: &Town) -> Vec<Program> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let Some(version) = versions.last() else { return Vec::new() };
    symlink(version.path().join("bin"), town.place.join("pg")).unwrap();
    let become_it = "setpriv --reuid postgres --regid postgres --clear-groups --";
    town.must(
        SERVER.name,
        &format!(
            "mkdir -m 700 data && chown postgres: data && \
             {become_it} pg/initdb -D data -A trust --no-sync --no-instructions -E UTF8 --locale=C -U postgres"
        ),
    );
    let argv = "pg/postgres -D data -p 5433 -k '' -c listen_addresses=* -c fsync=off \
                -c shared_buffers=16MB -c hba_file=hba.conf";
    town.place.write("hba.conf", "host all all all trust\n");
    let hba = town.place.join("hba.conf").display().to_string();
    let argv = argv.replace("hba.conf", &hba);
    vec![town.serve("postgres", 5433, &["sh", "-c", &format!("exec {become_it} {argv}")])]
}

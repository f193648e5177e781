//! A server of `ssh` with keys of its own, and files copied both ways.

use crate::common::namespace::Program;
use crate::common::testbed::Testbed;

/// Starts the server in the testbed's server on port 2222. The folder `/run/sshd`, which sshd needs, is made
/// in a mount namespace of its own.
pub fn serve(testbed: &Testbed) -> Program {
    let root = testbed.dir.path().display().to_string();
    testbed.shell(
        &testbed.server,
        "ssh-keygen -q -t ed25519 -N '' -f host-key && ssh-keygen -q -t ed25519 -N '' -f user-key && \
         cp user-key.pub authorized",
    );
    let server = format!(
        "Port 2222\nHostKey {root}/host-key\nPidFile none\nAuthorizedKeysFile {root}/authorized\n\
         StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
    );
    testbed.dir.write("sshd_config", server);
    let client = format!(
        "Host *\nPort 2222\nUser root\nIdentityFile {root}/user-key\nIdentitiesOnly yes\nBatchMode yes\n\
         StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
    );
    testbed.dir.write("ssh_config", client);
    // sshd must be started by its absolute path.
    let script = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && \
                  exec $(command -v sshd) -D -e -f $PWD/sshd_config";
    testbed.serve("sshd", 2222, &format!("unshare -m sh -c '{script}'"))
}

/// Copies the file named `file` down and up, then in both directions at once, and has many short lines
/// written.
pub fn copy(testbed: &Testbed, host: &str) {
    let (folder, remote) = (testbed.dir.path().display(), format!("ssh -F ssh_config {host}"));
    testbed.shell(&testbed.client, &format!("{remote} cat {folder}/file > down"));
    testbed.dir.assert_same("file", "down");
    testbed.shell(&testbed.client, &format!("{remote} 'cat > {folder}/up' < file"));
    testbed.dir.assert_same("file", "up");
    testbed.shell(&testbed.client, &format!("{remote} cat < file > both"));
    testbed.dir.assert_same("file", "both");
    let lines = testbed.shell(&testbed.client, &format!("{remote} seq 300")).stdout;
    assert_eq!(lines.lines().count(), 300);
}

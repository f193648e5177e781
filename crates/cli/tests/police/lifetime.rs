//! The ends of policers and their devices: pins, removed and renamed devices, capabilities.

#![allow(clippy::disallowed_methods)] // programs run in real time

use crate::common::PACELINE;
use crate::common::namespace::{have_programs, random_bytes, wait_for};
use crate::police::{attach, police, router, show};

/// A shell script in the middlebox with a BPF file system of its own, and `paceline police` as `$police`.
fn with_pins(testbed: &crate::common::testbed::Testbed, script: &str) -> crate::common::Output {
    testbed.dir.write(
        "pins.sh",
        format!("set -e\nmount -t bpf bpf /sys/fs/bpf\npolice='{PACELINE} police'\n{script}\n"),
    );
    testbed.try_shell(&testbed.middlebox, "unshare -m sh pins.sh")
}

#[test]
fn a_pin_without_a_device_blocks_nothing() {
    let Some(testbed) = router() else { return };
    let output = with_pins(
        &testbed,
        "attach='attach pin0 --direction ingress --drop-share 80% --pin'
         ip link add pin0 type veth peer name pin1
         $police $attach
         test $(ls /sys/fs/bpf/paceline-police | wc -l) = 2
         ip link del pin0
         ip link add pin0 type veth peer name pin1
         $police $attach
         test $(ls /sys/fs/bpf/paceline-police | wc -l) = 2
         ip link set pin0 name other
         ip link add pin0 type veth peer name pin2
         $police $attach
         test $(ls /sys/fs/bpf/paceline-police | wc -l) = 4
         $police detach other
         $police show pin0 >&2
         $police detach pin0
         test ! -e /sys/fs/bpf/paceline-police",
    );
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:?}");
}

#[test]
fn a_device_that_goes_away_is_an_error() {
    let Some(testbed) = router() else { return };
    let mut policer = attach(&testbed, "--drop-share 80%");
    testbed.shell(&testbed.middlebox, "ip link del mob");
    let output = policer.finish();
    assert_eq!(output.code, 1, "{output:?}");
    let last = output.stderr.lines().last().unwrap_or("");
    assert!(last.ends_with("mob: the network device is gone, and its policer with it"), "{output:?}");
}

#[test]
fn a_file_polices_on_where_another_device_goes_away() {
    let Some(testbed) = router() else { return };
    let table = |device: &str| {
        format!("[[policer]]\ndevice = \"{device}\"\ndirection = \"ingress\"\ndrop_share = 0.8\n")
    };
    testbed.dir.write("police.toml", table("mob") + &table("srv"));
    let line = format!("{PACELINE} police apply police.toml");
    let mut program = testbed.start(&testbed.middlebox, "apply", &line);
    wait_for("the policers", || program.output_so_far().stderr.contains("attached to").then_some(()));
    testbed.shell(&testbed.middlebox, "ip link del mob");
    wait_for("the message", || program.output_so_far().stderr.contains("mob: the network").then_some(()));
    assert_eq!(police(&testbed, "show srv").code, 0);
    assert_eq!(police(&testbed, "detach srv").code, 0);
    let output = program.finish();
    assert_eq!(output.code, 1, "{output:?}");
}

/// The command line that gives a program exactly these capabilities, and no user.
fn with_capabilities(capabilities: &str) -> String {
    let set = capabilities.to_lowercase().replace("cap_", "").replace(' ', ",+");
    let sets = ["bounding-set", "inh-caps", "ambient-caps"].map(|kind| format!("--{kind}=-all,+{set}"));
    format!("setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs {}", sets.join(" "))
}

#[test]
fn the_capabilities_of_the_unit_suffice_to_apply_its_file() {
    let Some(testbed) = router() else { return };
    if !have_programs(&["setpriv"]) {
        return;
    }
    let unit = include_str!("../../../../packaging/paceline-police.service");
    let setting = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).expect("a setting");
    let capabilities = setting("AmbientCapabilities=");
    assert_eq!(capabilities, setting("CapabilityBoundingSet="));
    testbed.dir.write(
        "police.toml",
        include_str!("../../../../packaging/examples/police.toml").replace("eth1", "mob"),
    );
    testbed.shell(&testbed.middlebox, "chmod -R a+rX .");
    let few = with_capabilities(capabilities);
    let mut program =
        testbed.start(&testbed.middlebox, "apply", &format!("{few} {PACELINE} police apply police.toml"));
    wait_for("the policer", || program.output_so_far().stderr.contains("attached to mob").then_some(()));
    testbed.dir.write("file", random_bytes(5_000_000));
    let _server = testbed.serve_files();
    testbed.download("file", "http://10.20.0.1:8000");
    // Segments that reach the client joined to 64 KiB are 77, with an ACK for two of them at least.
    assert!(show(&testbed)["acks"].as_u64().unwrap() > 30);
    // Longer than two looks at the policer's state: without its own descriptors the command ended here.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    program.output_so_far();
    for (args, part) in [
        (
            "attach mob --direction ingress --drop-share 80%",
            "mob: programs are at the interface, and only root",
        ),
        ("show mob", "mob: programs are at the interface, and only root or CAP_SYS_ADMIN"),
        ("show srv", "srv: no policer is attached"),
    ] {
        let output = testbed.try_shell(&testbed.middlebox, &format!("{few} {PACELINE} police {args}"));
        assert!(output.code == 1 && output.stderr.contains(part), "{args}: {output:?}");
    }
    let doctor = testbed.shell(&testbed.middlebox, &format!("{few} {PACELINE} doctor")).stdout;
    assert!(doctor.contains("police: yes (attach, apply and estimate"), "{doctor}");
    let none = with_capabilities("CAP_NET_ADMIN");
    let doctor = testbed.shell(&testbed.middlebox, &format!("{none} {PACELINE} doctor")).stdout;
    assert!(doctor.contains("CAP_PERFMON, and CAP_SYS_ADMIN for show and detach"), "{doctor}");
    program.signal("TERM");
    assert_eq!(program.finish().code, 0);
}

/// Sends a SYN with these VLAN tags (tag protocol and identifier) from the client to the policed device.
const TAGGED_SYN: &str = r#"import socket, struct, sys
tags = [int(text, 0) for text in sys.argv[1:]]
port = 4000 + len(tags)
tcp = struct.pack("!HHIIBBHHH", port, 80, 1, 0, 0x50, 2, 65535, 0, 0)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 6, 0, bytes([10, 9, 0, 2]), bytes([10, 20, 0, 1]))
link = b"\xff" * 6 + b"\x02" * 6 + b"".join(struct.pack("!H", word) for word in tags) + b"\x08\x00"
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("cli0", 0))
out.send(link + ip + tcp + bytes(6))
"#;

#[test]
fn tags_that_the_kernel_has_taken_out_of_the_frame_are_in_the_key() {
    let Some(testbed) = router() else { return };
    testbed.dir.write("tagged.py", TAGGED_SYN);
    let _policer = attach(&testbed, "--drop-share 80%");
    // On arrival the kernel takes the outer tag out of every frame, and the inner one stays in it.
    for tags in ["", "0x8100 0x2005", "0x88a8 7 0x8100 9"] {
        testbed.shell(&testbed.client, &format!("python3 tagged.py {tags}"));
    }
    let seen = wait_for("three connections", || {
        let report = show(&testbed);
        let mut seen: Vec<(String, String)> = report["flows"]
            .as_array()?
            .iter()
            .map(|flow| (flow["receiver"].as_str().unwrap().to_owned(), flow["vlan"].to_string()))
            .collect();
        seen.sort();
        (seen.len() == 3).then_some(seen)
    });
    let expected = [("10.9.0.2:4000", "[0,0]"), ("10.9.0.2:4002", "[5,0]"), ("10.9.0.2:4004", "[7,9]")];
    assert_eq!(seen, expected.map(|(receiver, vlan)| (receiver.to_owned(), vlan.to_owned())));
}

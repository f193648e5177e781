//! The policer as filters of the clsact qdisc, as on kernels before Linux 6.6.

use crate::common::PACELINE;
use crate::common::namespace::{have_programs, is_running, random_bytes, signal, wait_for};
use crate::common::testbed::Testbed;
use crate::police::{attach, police, router, show};

/// Qdiscs and filters of the policed device.
fn filters(testbed: &Testbed) -> String {
    testbed
        .shell(
            &testbed.middlebox,
            "tc qdisc show dev mob clsact; tc filter show dev mob ingress; tc filter show dev mob egress",
        )
        .stdout
}

#[test]
fn a_policer_by_clsact_polices_and_leaves_nothing() {
    let Some(testbed) = router() else { return };
    if !have_programs(&["tc"]) {
        return;
    }
    testbed.dir.write("file", random_bytes(20_000_000));
    let _server = testbed.serve_files();
    let mut policer = attach(&testbed, "--drop-share 80% --via clsact");
    assert!(filters(&testbed).contains("direct-action"), "{}", filters(&testbed));
    let second = police(&testbed, "attach mob --direction egress --drop-share 50%");
    assert!(second.code == 1 && second.stderr.contains("a policer is attached already"), "{second:?}");
    testbed.download("file", "http://10.20.0.1:8000");
    testbed.download("file", "http://[fd20::1]:8000");
    let report = show(&testbed);
    assert!(
        report["acks"].as_u64().unwrap() > 400 && report["data_packets"].as_u64().unwrap() > 400,
        "{report}"
    );
    assert_eq!(report["direction"], "ingress");
    policer.signal("TERM");
    assert_eq!(policer.finish().code, 0);
    assert_eq!(filters(&testbed), "", "the end of the command removes filters and qdisc");
    let mut policer = attach(&testbed, "--drop-share 80% --via clsact --mode published");
    testbed.try_shell(&testbed.client, "curl -sS -m 3 -o downloaded http://10.20.0.1:8000/file");
    assert!(show(&testbed)["dropped"].as_u64().unwrap() > 3, "the verdict drops");
    assert_eq!(police(&testbed, "detach mob").code, 0);
    assert_eq!(policer.finish().code, 0, "the command ends when its policer is detached");
    assert_eq!(filters(&testbed), "");
}

#[test]
fn filters_of_a_killed_policer_are_removed_by_the_next_one() {
    let Some(testbed) = router() else { return };
    if !have_programs(&["tc"]) {
        return;
    }
    let kill = |via: &str| {
        let policer = attach(&testbed, &format!("--drop-share 80% --via {via}"));
        signal(policer.id(), "KILL");
        wait_for("the end of the policer", || (!is_running(policer.id())).then_some(()));
    };
    kill("clsact");
    assert_ne!(filters(&testbed), "", "the kernel keeps filters");
    kill("clsact"); // attaches although the filters of the first are there
    let policer = attach(&testbed, "--drop-share 80% --via tcx");
    assert_eq!(filters(&testbed), "");
    drop(policer);
    wait_for("the end by TCX", || (police(&testbed, "show mob").code == 1).then_some(()));
    kill("clsact");
    assert_eq!(police(&testbed, "detach mob").code, 0);
    assert_eq!(filters(&testbed), "");
}

#[test]
fn filters_of_others_and_pinned_ones_stay() {
    let Some(testbed) = router() else { return };
    if !have_programs(&["tc"]) {
        return;
    }
    let arguments = "attach mob --direction ingress --drop-share 80% --via clsact --pin";
    assert_eq!(police(&testbed, arguments).code, 0);
    let second = police(&testbed, arguments);
    assert!(second.code == 1 && second.stderr.contains("attached already"), "a pin stays: {second:?}");
    testbed.shell(&testbed.middlebox, "tc filter add dev mob egress prio 7 u32 match u32 0 0");
    assert_eq!(police(&testbed, "detach mob").code, 0);
    let left = filters(&testbed);
    assert!(left.contains("u32") && !left.contains("direct-action"), "{left}");
    let mut policer = attach(&testbed, "--drop-share 80% --via clsact");
    policer.signal("TERM");
    policer.finish();
    assert_eq!(filters(&testbed), left, "another's qdisc and filter");
    testbed.shell(&testbed.middlebox, "tc qdisc del dev mob clsact");
    let mut policer = attach(&testbed, "--drop-share 80% --via clsact");
    testbed.shell(&testbed.middlebox, "ip link del mob");
    let output = policer.finish();
    assert!(output.code == 1 && output.stderr.contains("mob: the network device is gone"), "{output:?}");
    let line = format!("{PACELINE} police attach srv --direction ingress --drop-share 1 --via xdp");
    assert_eq!(testbed.try_shell(&testbed.middlebox, &line).code, 2);
}

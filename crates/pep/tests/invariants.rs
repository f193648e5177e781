//! Properties of all schemes over random runs.

use crate::common::*;
use paceline_net::{Bytes, Instant, SduQueue};
use proptest::prelude::*;

use crate::common::model;

#[test]
fn inputs_of_the_fuzz_target_keep_the_invariants() {
    let inputs = paceline_net::test_support::inputs(include_str!("../../../fuzz/seeds/ack_filter.hex"));
    for bytes in inputs {
        model::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    // keeps: ack-filter.2
    #[test]
    fn every_run_keeps_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        model::run(&bytes);
    }

    /// Long connections under the safe scheme, which discards ACKs only there.
    #[test]
    fn safe_runs_keep_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..400), flow in 0u8..4) {
        // A SYN, its departure, and trains of ACKs under a large limit.
        let flow = flow << 4;
        let operation = |op: u8| (0..=255u8).find(|b| b >> 4 == flow >> 4 && b % 10 == op).unwrap();
        let mut run = vec![7, 255, operation(5), 7, 1, 8, 80];
        for _ in 0..3 {
            run.extend([operation(2), 31]);
        }
        run.extend(bytes);
        prop_assert!(model::run(&run) > 0, "ACKs of the trains are discarded");
    }

    /// With equal ACKs of one connection the number of discards is that of the paper's formula.
    #[test]
    fn passive_discards_are_those_of_the_formula(acks in 1u32..60, room in 0u64..3000, thirds in 0u32..=3) {
        let mut queue = filter(&format!("passive({})", f64::from(thirds) / 3.0));
        push_all(&mut queue, (0..acks).map(|n| ack(0, n.wrapping_mul(536).wrapping_sub(9000))));
        queue.on_grant(Instant::ZERO, Bytes(room), OVERHEAD);
        let fit = u32::try_from(room / ACK_COST).unwrap().clamp(1, acks);
        let expected = thirds * (acks - fit) / 3;
        prop_assert_eq!(queue.counters().acks_discarded, u64::from(expected));
        prop_assert_eq!(queue.packets() as u32, acks - expected);
    }
}

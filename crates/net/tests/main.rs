//! The integration tests of the vocabulary: the fuzz targets of packets, on the inputs in `fuzz/seeds`.

mod tunnel;
mod wire;

use paceline_net::test_support::inputs;

#[test]
fn packets_of_the_fuzz_target_keep_the_rules() {
    inputs(include_str!("../../../fuzz/seeds/wire.hex")).iter().for_each(|bytes| wire::run(bytes));
}

#[test]
fn tunnels_of_the_fuzz_target_keep_the_rules() {
    inputs(include_str!("../../../fuzz/seeds/tunnel.hex")).iter().for_each(|bytes| tunnel::run(bytes));
}

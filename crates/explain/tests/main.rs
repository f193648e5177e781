//! The tests of this crate.

mod capture;
mod causes;
mod common;
mod damaged;
mod inputs;
mod signs;

use paceline_net::test_support::inputs;

#[test]
fn the_seeds_of_the_fuzzer_are_explained() {
    inputs(include_str!("../../../fuzz/seeds/capture.hex")).iter().for_each(|bytes| capture::run(bytes));
}

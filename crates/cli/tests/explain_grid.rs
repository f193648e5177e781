//! `scripts/measure/explain_grid.py`, in short: causes of random settings that are known, at three capture
//! points.

use crate::common::{PACELINE, run, time_limit};
use std::process::Command;

/// Seeds of the short grids. Others are for measurements.
const SEEDS: [&str; 2] = ["61", "62"];

#[test]
fn random_settings_have_their_known_causes() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/measure/explain_grid.py");
    for seed in SEEDS {
        let [timeout, options @ ..] = time_limit();
        let mut command = Command::new(timeout);
        command.args(options).args(["python3", script, PACELINE, "--count", "27", "--seed", seed]);
        let output = run(command.args(["--least", "0.8"]));
        assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("right cause: "), "{}", output.stdout);
    }
}

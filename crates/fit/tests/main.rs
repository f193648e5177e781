//! Tests of fits: cells whose truth is known, logs of other programs, damaged inputs.

mod cells;
mod logs;

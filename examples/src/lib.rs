//! Programs that use the crates as libraries: the files beside `Cargo.toml`, run as
//! `cargo run --release -p paceline-examples --example own_cell`.

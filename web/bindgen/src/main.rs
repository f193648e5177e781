//! Writes the JavaScript module beside a WebAssembly file: `paceline-web-bindgen INPUT.wasm FOLDER`.
//!
//! The library of `wasm-bindgen`'s own program, without that program's servers for tests. ES modules for a
//! browser; Node reads the same files.

use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, folder] = &arguments[..] else {
        anyhow::bail!("usage: paceline-web-bindgen INPUT.wasm FOLDER");
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).web(true)?.typescript(true).remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder)
}

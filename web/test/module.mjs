// The simulator's WebAssembly in Node, from target/web.
// @ts-check
import { readFileSync } from "node:fs";
import * as paceline from "../../target/web/wasm/paceline_web.js";

const wasm = new URL("../../target/web/wasm/paceline_web_bg.wasm", import.meta.url);
paceline.initSync({ module: readFileSync(wasm) });

export { paceline };

/**
 * Runs a scenario with so many seeds to its end.
 * @param {string} name
 * @param {string} text
 * @param {number} seeds
 */
export function run(name, text, seeds) {
    const simulation = new paceline.Simulation(name, text, seeds);
    while (simulation.step());
    return simulation.finish();
}

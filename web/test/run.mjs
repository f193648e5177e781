// Runs a built-in scenario for another duration in Node; prints the CPU time of the run in seconds,
// without loading.
//
// usage: node web/test/run.mjs SCENARIO DURATION
// @ts-check
import { paceline, run } from "./module.mjs";

const scenario = JSON.parse(paceline.scenarios()).find((/** @type {{name: string}} */ each) => each.name === process.argv[2]);
const text = paceline.edit(scenario.text, "run.duration", process.argv[3]);
const before = process.cpuUsage();
run(scenario.name, text, 1).summary_json();
const { user, system } = process.cpuUsage(before);
console.log(((user + system) / 1e6).toFixed(3));

// Every step of the guided tours: its scenario is accepted, runs, and has a goodput and a verdict.
// @ts-check
import { TOURS } from "../page/tours.js";
import { paceline, run } from "./module.mjs";

/** @type {{name: string, text: string}[]} */
const scenarios = JSON.parse(paceline.scenarios());
let passed = 0;
let failed = 0;

for (const { name, steps } of TOURS) {
    for (const [index, { title, scenario, set, own }] of steps.entries()) {
        const text = own ?? scenarios.find((each) => each.name === scenario)?.text ?? "";
        const edited = set.reduce((text, [key, value]) => paceline.edit(text, key, value), text);
        const { error } = JSON.parse(paceline.check(scenario, edited));
        const overview = error ? null : JSON.parse(run(scenario, edited, 1).overview());
        const goodput = overview?.figures.find((/** @type {string[]} */ [figure]) => figure === "goodput")?.[2];
        const right = Number(goodput) > 0 && overview.verdicts.length > 0 && !overview.warning;
        passed += right ? 1 : 0;
        failed += right ? 0 : 1;
        console.log(`${right ? "ok" : "FAULT"}  ${name} ${index + 1}, ${title}: ${error?.message ?? `${goodput} Mb/s`}`);
    }
    if (steps.length !== 5) throw new Error(`${name} has ${steps.length} steps`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

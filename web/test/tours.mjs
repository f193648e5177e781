// Every step of the guided tours: its scenario is accepted, runs, and has a goodput and a verdict. Every
// abbreviation of tours, controls, figures and verdicts has a sentence, and every document of a term exists.
// @ts-check
import { existsSync } from "node:fs";
import { PATTERN, TERMS } from "../page/terms.js";
import { TOURS } from "../page/tours.js";
import { paceline, run } from "./module.mjs";

/** @type {{name: string, text: string}[]} */
const scenarios = JSON.parse(paceline.scenarios());
// Names and units, which are no terms.
const NAMES = /\b(?:5G|3G|IEEE|CSCN|CCNC|VTC|KB|MB|GB|RFC|CSV|JSON|SVG|TOML)\b/g;
/** Texts of the page. @type {string[]} */
const texts = [];
let passed = 0;
let failed = 0;

for (const { name, steps } of TOURS) {
    for (const [index, step] of steps.entries()) {
        const { title, scenario, set, own } = step;
        const text = own ?? scenarios.find((each) => each.name === scenario)?.text ?? "";
        const edited = set.reduce((text, [key, value]) => paceline.edit(text, key, value), text);
        const { error, controls } = JSON.parse(paceline.check(scenario, edited));
        const overview = error ? null : JSON.parse(run(scenario, edited, 1).overview());
        texts.push(title, step.text, ...controls.map((/** @type {{label: string}} */ { label }) => label));
        texts.push(...(overview?.verdicts ?? []), ...(overview?.figures ?? []).map((/** @type {string[]} */ [figure]) => figure));
        const goodput = overview?.figures.find((/** @type {string[]} */ [figure]) => figure === "goodput")?.[2];
        const right = Number(goodput) > 0 && overview.verdicts.length > 0 && !overview.warning;
        passed += right ? 1 : 0;
        failed += right ? 0 : 1;
        console.log(`${right ? "ok" : "FAULT"}  ${name} ${index + 1}, ${title}: ${error?.message ?? `${goodput} Mb/s`}`);
    }
    if (steps.length !== 5) throw new Error(`${name} has ${steps.length} steps`);
}
const unknown = texts.join("\n").replace(PATTERN, "").replace(NAMES, "").match(/\b[A-Z][A-Z0-9-]+s?\b/g) ?? [];
const poor = TERMS.filter(([, sentence, name]) => !/\.$/.test(sentence) || !existsSync(new URL(`../../docs/${name}.md`, import.meta.url)));
failed += unknown.length > 0 || poor.length > 0 ? 1 : 0;
console.log(`without a sentence: ${[...new Set(unknown)].join(", ") || "nothing"}; without a document: ${poor.length}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

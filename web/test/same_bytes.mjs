// Every file of the results of every built-in scenario, from WebAssembly and from the program: the same
// bytes.
// Runs are shortened, the same on both sides; two seeds each.
//
// usage: node web/test/same_bytes.mjs PROGRAM
// @ts-check
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { paceline, run } from "./module.mjs";

const program = process.argv[2];
if (!program) throw new Error("usage: node web/test/same_bytes.mjs PROGRAM");
const SEEDS = 2;
const folder = mkdtempSync(join(tmpdir(), "paceline-web-"));
/** @param {string} version */
const commit = (version) => version.match(/\(([0-9a-f]+|unknown)\)/)?.[1] ?? "";
const commits = [paceline.version(), execFileSync(program, ["--version"], { encoding: "utf8" })].map(commit);
if (commits[0] !== commits[1]) console.log(`built from ${commits.join(" and ")}: compared without the commit`);
let passed = 0;
/** @type {string[]} */
const faults = [];

for (const { name, text } of JSON.parse(paceline.scenarios())) {
    const short = [["run.warmup", "500 ms"], ["run.duration", "3 s"]].reduce(
        (text, [key, value]) => paceline.edit(text, key, value), text);
    const file = join(folder, `${name}.toml`);
    const out = join(folder, name);
    writeFileSync(file, short);
    execFileSync(program, ["run", file, "--seeds", String(SEEDS), "--out", out], { stdio: "ignore" });
    const results = run(name, short, SEEDS);
    const native = readdirSync(out).sort();
    const here = JSON.parse(results.overview()).files.sort();
    let same = JSON.stringify(native) === JSON.stringify(here);
    if (!same) faults.push(`${name}: files ${native} of the program, ${here} of WebAssembly`);
    for (const each of native) {
        const file = results.file(each);
        // The commit stands in summary.json alone, near its start.
        const bytes = file && each === "summary.json" ? Buffer.from(file).toString().replace(commits[0], commits[1]) : file;
        if (!bytes || !readFileSync(join(out, each)).equals(Buffer.from(bytes))) {
            faults.push(`${name}: ${each} differs`);
            same = false;
        }
    }
    passed += same ? 1 : 0;
    console.log(`${same ? "same" : "DIFFERENT"}  ${name}: ${native.length} files`);
}
rmSync(folder, { recursive: true });
faults.forEach((fault) => console.error(fault));
console.log(`${passed} passed, ${faults.length} failed`);
process.exit(faults.length > 0 ? 1 : 0);

// The simulator in a worker: answers requests, and runs a scenario in slices between which it reads messages.
// @ts-check
import init, * as paceline from "./wasm/paceline_web.js";

/** Wall time of a slice, ms. Chosen: messages such as "stop" wait no longer. */
const SLICE_MS = 40;
/** Points of a line. Chosen: one for each pixel or two of a chart. */
const POINTS = 300;
/** Stations up to which each one is drawn. Chosen: more lines cannot be told apart. */
const MOST_LINES = 12;
/** Numbers for each station in a view. */
const FIELDS = 7;

const ready = init({ module_or_path: new URL("./wasm/paceline_web_bg.wasm", import.meta.url) });
/** @type {paceline.Results | undefined} */
let latest;
/** @type {paceline.Results | undefined} */
let kept;
/** Number of the latest run: a run ends when there is a later one. */
let current = 0;

/** The state of several stations as one: sums, and medians of round-trip time and window.
 * @param {number[][]} stations */
function together(stations) {
    const sum = (/** @type {number} */ field) => stations.reduce((all, station) => all + station[field], 0);
    const median = (/** @type {number} */ field) => {
        const values = stations.map((station) => station[field]).filter(Number.isFinite).sort((a, b) => a - b);
        return values.length > 0 ? values[values.length >> 1] : NaN;
    };
    return [sum(0), median(1), median(2), sum(3), sum(4), sum(5), sum(6)];
}

/** The state of the stations: of all, of each group where there are several, and of each of few stations.
 * @param {Float64Array} view @param {number[]} groups the group of each station */
function point(view, groups) {
    const stations = [];
    for (let at = 1; at < view.length; at += FIELDS) stations.push(Array.from(view.subarray(at, at + FIELDS)));
    const count = Math.max(0, ...groups) + 1;
    const own = Array.from({ length: count > 1 ? count : 0 }, (_, group) =>
        together(stations.filter((_, station) => groups[station] === group)));
    return { time: view[0], all: together(stations), groups: own, stations: stations.length > MOST_LINES ? [] : stations };
}

/** Runs to the end of all seeds, or until there is a later run.
 * @param {{run: number, name: string, text: string, seeds: number, duration: number, sample: number, groups:
 * number[]}} request */
async function run({ run, name, text, seeds, duration, sample, groups }) {
    current = run;
    const simulation = new paceline.Simulation(name, text, seeds);
    const interval = Math.max(sample, duration / POINTS);
    let next = interval;
    let going = true;
    const began = performance.now();
    const channel = new MessageChannel();
    while (going) {
        const end = performance.now() + SLICE_MS;
        const points = [];
        do {
            going = simulation.step();
            if (going && simulation.finished === 0 && simulation.time_s >= next - 1e-9) {
                points.push(point(simulation.view(), groups));
                next += interval;
            }
        } while (going && performance.now() < end);
        const progress = (simulation.finished + (going ? simulation.time_s / duration : 0)) / seeds;
        postMessage({ kind: "progress", run, progress, points, time: simulation.time_s, seed: simulation.finished });
        await new Promise((resume) => {
            channel.port1.onmessage = resume;
            channel.port2.postMessage(0);
        });
        if (current !== run) {
            simulation.free();
            return;
        }
    }
    if (latest && latest !== kept) latest.free();
    latest = simulation.finish();
    const seconds = (performance.now() - began) / 1000;
    const answer = { kind: "results", run, seconds, overview: JSON.parse(latest.overview()) };
    postMessage({ ...answer, comparison: kept ? JSON.parse(paceline.compare(kept, latest)) : null });
}

/** Answers of requests by their kind.
 * @type {Record<string, (request: any) => unknown>} */
const ANSWERS = {
    begin: () => ({ version: paceline.version(), scenarios: JSON.parse(paceline.scenarios()) }),
    check: ({ name, text }) => JSON.parse(paceline.check(name, text)),
    edit: ({ text, changes }) => changes.reduce(
        (/** @type {string} */ text, /** @type {[string, string]} */ [key, value]) => paceline.edit(text, key, value), text),
    file: ({ name }) => latest?.file(name),
    ladder: ({ index }) => latest?.ladder(index),
    keep: () => {
        if (kept && kept !== latest) kept.free();
        kept = latest;
    },
    forget: () => {
        if (kept && kept !== latest) kept.free();
        kept = undefined;
    },
    stop: () => {
        current += 1;
    },
};

self.onmessage = async ({ data }) => {
    try {
        await ready;
        if (data.kind === "run") await run(data);
        else postMessage({ kind: "answer", id: data.id, value: ANSWERS[data.kind](data) });
    } catch (error) {
        postMessage({ kind: "failed", id: data.id, run: data.run, message: String(error) });
    }
};

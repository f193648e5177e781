// The page: scenario, controls, run, charts, comparison, link, tours.
// @ts-check

import * as charts from "./charts.js";
import * as controls from "./controls.js";
import * as editor from "./editor.js";
import * as explain from "./explain.js";
import * as output from "./output.js";
import * as series from "./series.js";
import * as share from "./share.js";
import * as simulator from "./simulator.js";
import * as tour from "./tour.js";

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (document.getElementById(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (document.getElementById(id));

/** @type {{name: string, about: string, text: string}[]} */
let scenarios = [];
let name = "scenario";
/** The last check of the text: error or controls, and the length of the run. @type {any} */
let checked = null;
/** The states of the run that is drawn. @type {import("./series.js").Record} */
let record = { points: [], end: 1, warmup: 0, groups: [] };
/** Those of the last run that came to its end. @type {import("./series.js").Record | null} */
let finished = null;
/** Those of run A. @type {import("./series.js").Record | null} */
let kept = null;
/** The step of a tour whose run is A; null for a run kept by hand, which tours leave. @type {object | null} */
let keptFor = null;
/** Windows with room for two columns. */
const wide = matchMedia("(min-width: 64rem)");
let drawing = false;
let typing = 0;
/** Called at the end of the run, whatever it is. */
let ended = () => {};

const seeds = () => Math.min(20, Math.max(1, Math.round(Number(input("seeds").value)) || 1));
const builtIn = () => scenarios.find((scenario) => scenario.text === editor.value());

function status(/** @type {string} */ text) {
    element("status").textContent = text;
}

function draw() {
    drawing = false;
    series.charts(record, kept).forEach((chart, index) => {
        element(`chart-${index}`).innerHTML = charts.svg(chart);
    });
}

/** Draws with the next frame, once for all changes before it. */
function drawSoon() {
    if (!drawing) requestAnimationFrame(draw);
    drawing = true;
}

function makeCharts() {
    element("chart-style").textContent = charts.STYLE;
    element("charts").replaceChildren(...series.TITLES.map(({ title, unit }, index) => {
        const figure = document.createElement("figure");
        const caption = document.createElement("figcaption");
        const strong = document.createElement("strong");
        const save = document.createElement("button");
        strong.textContent = `${title}, ${unit}`;
        Object.assign(save, { type: "button", textContent: "SVG", title: `Save the chart of ${title}` });
        save.setAttribute("aria-label", `Save the chart of ${title} as SVG`);
        save.onclick = () => pictures().slice(index, index + 1).forEach(([file, svg]) => share.save(file, svg, "image/svg+xml"));
        caption.append(strong, save);
        const picture = document.createElement("div");
        picture.id = `chart-${index}`;
        figure.append(caption, picture);
        return figure;
    }));
    ["charts", "choice", "slots"].forEach((id) => explain.mark(element(id)));
}

/** The controls stand beside the results, or in one column behind verdict and charts. */
function arrange() {
    if (wide.matches) element("side").append(element("setup"));
    else element("after").before(element("setup"));
}

/** Names and contents of the charts as files. @returns {[string, string][]} */
function pictures() {
    return series.charts(record, kept).map((chart) =>
        [`${name}-${chart.title.toLowerCase().replace(/\W+/g, "-")}.svg`, charts.file(chart)]);
}

/** Runs the scenario. Resolved at the end of the run. */
function run() {
    if (!checked || checked.error) return Promise.resolve();
    record = { points: [], end: checked.duration_s, warmup: checked.warmup_s, groups: checked.groups };
    const text = editor.value();
    button("stop").disabled = false;
    input("progress").value = "0";
    status(`Running ${name} …`);
    const groups = checked.group_of_stations;
    simulator.start({ name, text, seeds: seeds(), duration: checked.duration_s, sample: checked.sample_s, groups });
    drawSoon();
    ended();
    return new Promise((resolve) => (ended = () => resolve(undefined)));
}

/** Checks the text and shows its controls or its error; runs it if wished. */
async function check(/** @type {boolean} */ runIt) {
    const text = editor.value();
    const result = await simulator.ask("check", { name, text });
    if (text !== editor.value()) return;
    checked = result;
    editor.setProblem(result.error);
    button("run").disabled = Boolean(result.error);
    const own = builtIn();
    /** @type {HTMLSelectElement} */ (element("built-in")).value = own?.name ?? "";
    // As of the built-in ones: the comment at the head.
    const head = text.match(/^(?:#.*\n)+/)?.[0].replace(/^# ?/gm, "").replace(/\n/g, " ");
    element("about").textContent = own?.about ?? head ?? "A scenario of your own.";
    explain.mark(element("about"));
    if (result.error) {
        status("The scenario has an error.");
        return;
    }
    controls.show(result.controls, change);
    element("slots").hidden = !result.slots;
    // As an image: its style sheet is its own.
    const picture = /** @type {HTMLImageElement} */ (element("slots-picture"));
    picture.alt = result.slots_in_words ?? "";
    performance.mark("first-picture");
    if (result.slots) picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(result.slots)}`;
    status(`Ready: ${result.stations} station${result.stations === 1 ? "" : "s"}, ${result.duration_s} s.`);
    if (runIt) await run();
}

/** Shows another scenario. */
async function open(/** @type {string} */ nextName, /** @type {string} */ text, /** @type {boolean} */ runIt) {
    name = nextName;
    editor.setValue(text);
    await check(runIt);
}

/** Changes values of keys in the text. */
async function change(/** @type {string} */ key, /** @type {string} */ value) {
    try {
        const text = await simulator.ask("edit", { text: editor.value(), changes: [[key, value]] });
        editor.setValue(text);
        await check(input("auto").checked);
    } catch (error) {
        editor.setProblem({ message: String(error), line: null });
    }
}

/** Opens the scenario of a tour's step and runs it. */
async function runStep(/** @type {import("./tour.js").Step} */ { scenario, set, own }) {
    const found = scenarios.find((each) => each.name === scenario);
    const text = await simulator.ask("edit", { text: own ?? found?.text ?? "", changes: set });
    await open(scenario, text, true);
}

/** Runs a step of a tour as B, over the run of the step `base` as A. A run that was kept by hand stays A. */
async function step(/** @type {import("./tour.js").Step} */ now, /** @type {import("./tour.js").Step | null} */ base) {
    const own = kept && !keptFor;
    if (!own && base !== keptFor) {
        await forget();
        if (base) {
            await runStep(base);
            await keep(base);
        }
    }
    await runStep(now);
}

function showKept(/** @type {string} */ text) {
    element("kept").textContent = text;
    button("forget").disabled = !kept;
    drawSoon();
}

async function forget() {
    await simulator.ask("forget");
    kept = keptFor = null;
    output.showComparison(null);
    showKept("Then change something: the next run is B, drawn over A.");
}

/** Keeps the last run as A, by hand or for a tour. */
async function keep(/** @type {import("./tour.js").Step | null} */ base) {
    if (!finished) return;
    await simulator.ask("keep");
    kept = finished;
    keptFor = base;
    showKept(base ? `A, dashed: “${base.title}”.` : `A, dashed: ${name} as it was kept. It stays A, also through a tour.`);
}

async function shareLink() {
    const hash = await share.fragment({ name, text: editor.value(), seeds: seeds() });
    history.replaceState(null, "", hash);
    input("link").value = location.href;
    element("link-box").hidden = false;
    input("link").select();
    await navigator.clipboard?.writeText(location.href).then(() => status("The link is copied."), () => undefined);
}

function listen() {
    element("built-in").addEventListener("change", (event) => {
        const chosen = /** @type {HTMLSelectElement} */ (event.target).value;
        const found = scenarios.find((scenario) => scenario.name === chosen);
        if (found) open(found.name, found.text, input("auto").checked);
    });
    editor.listen(() => {
        clearTimeout(typing);
        typing = window.setTimeout(() => check(false), 200);
    }, (file, text) => open(file, text, false));
    button("run").onclick = () => run();
    button("stop").onclick = async () => {
        await simulator.stop();
        ended();
        button("stop").disabled = true;
        status("Stopped.");
    };
    button("keep").onclick = () => keep(null);
    button("forget").onclick = forget;
    button("share").onclick = shareLink;
    window.addEventListener("hashchange", () => fromLink(location.hash));
    simulator.on("progress", (message) => {
        input("progress").value = String(message.progress);
        record.points.push(...message.points);
        const seed = seeds() > 1 ? `, seed ${message.seed + 1} of ${seeds()}` : "";
        status(`Running ${name}: ${message.time.toFixed(1)} of ${checked.duration_s} s${seed}`);
        if (message.points.length > 0) drawSoon();
    });
    simulator.on("results", ({ seconds, overview, comparison }) => {
        input("progress").value = "1";
        button("stop").disabled = true;
        finished = record;
        element("compare").hidden = false;
        output.showOverview(overview);
        output.showComparison(comparison);
        output.showLadders(overview.ladders);
        output.showDownloads(name, editor.value(), overview.files, pictures);
        output.showCommand(name, builtIn()?.name ?? null, overview.seeds.length);
        status(`Done: ${checked.duration_s * overview.seeds.length} s simulated in ${seconds.toFixed(1)} s.`);
        drawSoon();
        ended();
    });
    simulator.on("failed", ({ message }) => {
        button("stop").disabled = true;
        status(`The run has failed: ${message}`);
        ended();
    });
}

/** Opens the scenario that a link holds. Whether there is one. */
async function fromLink(/** @type {string} */ hash) {
    try {
        const shared = await share.read(hash);
        if (!shared) return false;
        input("seeds").value = String(Math.min(20, Math.max(1, shared.seeds)));
        await open(shared.name, shared.text, input("auto").checked);
    } catch (error) {
        editor.setProblem({ message: error instanceof Error ? error.message : String(error), line: null });
        return false;
    }
    return true;
}

async function begin() {
    arrange();
    wide.addEventListener("change", arrange);
    explain.begin(element("terms"), element("documents"), tour.DOCUMENTS);
    makeCharts();
    drawSoon();
    listen();
    const answer = await simulator.ask("begin");
    scenarios = answer.scenarios;
    element("version").textContent = `Version ${answer.version}`;
    const select = /** @type {HTMLSelectElement} */ (element("built-in"));
    select.add(new Option("(own)", ""));
    scenarios.forEach((scenario) => select.add(new Option(scenario.name, scenario.name)));
    tour.begin(step);
    const wanted = new URLSearchParams(location.hash.slice(1)).get("scenario");
    const first = scenarios.find((scenario) => scenario.name === (wanted ?? "private-5g")) ?? scenarios[0];
    if (!(await fromLink(location.hash))) await open(first.name, first.text, true);
}

begin().catch((error) => status(`The simulator cannot be loaded: ${error}`));

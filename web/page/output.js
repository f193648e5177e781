// What a finished run shows beside its charts: verdict, figures, comparison, downloads, command.
// @ts-check

import { ask } from "./simulator.js";
import { save } from "./share.js";
import { mark } from "./explain.js";

/**
 * @typedef {{figures: [string, string, string][], verdicts: string[], warning: string | null, seeds:
 * number[], files: string[]}} Overview
 */
/**
 * @typedef {{words: string[], labels: string[], text: string, rows: [string, string, [number, number]][]}}
 * Comparison
 */

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** Figures on the tiles, by their names in the table of totals, with short names. */
const TILES = [
    ["goodput", "Goodput"], ["upload", "Upload"], ["RTT after the warm-up, mean", "Round-trip time, mean"],
    ["RTT after the warm-up, 95th percentile", "Round-trip time, 95%"], ["segments retransmitted", "Retransmitted"],
    ["ACKs discarded", "ACKs dropped by the filter"], ["Jain index", "Fairness (Jain)"],
];

/** @param {string[]} cells @param {string} tag */
function row(cells, tag = "td") {
    const line = document.createElement("tr");
    line.append(...cells.map((text) => {
        const cell = document.createElement(tag);
        cell.textContent = text;
        if (tag === "th") cell.setAttribute("scope", "col");
        return cell;
    }));
    return line;
}

/** @param {string[]} texts */
function items(texts) {
    return texts.map((text) => {
        const item = document.createElement("li");
        item.textContent = text;
        return item;
    });
}

/** @param {Overview} overview */
export function showOverview(overview) {
    element("verdict").hidden = overview.verdicts.length === 0;
    element("verdicts").replaceChildren(...items(overview.verdicts));
    element("warning").hidden = !overview.warning;
    element("warning").textContent = overview.warning ?? "";
    const tiles = TILES.flatMap(([name, title]) => {
        const found = overview.figures.find((figure) => figure[0] === name);
        if (!found) return [];
        const tile = document.createElement("div");
        const [term, value, unit] = ["dt", "dd", "small"].map((tag) => document.createElement(tag));
        term.textContent = title;
        unit.textContent = ` ${found[1]}`;
        value.append(found[2], unit);
        tile.append(term, value);
        return [tile];
    });
    element("tiles").replaceChildren(...tiles);
    const lines = overview.figures.map(([name, unit, value]) => row([name, value, unit]));
    element("figures").replaceChildren(row(["figure", "value", "unit"], "th"), ...lines);
    element("after").hidden = false;
    ["verdict", "tiles", "figures"].forEach((id) => mark(element(id)));
}

/** @param {Comparison | null} comparison */
export function showComparison(comparison) {
    element("comparison").hidden = element("words").hidden = !comparison;
    if (!comparison) return;
    // The change and its effect first, the rest beside the table.
    element("words").replaceChildren(...items(comparison.words.slice(0, 2)));
    element("more-words").replaceChildren(...items(comparison.words.slice(2)));
    const number = (/** @type {number} */ value) => (value === null ? "" : Number(value.toPrecision(4)).toString());
    const lines = comparison.rows.map(([name, unit, [a, b]]) => {
        const change = a ? `${b >= a ? "+" : "−"}${Math.abs((100 * (b - a)) / a).toFixed(1)}%` : "";
        return row([name, number(a), number(b), change, unit]);
    });
    const [a, b] = comparison.labels;
    const head = row(["figure", `A: ${a}`, `B: ${b}`, "B over A", "unit"], "th");
    element("compare-table").replaceChildren(head, ...lines);
}

/** Buttons that save the scenario, the files of the results, and the charts.
 * @param {string} name @param {string} text @param {string[]} files @param {() => [string, string][]}
 * pictures */
export function showDownloads(name, text, files, pictures) {
    const button = (/** @type {string} */ label, /** @type {() => void} */ action) => {
        const made = document.createElement("button");
        made.type = "button";
        made.textContent = label;
        made.onclick = action;
        return made;
    };
    const own = files.filter((file) => file !== "resolved.toml").map((file) => button(file, async () => {
        save(`${name}-${file}`, await ask("file", { name: file }), file.endsWith(".json") ? "application/json" : "text/csv");
    }));
    element("downloads").replaceChildren(
        button(`${name}.toml`, () => save(`${name}.toml`, text, "application/toml")),
        ...own,
        button("charts as SVG", () => pictures().forEach(([file, svg]) => save(file, svg, "image/svg+xml"))),
    );
}

/** Number of the packet whose way is shown, and how many there are. */
let shown = 0;
let ladders = 0;

/** Shows the way of a packet. @param {number} index */
async function showLadder(index) {
    shown = Math.min(Math.max(index, 0), ladders - 1);
    const found = await ask("ladder", { index: shown });
    if (!found) return;
    const [svg, words] = found;
    const picture = /** @type {HTMLImageElement} */ (element("ladder"));
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    picture.alt = words;
    element("ladder-words").textContent = words;
    /** @type {HTMLButtonElement} */ (element("ladder-earlier")).disabled = shown === 0;
    /** @type {HTMLButtonElement} */ (element("ladder-later")).disabled = shown + 1 >= ladders;
}

/** Shows the ladders of a run, if it has any. @param {number} count */
export function showLadders(count) {
    ladders = count;
    element("ladder-box").hidden = count === 0;
    element("ladder-earlier").onclick = () => showLadder(shown - 1);
    element("ladder-later").onclick = () => showLadder(shown + 1);
    if (count > 0) showLadder(0);
}

/**
 * The command that repeats the run. @param {string} name @param {string | null} builtIn @param {number}
 * seeds
 */
export function showCommand(name, builtIn, seeds) {
    element("command").textContent = `paceline run ${builtIn ?? `${name}.toml`} --seeds ${seeds} --out results`;
}

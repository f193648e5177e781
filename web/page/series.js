// The charts of a run: from the states of the stations to lines over time.
// @ts-check

/** @typedef {{time: number, all: number[], groups: number[][], stations: number[][]}} Point */
/** @typedef {import("./charts.js").Chart} Chart */
/** @typedef {{points: Point[], end: number, warmup: number, groups: string[]}} Record */

/** Styles of the groups' lines, one after the other. */
const GROUP_STYLES = ["b", "c", "d", "e", "f"];

/** Places of the fields in the state of a station; see `view` in crates/web. */
const [BYTES, RTT, WINDOW, DOWN, UP, DISCARDED, SENT] = [0, 1, 2, 3, 4, 5, 6];

/** Values over time of a list of states. @param {number} field @param {number} factor */
const state = (field, factor) => (/** @type {number[]} */ _, /** @type {number[]} */ now) => now[field] * factor;
/** Changes per second. @param {number} field @param {number} factor */
const rate = (field, factor) => (/** @type {number[]} */ was, /** @type {number[]} */ now, /** @type {number} */ seconds) =>
    ((now[field] - was[field]) * factor) / seconds;

/** The charts: title, unit, lines (name, values), and whether each station has a faint line. */
const CHARTS = [
    { title: "Goodput", unit: "Mb/s", lines: [["all stations", rate(BYTES, 8e-6)]], faint: rate(BYTES, 8e-6) },
    { title: "Round-trip time", unit: "ms", lines: [["median station", state(RTT, 1)]], faint: state(RTT, 1) },
    { title: "Congestion window", unit: "kB", lines: [["median station", state(WINDOW, 1e-3)]], faint: state(WINDOW, 1e-3) },
    { title: "Downlink queue", unit: "kB", lines: [["all stations", state(DOWN, 1e-3)]], faint: state(DOWN, 1e-3) },
    { title: "Uplink queue", unit: "kB", lines: [["all stations", state(UP, 1e-3)]], faint: state(UP, 1e-3) },
    { title: "ACKs", unit: "1/s", lines: [["sent", rate(SENT, 1)], ["dropped by the filter", rate(DISCARDED, 1)]], faint: null },
];

/** Titles and units of the charts. */
export const TITLES = CHARTS.map(({ title, unit }) => ({ title, unit }));

/** @param {{time: number, values: number[]}[]} states @param {any} value @returns {[number, number][]} */
function over(states, value) {
    return states.slice(1).map(({ time, values }, index) => {
        const before = states[index];
        return [time, value(before.values, values, time - before.time)];
    });
}

/** @param {Record} record @param {(point: Point) => number[]} of */
function states(record, of) {
    const zero = { time: 0, values: [0, NaN, 0, 0, 0, 0, 0] };
    return [zero, ...record.points.map((point) => ({ time: point.time, values: of(point) }))];
}

/** A line for each group of stations. @param {Record} record @param {any} value */
function ofGroups(record, value) {
    return record.groups.map((name, group) => ({
        name,
        style: GROUP_STYLES[group % GROUP_STYLES.length],
        points: over(states(record, (point) => point.groups[group]), value),
    }));
}

/** The charts of a run, with a line for each of several groups of stations where it has one line, or over those of the kept run if there is one.
 * @param {Record} record @param {Record | null} kept @returns {Chart[]} */
export function charts(record, kept) {
    const count = record.points[0]?.stations.length ?? 0;
    const all = states(record, (point) => point.all);
    const before = kept && states(kept, (point) => point.all);
    return CHARTS.map(({ title, unit, lines, faint }) => {
        const single = lines.length === 1;
        const grouped = single && !kept && record.groups.length > 1;
        const drawn = grouped ? ofGroups(record, lines[0][1]) : lines.map(([name, value], index) => ({
            name: kept ? (single ? "B" : `B, ${name}`) : count === 1 && single ? "station" : String(name),
            style: index === 0 ? "b" : "c",
            points: over(all, value),
        }));
        const earlier = (before ? lines.slice(0, single ? 1 : lines.length) : []).map(([name, value], index) => ({
            name: single ? "A" : `A, ${name}`,
            style: index === 0 ? "a" : "a c",
            points: over(before ?? [], value),
        }));
        const each = faint && count > 1 && !kept ? Array.from({ length: count }, (_, station) =>
            over(states(record, (point) => point.stations[station]), faint)) : [];
        const warmup = record.warmup;
        return { title, unit, lines: [...earlier, ...drawn], faint: each, end: Math.max(record.end, kept?.end ?? 0), warmup };
    });
}

// The charts of a run: from the states of the stations to lines over time.
// @ts-check

/** @typedef {{time: number, all: number[], groups: number[][], stations: number[][]}} Point */
/** @typedef {import("./charts.js").Chart} Chart */
/** @typedef {import("./charts.js").Line} Line */
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

/** The charts: title, unit, lines (name, values), and whether each station has a faint line.
 * @type {{title: string, unit: string, lines: [string, any][], faint: any}[]} */
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

/** The lines of a run in a chart: one for each of several groups where the chart has a single value, else one
 * for each value. @param {Record} record @param {[string, any][]} values @param {string} run "A", "B" or ""
 * @param {string[]} groups the groups whose colours they have @returns {Line[]} */
function lines(record, values, run, groups) {
    const dash = run === "A" ? " dash" : "";
    const named = (/** @type {string} */ name) => (run ? `${run}, ${name}` : name);
    if (values.length === 1 && record.groups.length > 1) {
        return record.groups.map((name, group) => {
            const place = groups.indexOf(name) < 0 ? group : groups.indexOf(name);
            const points = over(states(record, (point) => point.groups[group]), values[0][1]);
            return { name: named(name), style: GROUP_STYLES[place % GROUP_STYLES.length] + dash, points };
        });
    }
    const all = states(record, (point) => point.all);
    const count = record.points[0]?.stations.length ?? 0;
    return values.map(([name, value], index) => ({
        name: values.length > 1 ? named(name) : run || (count === 1 ? "station" : name),
        style: (index === 0 ? (run === "A" ? "a" : "b") : "c") + dash,
        points: over(all, value),
    }));
}

/** The charts of a run, over those of the kept run if there is one. @param {Record} record
 * @param {Record | null} kept @returns {Chart[]} */
export function charts(record, kept) {
    const count = record.points[0]?.stations.length ?? 0;
    return CHARTS.map(({ title, unit, lines: values, faint }) => {
        const earlier = kept ? lines(kept, values, "A", record.groups) : [];
        const drawn = lines(record, values, kept ? "B" : "", record.groups);
        const each = faint && count > 1 && !kept ? Array.from({ length: count }, (_, station) =>
            over(states(record, (point) => point.stations[station]), faint)) : [];
        const end = Math.max(record.end, kept?.end ?? 0);
        return { title, unit, lines: [...earlier, ...drawn], faint: each, end, warmup: record.warmup };
    });
}

// Line charts as SVG: axes with units, a line for each run, a faint one for each station.
// @ts-check

const WIDTH = 370;
const HEIGHT = 230;
const LEFT = 52;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 40;
/** Height of a row of the legend; a chart grows by those beyond the first. */
const ROW = 18;
/** The style sheet of a chart, which a saved chart contains. */
export const STYLE = `
.ground{fill:#fff}.ink{fill:#1b1f24}.faint{fill:#5b6470}text{font:13px system-ui,sans-serif}
.axis{stroke:#8a939e;fill:none}.grid{stroke:#e3e6ea;fill:none}.warm{fill:#eceef1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.a{stroke:#b34700}.dash{stroke-dasharray:5 3}.b{stroke:#005a9c}
.c{stroke:#00735c}.d{stroke:#8f3f78}.e{stroke:#8a5a00}.f{stroke:#444b54}.station{stroke:#9db7cf;stroke-width:1}.fa{fill:#b34700}.fb{fill:#005a9c}.fc{fill:#00735c}
.down{fill:#005a9c}.up{fill:#b34700}.soft{opacity:.35}
@media(prefers-color-scheme:dark){.ground{fill:#14171b}.ink{fill:#e8eaed}.faint{fill:#a3acb7}.axis{stroke:#6d7681}
.grid{stroke:#2b3138}.warm{fill:#22272d}.a{stroke:#f0a050}.b{stroke:#62b6f2}.c{stroke:#4fd1ac}.d{stroke:#e08fc0}.e{stroke:#f0b83c}.f{stroke:#c8ced6}.station{stroke:#3d5a73}
.fa{fill:#f0a050}.fb{fill:#62b6f2}.fc{fill:#4fd1ac}.down{fill:#62b6f2}.up{fill:#f0a050}}`;

/** @typedef {{name: string, style: string, points: [number, number][]}} Line */
/**
 * @typedef {{title: string, unit: string, lines: Line[], faint: [number, number][][], end: number, warmup:
 * number}} Chart
 */

/** @param {string} text */
export function escape(text) {
    return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Round places from zero to `high` or beyond. @param {number} high */
export function ticks(high) {
    const span = high > 0 ? high : 1;
    const power = 10 ** Math.floor(Math.log10(span / 4));
    const step = [1, 2, 5, 10].map((n) => n * power).find((step) => span / step <= 4) ?? power * 10;
    return Array.from({ length: Math.ceil(span / step - 1e-9) + 1 }, (_, index) => index * step);
}

/** A number with three digits, without an exponent. @param {number} value */
export function short(value) {
    const decimals = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toFixed(decimals);
}

/** A label of an axis. @param {number} value */
function label(value) {
    return value >= 10000 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(6)));
}

/** Measures texts of a chart. */
const pen = document.createElement("canvas").getContext("2d");
if (pen) pen.font = "13px system-ui, sans-serif";

/** The text, shortened to a width, and its own width. @param {string} text @param {number} most */
function fitted(text, most) {
    const width = (/** @type {string} */ part) => pen?.measureText(part).width ?? 0;
    let end = text.length;
    const part = () => (end < text.length ? `${text.slice(0, end)}…` : text);
    while (end > 1 && width(part()) > most) end -= 1;
    return { shown: part(), width: width(part()) };
}

/** The legend as SVG, and the number of its rows. @param {Chart} chart */
function legend(chart) {
    if (chart.lines.length < 2) return { text: "", rows: 0 };
    let [x, rows] = [LEFT, 1];
    const text = chart.lines.map(({ name, style }) => {
        // A stroke of 18 px stands before the name.
        const { shown, width } = fitted(name, WIDTH - LEFT - RIGHT - 23);
        if (x > LEFT && x + 23 + width > WIDTH - RIGHT) [x, rows] = [LEFT, rows + 1];
        const y = TOP + 4 + ROW * (rows - 1);
        const entry = `<path class="line ${style}" d="M${x} ${y}h18"/><text class="ink" x="${x + 23}" y="${y + 4}">${escape(shown)}</text>`;
        x += 23 + width + 14;
        return entry;
    }).join("");
    return { text, rows };
}

/** The chart as SVG. @param {Chart} chart */
export function svg(chart) {
    const values = [...chart.lines.map((line) => line.points), ...chart.faint].flat().map(([, y]) => y);
    const high = values.reduce((most, y) => (y > most ? y : most), 0);
    const [across, upwards] = [ticks(chart.end), ticks(high * 1.02)];
    const [right, bottom] = [Math.max(chart.end, 1e-9), upwards[upwards.length - 1] || 1];
    const x = (/** @type {number} */ time) => LEFT + ((WIDTH - LEFT - RIGHT) * time) / right;
    const names = legend(chart);
    const top = TOP + ROW * names.rows;
    const height = HEIGHT + ROW * Math.max(0, names.rows - 1);
    const y = (/** @type {number} */ value) => height - BOTTOM - ((height - BOTTOM - top) * value) / bottom;
    const path = (/** @type {[number, number][]} */ points) => {
        let pen = "M";
        return points.map(([time, value]) => {
            if (!Number.isFinite(value)) {
                pen = "M";
                return "";
            }
            const part = `${pen}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
            pen = "L";
            return part;
        }).join("");
    };
    const line = (/** @type {string} */ style, /** @type {[number, number][]} */ points) =>
        `<path class="line ${style}" d="${path(points)}"/>`;
    const parts = [`<rect class="ground" width="${WIDTH}" height="${height}"/>`];
    if (chart.warmup > 0) {
        parts.push(`<rect class="warm" x="${LEFT}" y="${top}" width="${(x(Math.min(chart.warmup, right)) - LEFT).toFixed(1)}" height="${height - BOTTOM - top}"/>`);
    }
    for (const at of upwards) {
        parts.push(`<path class="grid" d="M${LEFT} ${y(at).toFixed(1)}H${WIDTH - RIGHT}"/>`);
        parts.push(`<text class="faint" text-anchor="end" x="${LEFT - 6}" y="${(y(at) + 4).toFixed(1)}">${label(at)}</text>`);
    }
    for (const at of across.filter((at) => at <= right * 1.001)) {
        parts.push(`<path class="axis" d="M${x(at).toFixed(1)} ${height - BOTTOM}v4"/>`);
        parts.push(`<text class="faint" text-anchor="middle" x="${x(at).toFixed(1)}" y="${height - BOTTOM + 17}">${label(at)}</text>`);
    }
    parts.push(`<path class="axis" d="M${LEFT} ${top}V${height - BOTTOM}H${WIDTH - RIGHT}"/>`);
    parts.push(`<text class="faint" text-anchor="middle" x="${(LEFT + WIDTH) / 2}" y="${height - 5}">time, s${chart.warmup > 0 ? " (grey: warm-up)" : ""}</text>`);
    chart.faint.forEach((points) => parts.push(line("station", points)));
    chart.lines.forEach(({ style, points }) => parts.push(line(style, points)));
    parts.push(names.text);
    const last = chart.lines.map(({ name, points }) => {
        const value = points.length > 0 ? points[points.length - 1][1] : NaN;
        return Number.isFinite(value) ? `${name} at the end ${short(value)} ${chart.unit}` : "";
    }).filter(Boolean).join(", ");
    const name = `${chart.title} in ${chart.unit} over time${last && `: ${last}`}`;
    return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" aria-label="${escape(name)}" viewBox="0 0 ${WIDTH} ${height}">${parts.join("")}</svg>`;
}

/** The chart as a file. @param {Chart} chart */
export function file(chart) {
    const text = svg(chart);
    const end = text.indexOf(">") + 1;
    const title = `<title>${escape(`${chart.title}, ${chart.unit}`)}</title>`;
    return `${text.slice(0, end)}<style>${STYLE}</style>${title}${text.slice(end)}\n`;
}

"use strict";
// Tables are sorted by a click on a heading: as numbers where all cells of the column are numbers.
const keyOf = (cell) => {
  if (cell.dataset.key) return Number(cell.dataset.key);
  const text = cell.textContent.replace(/\u2009/g, "").trim();
  if (text === "" || text === "-") return null;
  return /^[+-]?\d+(\.\d+)?( \u00b1 .*)?$/.test(text) ? parseFloat(text) : text;
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
};
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const lines = [...body.rows].map((row) => [keyOf(row.cells[head.cellIndex]), row]);
    // Empty cells come last in both orders.
    lines.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
    body.append(...lines.map(([, row]) => row));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  });
}
// A table that is wider than the page says so, and can be scrolled by keys.
for (const box of document.querySelectorAll("div.scroll")) {
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = "More columns: scroll the table sideways \u2192";
  box.before(hint);
  new ResizeObserver(() => {
    hint.hidden = box.scrollWidth <= box.clientWidth;
    if (hint.hidden) box.removeAttribute("tabindex");
    else box.tabIndex = 0;
  }).observe(box);
}
// Marks show their <title> at once and on touch, which a browser's own tooltip does not.
const tip = document.createElement("div");
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("figure svg title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
const show = (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const width = document.documentElement.clientWidth;
  tip.style.left = "0px";
  tip.style.top = `${event.pageY + 16}px`;
  tip.style.left = `${Math.max(4, Math.min(event.pageX + 12, width - tip.offsetWidth - 4))}px`;
};
for (const kind of ["pointerover", "pointerdown", "pointermove"]) document.addEventListener(kind, show);
// A picture as a file of its own: with its title, its tooltips and the styles of both colour schemes.
const file = (figure) => {
  const svg = figure.querySelector("svg").cloneNode(true);
  const make = (name, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    element.textContent = text;
    return element;
  };
  for (const mark of svg.querySelectorAll("[data-tip]")) {
    mark.prepend(make("title", mark.dataset.tip));
    mark.removeAttribute("data-tip");
  }
  const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const lines = [""];
  for (const word of figure.querySelector("figcaption span").textContent.split(" ")) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (line.length * 7.2 > width - 16) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  const band = 18 * lines.length + 4;
  svg.setAttribute("viewBox", `${left} ${top - band} ${width} ${height + band}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height + band);
  const ground = svg.querySelector(".ground");
  ground?.setAttribute("y", top - band);
  ground?.setAttribute("height", height + band);
  lines.forEach((line, index) => {
    const text = make("text", line);
    text.setAttribute("class", "ink");
    text.setAttribute("font-weight", "600");
    text.setAttribute("x", left + 8);
    text.setAttribute("y", top - band + 16 + 18 * index);
    svg.append(text);
  });
  svg.prepend(make("style", document.getElementById("picture-style").textContent));
  return new XMLSerializer().serializeToString(svg);
};
for (const figure of document.querySelectorAll("figure")) {
  const caption = figure.querySelector("figcaption");
  const title = caption.querySelector("span").textContent;
  const button = document.createElement("button");
  button.textContent = "SVG";
  button.setAttribute("aria-label", `Save the picture "${title}" as SVG`);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([file(figure)], { type: "image/svg+xml" }));
    link.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  caption.append(button);
}

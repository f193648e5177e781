// The editor: a text with line numbers, which marks the line of an error.
// @ts-check

const LINE_PX = 19;
const text = /** @type {HTMLTextAreaElement} */ (document.getElementById("text"));
const gutter = /** @type {HTMLElement} */ (document.getElementById("gutter"));
const problem = /** @type {HTMLElement} */ (document.getElementById("problem"));
const box = /** @type {HTMLDetailsElement} */ (document.getElementById("editor-box"));
let badLine = 0;

function drawGutter() {
    const count = text.value.split("\n").length;
    gutter.replaceChildren(...Array.from({ length: count }, (_, index) => {
        const line = document.createElement("span");
        line.className = index + 1 === badLine ? "bad" : "";
        line.textContent = `${index + 1}\n`;
        return line;
    }));
    scroll();
}

function scroll() {
    gutter.scrollTop = text.scrollTop;
}

/** The text. */
export function value() {
    return text.value;
}

/** @param {string} next */
export function setValue(next) {
    if (text.value !== next) text.value = next;
    drawGutter();
}

/** Moves the cursor to a line and shows it. @param {number} line */
function goTo(line) {
    box.open = true;
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((at, each) => at + each.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    text.scrollTop = Math.max(0, (line - 5) * LINE_PX);
}

/** Shows the error of the scenario, or none.
 * @param {{message: string, line: number | null} | null} error */
export function setProblem(error) {
    badLine = error?.line ?? 0;
    problem.hidden = !error;
    text.setAttribute("aria-invalid", String(Boolean(error)));
    text.style.setProperty("--bad-top", badLine > 0 ? `${6 + (badLine - 1) * LINE_PX}px` : "-99px");
    problem.replaceChildren(error?.message ?? "");
    if (error && badLine > 0) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `Go to line ${badLine}`;
        button.onclick = () => goTo(badLine);
        problem.append(" ", button);
    }
    drawGutter();
}

/** Calls `changed` after each change of the text by hand, and `dropped` with a file.
 * @param {() => void} changed @param {(name: string, text: string) => void} dropped */
export function listen(changed, dropped) {
    const open = /** @type {HTMLInputElement} */ (document.getElementById("open"));
    const editor = /** @type {HTMLElement} */ (document.getElementById("editor"));
    const read = async (/** @type {File | undefined} */ file) => {
        if (file) dropped(file.name.replace(/\.toml$/, ""), await file.text());
    };
    text.addEventListener("input", () => {
        drawGutter();
        changed();
    });
    text.addEventListener("scroll", scroll);
    open.addEventListener("change", () => read(open.files?.[0]));
    document.addEventListener("dragover", (event) => {
        event.preventDefault();
        editor.classList.add("drop");
    });
    document.addEventListener("dragleave", () => editor.classList.remove("drop"));
    document.addEventListener("drop", (event) => {
        event.preventDefault();
        editor.classList.remove("drop");
        read(event.dataTransfer?.files[0]);
    });
}

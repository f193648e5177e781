// The controls of the few keys that matter. Each changes its value in the scenario's text.
// @ts-check

/**
 * @typedef {{key: string, label: string, value: string, range: [number, number] | null, choices: {value:
 * string, meaning: string}[]}} Control
 */

const box = /** @type {HTMLElement} */ (document.getElementById("controls"));

/** @param {Control} control @param {(key: string, value: string) => void} change */
function slider(control, change) {
    const input = document.createElement("input");
    const [least, most] = control.range ?? [1, 1];
    Object.assign(input, { type: "range", min: least, max: most, step: 1, value: control.value });
    const output = document.createElement("output");
    output.textContent = control.value;
    input.setAttribute("aria-label", control.label);
    input.addEventListener("input", () => (output.textContent = input.value));
    input.addEventListener("change", () => change(control.key, input.value));
    return [input, output];
}

/** @param {Control} control @param {(key: string, value: string) => void} change */
function select(control, change) {
    const input = document.createElement("select");
    for (const { value } of control.choices) input.add(new Option(value, value, false, value === control.value));
    input.addEventListener("change", () => change(control.key, input.value));
    const meaning = document.createElement("span");
    meaning.className = "meaning";
    meaning.textContent = control.choices.find(({ value }) => value === control.value)?.meaning ?? "";
    return [input, meaning];
}

/** Shows the controls; the focus stays at its key.
 * @param {Control[]} controls @param {(key: string, value: string) => void} change */
export function show(controls, change) {
    const focused = document.activeElement?.id;
    box.replaceChildren(...controls.map((control) => {
        const label = document.createElement("label");
        label.className = "field";
        const [input, more] = (control.range ? slider : select)(control, change);
        input.id = `key-${control.key}`;
        label.title = control.key;
        const words = document.createElement("span");
        words.append(`${control.label}: `, more);
        if (control.range) label.append(words, input);
        else label.append(control.label, input, more);
        return label;
    }));
    if (focused?.startsWith("key-")) document.getElementById(focused)?.focus();
}

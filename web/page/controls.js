// The controls of the few keys that matter. Each changes its value in the scenario's text.
// @ts-check

import { mark } from "./explain.js";

/** @typedef {{value: string, meaning: string}} Choice */
/** @typedef {{key: string, label: string, value: string, ordered: boolean, choices: Choice[]}} Control */

const box = /** @type {HTMLElement} */ (document.getElementById("controls"));

/** A slider steps through the values. @param {Control} control @param {(key: string, value: string) => void} change */
function slider({ key, label, value, choices }, change) {
    const input = document.createElement("input");
    const at = choices.findIndex((choice) => choice.value === value);
    Object.assign(input, { type: "range", min: 0, max: choices.length - 1, step: 1, value: at });
    const output = document.createElement("output");
    const show = () => {
        const { value, meaning } = choices[Number(input.value)];
        output.textContent = meaning || value;
        input.setAttribute("aria-valuetext", meaning || value);
    };
    show();
    input.setAttribute("aria-label", label);
    input.addEventListener("input", show);
    input.addEventListener("change", () => change(key, choices[Number(input.value)].value));
    return [input, output];
}

/** @param {Control} control @param {(key: string, value: string) => void} change */
function select({ key, value, choices }, change) {
    const input = document.createElement("select");
    for (const choice of choices) input.add(new Option(choice.value, choice.value, false, choice.value === value));
    input.addEventListener("change", () => change(key, input.value));
    const meaning = document.createElement("span");
    meaning.className = "meaning";
    meaning.textContent = choices.find((choice) => choice.value === value)?.meaning ?? "";
    return [input, meaning];
}

/** Shows the controls; the focus stays at its key.
 * @param {Control[]} controls @param {(key: string, value: string) => void} change */
export function show(controls, change) {
    const focused = document.activeElement?.id;
    box.replaceChildren(...controls.map((control) => {
        const label = document.createElement("label");
        label.className = "field";
        const [input, more] = (control.ordered ? slider : select)(control, change);
        input.id = `key-${control.key}`;
        const words = document.createElement("span");
        words.append(control.label);
        if (control.ordered) words.append(": ", more);
        label.append(words, input);
        if (!control.ordered) label.append(more);
        return label;
    }));
    mark(box);
    if (focused?.startsWith("key-")) document.getElementById(focused)?.focus();
}

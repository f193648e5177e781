// Guided tours: five steps for each of the five systems, the last one with the setting of its paper.
// @ts-check

import { TOURS } from "./tours.js";

/**
 * @typedef {{title: string, text: string, scenario: string, set: [string, string][], compare: boolean,
 * own?: string}} Step
 */

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (document.getElementById(id));
let tour = -1;
let at = 0;

/** Shows the systems. `run` runs a step; `keep` keeps the run before a step that is compared with it.
 * @param {(step: Step) => Promise<void>} run @param {() => Promise<void>} keep */
export function begin(run, keep) {
    const go = async (/** @type {number} */ next) => {
        at = next;
        const { name, steps } = TOURS[tour];
        const step = steps[at];
        element("step").hidden = false;
        element("step-title").textContent = `${name}, step ${at + 1} of ${steps.length}: ${step.title}`;
        element("step-text").textContent = step.text;
        // A step begins once the run before has ended: that is run A of a comparison.
        button("step-back").disabled = button("step-next").disabled = true;
        if (step.compare) await keep();
        await run(step);
        button("step-back").disabled = at === 0;
        button("step-next").disabled = at + 1 === steps.length;
    };
    element("tours").replaceChildren(...TOURS.map(({ name }, index) => {
        const made = document.createElement("button");
        made.type = "button";
        made.textContent = name;
        made.setAttribute("aria-pressed", "false");
        made.onclick = () => {
            tour = index;
            element("tours").querySelectorAll("button").forEach((each, place) =>
                each.setAttribute("aria-pressed", String(place === index)));
            go(0);
        };
        return made;
    }));
    button("step-back").onclick = () => go(at - 1);
    button("step-next").onclick = () => go(at + 1);
}

// Guided tours, of five steps each.
// @ts-check

import { mark, page } from "./explain.js";
import { TOURS } from "./tours.js";

/**
 * @typedef {{title: string, text: string, scenario: string, set: [string, string][], compare: boolean, base:
 * boolean, own?: string}} Step
 */

/** Documents of the tours, and of the page. @type {[string, string][]} */
export const DOCUMENTS = [
    ["glossary", "glossary"], ["scenario", "scenario keys"], ["results", "results"], ["nr", "cells"], ["tcp", "TCP"],
    ["ack-filter", "ACK filter"], ["accelerator", "accelerator"], ["tdd-pacing", "pacing"], ["path-switch", "direct links"],
    ["police", "ACK policer"], ["web", "this page"],
];

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (document.getElementById(id));
let tour = -1;
let at = 0;

/** The step with which a step is compared: the last base before it. @param {Step[]} steps @param {number} index */
export function baseOf(steps, index) {
    return steps[index].compare ? steps.slice(0, index).findLast((step) => step.base) ?? null : null;
}

/** Shows the tours. `run` runs a step as B over that of another one as A, if there is one.
 * @param {(step: Step, base: Step | null) => Promise<void>} run */
export function begin(run) {
    const go = async (/** @type {number} */ next) => {
        at = next;
        const { name, document: about, steps } = TOURS[tour];
        const step = steps[at];
        element("step").hidden = false;
        element("step-title").textContent = `${name}, step ${at + 1} of ${steps.length}: ${step.title}`;
        element("step-text").textContent = step.text;
        /** @type {HTMLAnchorElement} */ (element("step-document")).href = page(about);
        mark(element("step-text"));
        // A step begins once the run before has ended.
        button("step-back").disabled = button("step-next").disabled = true;
        await run(step, baseOf(steps, at));
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

// The page's side of the worker: requests with answers, and the messages of a run.
// @ts-check

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
/** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
const waiting = new Map();
/** @type {Record<string, (message: any) => void>} */
const listeners = {};
let number = 0;
let run = 0;

worker.onmessage = ({ data }) => {
    const request = waiting.get(data.id);
    if (request) {
        waiting.delete(data.id);
        if (data.kind === "failed") request.reject(new Error(data.message));
        else request.resolve(data.value);
    } else if (data.run === run) {
        listeners[data.kind]?.(data);
    }
};
worker.onerror = (event) => listeners.failed?.({ message: event.message || "the simulator cannot be loaded" });

/** Calls `listener` with the messages of the latest run: "progress", "results", "failed".
 * @param {string} kind @param {(message: any) => void} listener */
export function on(kind, listener) {
    listeners[kind] = listener;
}

/** The answer of the simulator.
 * @param {string} kind @param {object} [request] @returns {Promise<any>} */
export function ask(kind, request = {}) {
    number += 1;
    worker.postMessage({ ...request, kind, id: number });
    return new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
}

/** Starts a run, which ends an earlier one.
 * @param {{name: string, text: string, seeds: number, duration: number, sample: number}} request */
export function start(request) {
    run = Math.max(run + 1, 1);
    worker.postMessage({ ...request, kind: "run", run });
}

/** Ends the run. */
export function stop() {
    run += 1;
    return ask("stop");
}

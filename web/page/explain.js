// Shows the sentence of a term where the term is hovered or has the focus, and all terms as a list with links to
// the documents.
// @ts-check

import { PATTERN, TERMS, places, sentence } from "./terms.js";

/** Where the documents are: beside the page on the site, else in the repository. */
const [FOLDER, ENDING] = location.pathname.includes("/try/")
    ? ["../", ".html"]
    : ["https://github.com/paceline/paceline/blob/main/docs/", ".md"];

/** The address of a document. @param {string} name */
export const page = (name) => `${FOLDER}${name}${ENDING}`;

/** Marks the terms in the texts of an element. The first of each in a section can have the focus.
 * @param {Element} element */
export function mark(element) {
    const section = element.closest("section") ?? element;
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, {
        acceptNode: (node) => node.parentElement?.closest(".term, option, svg, button, summary, pre, output")
            ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
    });
    /** @type {Text[]} */
    const texts = [];
    while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
    const known = new Set(Array.from(section.querySelectorAll(".term[tabindex]"), (term) => places.get(term.textContent?.toLowerCase() ?? "")));
    for (const text of texts) {
        const parts = text.data.split(PATTERN);
        if (parts.length < 2) continue;
        text.replaceWith(...parts.map((part, index) => {
            if (index % 2 === 0) return part;
            const term = document.createElement("span");
            term.className = "term";
            term.textContent = part;
            const place = places.get(part.toLowerCase());
            term.setAttribute("role", "term");
            if (!known.has(place)) term.tabIndex = 0;
            known.add(place);
            return term;
        }));
    }
}

const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
/** @type {Element | null} */
let shownFor = null;

function hide() {
    shownFor?.removeAttribute("aria-describedby");
    shownFor = null;
    tip.hidden = true;
}

/** @param {EventTarget | null} target */
function show(target) {
    const term = target instanceof Element ? target.closest(".term") : null;
    if (!term || term === shownFor) return;
    hide();
    shownFor = term;
    tip.textContent = sentence(term.textContent ?? "") ?? "";
    tip.hidden = false;
    term.setAttribute("aria-describedby", "tip");
    place();
}

/** Puts the sentence below its term, or above it. */
function place() {
    if (!shownFor) return;
    const [at, own] = [shownFor.getBoundingClientRect(), tip.getBoundingClientRect()];
    const below = at.bottom + 6 + own.height <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8))}px`;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(4, at.top - 6 - own.height)}px`;
}

/** Shows sentences on hover and focus, until Escape, and the list of all terms and documents.
 * @param {HTMLElement} list @param {HTMLElement} documents @param {[string, string][]} names */
export function begin(list, documents, names) {
    document.addEventListener("mouseover", (event) => show(event.target));
    document.addEventListener("focusin", (event) => show(event.target));
    document.addEventListener("focusout", hide);
    document.addEventListener("scroll", place, { capture: true, passive: true });
    document.addEventListener("mouseout", (event) => {
        const to = event.relatedTarget;
        if (to !== tip && !(to instanceof Element && to.closest(".term") === shownFor)) hide();
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape") hide();
    });
    const link = (/** @type {string} */ name, /** @type {string} */ text) => {
        const made = document.createElement("a");
        Object.assign(made, { href: page(name), textContent: text });
        return made;
    };
    documents.append(...names.flatMap(([name, text]) => [link(name, text), " "]));
    list.replaceChildren(...TERMS.flatMap(([forms, text, name]) => {
        const [term, meaning] = ["dt", "dd"].map((tag) => document.createElement(tag));
        term.textContent = forms.split("|")[0];
        meaning.append(text, " ", link(name, "More"));
        return [term, meaning];
    }));
}

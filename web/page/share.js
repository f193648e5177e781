// Links that hold a scenario, and files to save.
// @ts-check

/** Bytes of a scenario in a link, unpacked, at most. Chosen: far above any scenario written by hand. */
const MOST_BYTES = 1_000_000;

/** @param {Uint8Array} bytes */
function toText(bytes) {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {string} text */
function toBytes(text) {
    return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
}

/** @param {BufferSource} bytes @param {CompressionStream | DecompressionStream} stream */
async function through(bytes, stream) {
    const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
    const parts = [];
    let length = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.length;
        if (length > MOST_BYTES) throw new Error(`the scenario of a link has at most ${MOST_BYTES} bytes`);
        parts.push(value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** @typedef {{name: string, text: string, seeds: number}} Shared */

/** The fragment that holds a scenario. @param {Shared} shared */
export async function fragment(shared) {
    const bytes = new TextEncoder().encode(JSON.stringify(shared));
    return `#s=${toText(await through(bytes, new CompressionStream("deflate-raw")))}`;
}

/** The scenario of a fragment; none for another fragment. Throws for one that is damaged.
 * @param {string} hash @returns {Promise<Shared | null>} */
export async function read(hash) {
    if (!hash.startsWith("#s=")) return null;
    try {
        const bytes = await through(toBytes(hash.slice(3)), new DecompressionStream("deflate-raw"));
        const { name, text, seeds } = JSON.parse(new TextDecoder().decode(bytes));
        if (typeof name !== "string" || typeof text !== "string") throw new Error("it has no name or no text");
        return { name: name.replace(/[^\w.-]/g, "-").slice(0, 80) || "scenario", text, seeds: Number(seeds) || 1 };
    } catch (error) {
        throw new Error(`the link holds no scenario: ${error instanceof Error ? error.message : error}`);
    }
}

/** Saves a file. @param {string} name @param {BlobPart} content @param {string} type */
export function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

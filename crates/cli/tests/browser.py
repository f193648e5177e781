#!/usr/bin/env python3
"""Opens reports in a headless Chromium, 390 and 1280 px wide, in light and dark, and checks them.

Per page: no error on the console, no horizontal scrolling of the page, no text of a picture below 11 px, a
different ground in both colour schemes, a tooltip at a picture's mark, a table that a click sorts by its
numbers, and a saved picture that is well-formed SVG with a title and both colour schemes. Prints a line for
each fault; exit status 1 if there is any.

usage: browser.py [--shots FOLDER] REPORT...
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

# Hang guard of an answer of the browser. Chosen: many times what a slow machine takes.
ANSWER_SECONDS = 120
WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
# The least height of letters that most people can read on a phone.
LEAST_TEXT_PX = 11


class Browser:
    """A Chromium that is controlled through pipes (DevTools protocol)."""

    def __init__(self, program: str, profile: str) -> None:
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        # The protocol's pipes have the numbers 3 and 4.
        shell = f'exec "$@" 3<&{to_read} 4>&{from_write}'
        self.process = subprocess.Popen(
            ["sh", "-c", shell, "sh", program, *options], pass_fds=(to_read, from_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(from_write)
        self.number = 0
        self.received = b""
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None

    def message(self) -> dict[str, Any]:
        """The next message; they end with a zero byte."""
        while b"\0" not in self.received:
            chunk = os.read(self.from_read, 1 << 20)
            if not chunk:
                sys.exit("the browser has ended")
            self.received += chunk
        text, self.received = self.received.split(b"\0", 1)
        return dict(json.loads(text))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self.number += 1
        request: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            request["sessionId"] = self.session
        os.write(self.to_write, json.dumps(request).encode() + b"\0")
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return dict(message.get("result", {}))
            self.events.append(message)
        sys.exit(f"{method}: no answer")

    def wait(self, method: str) -> None:
        """Reads messages until this event."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def value(self, expression: str) -> Any:
        """The value of an expression on the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, page: Path, width: int, scheme: str) -> None:
        """Loads a page in a window of this width and a colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait("Page.loadEventFired")

    def move(self, x: float, y: float) -> None:
        """Moves the mouse; waits until the page has been drawn before and after it."""
        drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.value(drawn)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.value(drawn)

    def click(self, x: float, y: float) -> None:
        """Clicks with the mouse."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def centre(browser: Browser, element: str) -> tuple[float, float]:
    """The middle of an element, which is scrolled into view."""
    place = browser.value(
        f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
        " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    return float(place[0]), float(place[1])


def errors(browser: Browser) -> list[str]:
    """Errors on the console since the page was opened."""
    found = []
    for event in browser.events:
        kind = str(event.get("method"))
        parameters = event.get("params", {})
        entry = parameters.get("entry", {})
        call = kind == "Runtime.consoleAPICalled" and parameters.get("type") == "error"
        log = kind == "Log.entryAdded" and entry.get("level") == "error"
        if kind == "Runtime.exceptionThrown" or call or log:
            found.append(f"error on the console: {json.dumps(parameters)[:300]}")
    return found


def layout(browser: Browser) -> list[str]:
    """Faults of the layout."""
    found = []
    wide = browser.value(
        "[document.documentElement.scrollWidth - document.documentElement.clientWidth,"
        " [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, svg') &&"
        " e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName).join(' ')]"
    )
    if wide[0] > 0 or wide[1]:
        found.append(f"the page is {wide[0]} px too wide: {wide[1]}")
    small = browser.value(
        "[...document.querySelectorAll('figure text')].map(t => {"
        " const scale = t.ownerSVGElement.getBoundingClientRect().width / t.ownerSVGElement.viewBox.baseVal.width;"
        " return [parseFloat(getComputedStyle(t).fontSize) * scale, t.textContent]; })"
        ".filter(([size]) => size < " + str(LEAST_TEXT_PX) + ").slice(0, 3)"
    )
    if small:
        found.append(f"text of less than {LEAST_TEXT_PX} px: {small}")
    outside = browser.value(
        "[...document.querySelectorAll('figure text')].filter(t => {"
        " const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();"
        " return a.left < b.left - 2 || a.right > b.right + 2 || a.bottom > b.bottom + 2 || a.top < b.top - 2; })"
        ".map(t => t.textContent).slice(0, 3)"
    )
    if outside:
        found.append(f"text outside of its picture: {outside}")
    return found


def tooltip(browser: Browser) -> list[str]:
    """Faults of the tooltips of the first picture."""
    # A bar of the value zero has no surface.
    mark = "[...document.querySelectorAll('figure [data-tip]')].find(e => e.getBoundingClientRect().height > 2)"
    if not browser.value(f"{mark} !== undefined"):
        return ["no picture has a mark with a tooltip"]
    browser.move(1, 1)
    hidden = browser.value("document.getElementById('tip').hidden")
    browser.move(*centre(browser, mark))
    shown = browser.value(
        "(() => { const t = document.getElementById('tip'), r = t.getBoundingClientRect();"
        " return !t.hidden && /[0-9]/.test(t.textContent) && r.left >= 0 && r.right <= innerWidth; })()"
    )
    return [] if hidden and shown else ["no tooltip is shown at a mark"]


def sorting(browser: Browser) -> list[str]:
    """Faults of sorting the widest table by one of its columns of numbers."""
    column = browser.value(
        "(() => { const tables = [...document.querySelectorAll('table')].filter(t => t.tBodies[0].rows.length > 2);"
        " tables.sort((a, b) => b.rows[0].cells.length - a.rows[0].cells.length); window.sorted = tables[0];"
        " if (!window.sorted) return -1; const rows = [...window.sorted.tBodies[0].rows];"
        " const number = t => parseFloat(t.replace(/\\u2009/g, ''));"
        " window.numbers = i => [...window.sorted.tBodies[0].rows].map(r => number(r.cells[i].textContent))"
        ".filter(n => !Number.isNaN(n));"
        " return [...rows[0].cells].findIndex((c, i) => new Set(window.numbers(i)).size > 1"
        " && rows.every(r => /^(-|[+-]?[\\d.]+( ± .*)?|)$/.test(r.cells[i].textContent.trim()))); })()"
    )
    if column < 0:
        return []
    found = []
    for order in ("ascending", "descending"):
        browser.click(*centre(browser, f"window.sorted.rows[0].cells[{column}].querySelector('button')"))
        numbers = browser.value(f"window.numbers({column})")
        if numbers != sorted(numbers, reverse=order == "descending"):
            found.append(f"column {column} is not sorted {order}: {numbers[:9]}")
    return found


def saved(browser: Browser, folder: Path) -> list[str]:
    """Faults of the picture that a click saves."""
    before = set(folder.iterdir())
    browser.click(*centre(browser, "document.querySelector('figcaption button')"))
    end = time.monotonic() + ANSWER_SECONDS
    complete: list[Path] = []
    while not complete and time.monotonic() < end:
        browser.value("new Promise(done => setTimeout(done, 20))")
        complete = [path for path in folder.iterdir() if path not in before and path.suffix == ".svg"]
    if not complete:
        return ["no picture was saved"]
    text = complete[0].read_text(encoding="utf-8")
    complete[0].unlink()
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [f"the saved picture is no XML: {error}"]
    name = "{http://www.w3.org/2000/svg}"
    titles = "".join(root.itertext())
    expected = str(browser.value("document.querySelector('figcaption span').textContent"))
    found = []
    if root.tag != f"{name}svg" or root.find(f".//{name}title") is None or "prefers-color-scheme" not in text:
        found.append("the saved picture has no tooltips or no dark colours")
    if expected.replace(" ", "") not in titles.replace(" ", ""):
        found.append(f"the saved picture has no title {expected!r}")
    return found


def check(browser: Browser, page: Path, shots: Path | None, folder: Path) -> list[str]:
    """All faults of a page."""
    found = []
    grounds = set()
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.open(page, width, scheme)
            faults = layout(browser) + tooltip(browser) + sorting(browser) + saved(browser, folder)
            faults += errors(browser)
            found += [f"{page}, {width} px, {scheme}: {fault}" for fault in faults]
            grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
            grounds.add(browser.value("getComputedStyle(document.querySelector('figure .ground')).fill"))
            if shots is not None:
                picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
                name = f"{page.parent.name}-{page.stem}-{width}-{scheme}.png"
                (shots / name).write_bytes(base64.b64decode(picture["data"]))
    if len(grounds) != len(SCHEMES):
        found.append(f"{page}: grounds of page and pictures, light and dark: {sorted(grounds)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="checks reports in a headless Chromium")
    parser.add_argument("--program", default="chromium")
    parser.add_argument("--shots", type=Path)
    parser.add_argument("pages", type=Path, nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        folder = Path(profile) / "saved"
        folder.mkdir()
        browser = Browser(options.program, profile)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
            browser.session = session
            for domain in ("Page", "Runtime", "Log"):
                browser.call(f"{domain}.enable")
            found = [fault for page in options.pages for fault in check(browser, page, options.shots, folder)]
        finally:
            browser.process.terminate()
            browser.process.wait()
    print("\n".join(found) or "no fault")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Opens target/web in a headless Chromium and uses it: prints a line for each fault; exit status 1 if there
is any.

`private-5g` runs by itself; each slider, a list and the editor change scenario and results; a bad value is
shown at its line; two runs are compared, and run A stays through a tour; terms have a sentence under the
mouse and at the focus; a link opens the same scenario again; files are saved and have the bytes of the
program; a tour is walked by the keyboard alone. At 390 and 1280 px, in light and dark: nothing is too wide
or clipped, results come before controls in one column, letters have 11 px or more, every control has a name
for screen readers, and the console has no error.

usage: page.py [--shots FOLDER] [--program CHROMIUM] PACELINE
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "crates" / "cli" / "tests"))

from browser import Browser, centre, errors, layout

# Hang guard. Chosen: many times what a slow machine takes for a run of seconds.
DONE_SECONDS = 120
SLIDER = "document.getElementById('key-station.0.count')"
DONE = "/^Done/.test(document.getElementById('status').textContent)"
IDLE = "document.getElementById('stop').disabled"
# The tile of a figure: its number.
TILE = "parseFloat([...document.querySelectorAll('#tiles div')].find(d => d.firstChild.textContent === '{}')?.lastChild.textContent)"
ROLES = {"button", "combobox", "slider", "textbox", "spinbutton", "checkbox", "image", "progressbar", "DisclosureTriangle"}


class Server(SimpleHTTPRequestHandler):
    """Static files, and nothing on the terminal."""

    def guess_type(self, path: Any) -> str:
        """The type of a file by its name."""
        kinds = {".js": "text/javascript", ".wasm": "application/wasm"}
        return kinds.get(Path(str(path)).suffix) or super().guess_type(path)

    def log_message(self, format: str, *args: Any) -> None:
        """No log."""


class Page:
    """The page in the browser."""

    def __init__(self, browser: Browser, address: str, saved: Path) -> None:
        self.browser, self.address, self.saved = browser, address, saved
        self.faults: list[str] = []
        # Of the first time that the page is opened, with nothing in the browser's memory.
        self.first_picture_ms = 0.0

    def value(self, expression: str) -> Any:
        """The value of an expression."""
        return self.browser.value(expression)

    def expect(self, what: str, expression: str) -> None:
        """Waits until an expression is true; otherwise a fault."""
        end = time.monotonic() + DONE_SECONDS
        while time.monotonic() < end:
            if self.value(f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"):
                return
            time.sleep(0.05)
        status = self.value("document.getElementById('status')?.textContent")
        self.faults.append(f"{what}: not within {DONE_SECONDS} s; status: {status}")

    def open(self, fragment: str, width: int = 1280, scheme: str = "light") -> None:
        """Opens the page anew and waits for the run that begins by itself."""
        call = self.browser.call
        call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        call("Page.navigate", url="about:blank")
        self.browser.events.clear()
        call("Page.navigate", url=self.address + fragment)
        self.browser.wait("Page.loadEventFired")
        self.expect(f"a run of {fragment or 'the first scenario'}", DONE)
        if self.first_picture_ms == 0.0:
            self.first_picture_ms = self.value("performance.getEntriesByName('first-picture')[0].startTime")

    def after(self, what: str, action: Callable[[], object]) -> None:
        """Does something that starts a run, and waits for its end."""
        self.value("document.getElementById('status').textContent = ''")
        action()
        self.expect(what, DONE)

    def key(self, key: str, code: int, text: str = "") -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def click(self, element: str) -> None:
        """Clicks on the middle of an element."""
        self.browser.click(*centre(self.browser, element))

    def write(self, text: str) -> None:
        """Writes a text into the editor, as by hand."""
        self.value(
            f"(() => {{ const t = document.getElementById('text'); t.value = {json.dumps(text)};"
            " t.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )

    def tile(self, name: str) -> float:
        """A figure of the tiles."""
        return float(self.value(TILE.format(name)) or 0.0)

    def check(self, what: str, holds: bool) -> None:
        """A fault if something does not hold."""
        if not holds:
            self.faults.append(what)

    def download(self, label: str) -> bytes:
        """The file that the button of this label saves."""
        self.click(f"[...document.querySelectorAll('#downloads button')].find(b => b.textContent === '{label}')")
        end = time.monotonic() + DONE_SECONDS
        while time.monotonic() < end:
            found = [path for path in self.saved.iterdir() if path.name.endswith(label)]
            if found:
                content = found[0].read_bytes()
                found[0].unlink()
                return content
            time.sleep(0.05)
        self.faults.append(f"{label} was not saved")
        return b""


def by_id(name: str) -> str:
    """The element of this identifier."""
    return f"document.getElementById('{name}')"


def controls(page: Page) -> None:
    """A slider and lists change the scenario's text, and the run with it."""
    page.open("#scenario=single-station")
    before = page.tile("Goodput")
    page.value(f"{SLIDER}.focus()")
    page.after("a slider by the keyboard", lambda: page.key("ArrowRight", 39))
    page.check("the slider changes the text", page.value("/^count = 2$/m.test(document.getElementById('text').value)"))
    page.check("the comments stay", page.value("document.getElementById('text').value.includes('# 64 ms at the peak rate')"))
    page.check("the focus stays at the slider", page.value("document.activeElement.id === 'key-station.0.count'"))
    page.check(f"two stations have {page.tile('Goodput')} Mb/s, one {before}", page.tile("Goodput") != before > 10)
    page.click(by_id("keep"))
    choose = (
        "(() => { const s = document.getElementById('key-cell.bandwidth'); s.value = '5 MHz';"
        " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    page.after("a narrower cell", lambda: page.value(choose))
    words = page.value(by_id("words") + ".textContent + " + by_id("more-words") + ".textContent")
    page.check(f"the comparison in words: {words}", "cell.bandwidth from 20 MHz to 5 MHz" in words and "Goodput falls" in words)
    page.check("both runs are drawn", page.value("document.querySelectorAll('#chart-0 .dash').length") >= 1)
    page.check("the verdict", page.value(by_id("verdicts") + ".textContent.includes('TCP is')"))
    page.check("the way of a packet", page.value(by_id("ladder") + ".naturalWidth > 0"))
    words = page.value(by_id("ladder-words") + ".textContent")
    page.click(by_id("ladder-later"))
    page.expect("another packet", f"{by_id('ladder-words')}.textContent !== {json.dumps(words)}")
    page.check("the slots", page.value(by_id("slots-picture") + ".naturalWidth > 0"))
    page.faults += errors(page.browser)


def sliders(page: Page) -> None:
    """Round-trip time, buffer, SINR, loss and traffic change the scenario's text and the results."""
    page.open("")
    page.check("the first scenario", page.value(by_id("built-in") + ".value") == "private-5g")
    figures = "document.getElementById('figures').textContent"
    for key, press, part in (
        ("rtt", ("ArrowRight", 39), 'delay = "2500 us"'), ("cell.downlink_buffer", ("ArrowLeft", 37), 'downlink_buffer = "2 MB"'),
        ("station.0.downlink_sinr", ("ArrowLeft", 37), 'downlink_sinr = ["14 dB", "31 dB"]'), ("cell.max_harq_tx", ("Home", 36), "max_harq_tx = 1"),
    ):  # fmt: skip
        before = page.value(figures)
        slider = by_id(f"key-{key}")
        page.value(f"{slider}.focus()")
        page.after(key, functools.partial(page.key, *press))
        page.check(f"{key} in the text", page.value(f"{by_id('text')}.value.includes({json.dumps(part)})"))
        page.check(f"{key} in the results", page.value(figures) != before)
        page.check(f"{key} in words", bool(page.value(f"{slider}.getAttribute('aria-valuetext')")))
    page.open("")
    for traffic, part, figure in (
        ("short transfers", 'file = "200 kB"', "'#verdicts'"), ("a thin flow beside", 'name = "thin flow"', "'#chart-1'"),
        ("bulk", "count = 10", "'#verdicts'"),
    ):  # fmt: skip
        shown = page.value(f"document.querySelector({figure}).textContent")
        choose = (
            f"(() => {{ const s = document.getElementById('key-traffic'); s.value = {json.dumps(traffic)};"
            " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        page.after(traffic, functools.partial(page.value, choose))
        page.check(f"{traffic} in the text", page.value(f"{by_id('text')}.value.includes({json.dumps(part)})"))
        page.check(f"{traffic} in the results", page.value(f"document.querySelector({figure}).textContent") != shown)
    bulk = page.value("!/thin flow|200 kB/.test(document.getElementById('text').value)")
    page.check("bulk leaves nothing of the others", bulk)
    page.faults += errors(page.browser)


def words(page: Page) -> None:
    """Terms have a sentence under the mouse and at the focus, until Escape; links lead to documents."""
    page.open("#scenario=private-5g")
    shown = f"(!{by_id('tip')}.hidden && {by_id('tip')}.textContent)"
    for term in ("K1", "PUSCH", "HARQ", "Jain", "SINR", "Goodput"):
        element = f"[...document.querySelectorAll('.term[tabindex]')].find(t => t.textContent.toLowerCase() === {json.dumps(term.lower())})"
        if not page.value(f"Boolean({element})"):
            page.faults.append(f"{term} is not marked")
            continue
        page.browser.move(1, 1)
        page.browser.move(*centre(page.browser, element))
        hovered = str(page.value(shown))
        page.browser.move(1, 1)
        page.value(f"{element}.focus()")
        focused = str(page.value(shown))
        described = page.value(f"{element}.getAttribute('aria-describedby') === 'tip'")
        inside = page.value(f"(r => r.left >= 0 && r.right <= innerWidth && r.top >= 0)({by_id('tip')}.getBoundingClientRect())")
        page.check(f"{term}: {hovered!r}, {focused!r}", hovered == focused and focused.endswith(".") and described and inside)
        page.key("Escape", 27)
        page.check(f"{term} goes with Escape", page.value(by_id("tip") + ".hidden"))
    links = page.value("[...document.querySelectorAll('#documents a, #terms a, #step a')].map(a => a.href).filter(Boolean)")
    lost = [link for link in links if not (REPOSITORY / "docs" / link.rsplit("/", 1)[1]).is_file()]
    page.check(f"documents that do not exist: {lost} of {len(links)}", len(links) > 40 and not lost)


def tours(page: Page) -> None:
    """Run A of a tour stays for the steps that are compared with it, one that was kept by hand for all."""
    page.open("#scenario=single-station", 390)
    dashed = "document.querySelectorAll('#chart-0 .dash').length"
    chosen = "[...document.querySelectorAll('#tours button')].find(b => b.textContent === '{}').click()"
    for tour in ("Bufferbloat", "Two controls in one cell"):
        page.after(tour, functools.partial(page.value, chosen.format(tour)))
        page.expect("the next step", f"!{by_id('step-next')}.disabled")
        page.after(f"{tour}, step 2", functools.partial(page.value, by_id("step-next") + ".click()"))
        page.expect("the step after", f"!{by_id('step-next')}.disabled")
        page.after(f"{tour}, step 3", functools.partial(page.value, by_id("step-next") + ".click()"))
        page.expect("the third step", f"!{by_id('step-back')}.disabled")
        page.check(f"{tour}: A is drawn", page.value(dashed) >= 1)
        kept = page.value(by_id("kept") + ".textContent")
        page.after("back", functools.partial(page.value, by_id("step-back") + ".click()"))
        page.expect("the step before", f"!{by_id('step-next')}.disabled")
        page.check(f"{tour}: A is drawn after a step back, beside {kept}", page.value(dashed) >= 1)
        page.faults += layout(page.browser)
    page.open("#scenario=private-5g")
    page.click(by_id("keep"))
    page.after("a tour beside A", functools.partial(page.value, chosen.format("Two controls in one cell")))
    for number in range(1, 6):
        page.expect(f"step {number}", f"!{by_id('step-back')}.disabled || !{by_id('step-next')}.disabled")
        page.check(f"A stays in step {number}", page.value(dashed) >= 1 and page.value(by_id("kept") + ".textContent.includes('private-5g')"))
        if number < 5:
            page.after(f"step {number + 1}", functools.partial(page.value, by_id("step-next") + ".click()"))
    page.faults += layout(page.browser) + errors(page.browser)


def bad_input(page: Page) -> None:
    """An error of the command line at its line; nothing runs."""
    text = '[cell]\nbandwidth = "21 MHz"\n[[station]]\ncount = 2\n'
    page.write(text)
    page.expect("an error", f"!{by_id('problem')}.hidden")
    shown = page.value(by_id("problem") + ".textContent")
    page.check(f"key, value, allowed, line: {shown}", "toml:2: cell.bandwidth = 21 MHz: allowed: " in shown)
    page.check("the line is marked", page.value("document.querySelector('#gutter .bad').textContent.trim()") == "2")
    page.check("it cannot be run", page.value(by_id("run") + ".disabled"))
    page.check("announced", page.value(by_id("problem") + ".getAttribute('role')") == "alert")
    page.click(by_id("problem") + ".querySelector('button')")
    page.check("the cursor is at the line", page.value("document.activeElement.id === 'text' && getSelection().toString() !== '' || " + by_id("text") + ".selectionStart === 7"))
    page.write(text.replace("21", "20"))
    page.expect("the error goes", f"{by_id('problem')}.hidden && !{by_id('run')}.disabled")


def sharing(page: Page, program: str) -> None:
    """A link opens the same scenario; saved files have the bytes of the program."""
    page.open("#scenario=private-5g")
    scenario = page.value(by_id("text") + ".value")
    page.click(by_id("share"))
    page.expect("a link", by_id("link") + ".value.includes('#s=')")
    link = str(page.value(by_id("link") + ".value"))
    summary, toml = page.download("summary.json"), page.download("private-5g.toml")
    page.check("the saved scenario", toml.decode() == scenario)
    native = subprocess.run([program, "run", "private-5g", "--json"], capture_output=True, check=True).stdout
    without = [re.sub(rb'"commit": "\w+"', b"", text) for text in (native, summary)]
    page.check("summary.json has the bytes of the program, the commit of its build aside", without[0] == without[1])
    page.open(link[link.index("#") :])
    page.check("the link has the scenario", page.value(by_id("text") + ".value") == scenario)
    command = page.value(by_id("command") + ".textContent")
    page.check(f"the command: {command}", command.startswith("paceline run private-5g --seeds 1"))
    page.browser.call("Page.navigate", url="about:blank")
    page.browser.events.clear()
    page.browser.call("Page.navigate", url=page.address + "#s=damaged")
    page.expect("a damaged link is named", by_id("problem") + ".textContent.includes('holds no scenario')")
    page.faults += errors(page.browser)


def stopping(page: Page) -> None:
    """A long run can be stopped."""
    page.open("#scenario=single-station")
    page.write("[run]\nduration = \"80000 s\"\n[[station]]\n")
    page.expect("the text is checked", "/80000 s/.test(document.getElementById('status').textContent)")
    page.click(by_id("run"))
    page.expect("progress", by_id("progress") + ".value > 0")
    page.click(by_id("stop"))
    page.expect("stopped", "document.getElementById('status').textContent === 'Stopped.' && " + IDLE)


def keyboard(page: Page) -> None:
    """A tour by the keyboard alone."""
    page.open("#scenario=single-station")
    reached = set()
    for _ in range(150):
        page.key("Tab", 9)
        reached.add(str(page.value("document.activeElement.id || document.activeElement.textContent")))
        if "share" in reached:
            break
    for wanted in ("built-in", "key-station.0.count", "run", "Direct links", "keep", "share"):
        page.check(f"{wanted} is reached by the tabulator: {sorted(reached)}", wanted in reached)
    page.value("[...document.querySelectorAll('#tours button')].find(b => b.textContent === 'Direct links').focus()")
    page.after("the first step of a tour", lambda: page.key("Enter", 13, "\r"))
    page.expect("the next step can be taken", f"!{by_id('step-next')}.disabled")
    page.value(by_id("step-next") + ".focus()")
    page.after("the second step", lambda: page.key("Enter", 13, "\r"))
    page.expect("the step is compared", by_id("words") + ".textContent.includes('sidelink.data')")
    page.faults += errors(page.browser)


def appearance(page: Page, shots: Path | None) -> None:
    """Widths, schemes, letters, names."""
    grounds = set()
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            page.open("#scenario=private-5g", width, scheme)
            page.value(by_id("editor-box") + ".open = true")
            found = layout(page.browser) + errors(page.browser)
            page.faults += [f"{width} px, {scheme}: {fault}" for fault in found]
            tops = "['verdict', 'chart-5', 'setup'].map(id => document.getElementById(id).getBoundingClientRect().top)"
            verdict, chart, setup = page.value(tops)
            page.check(f"{width} px: order {verdict}, {chart}, {setup}", (verdict < chart < setup) == (width == 390))
            grounds.add(page.value("getComputedStyle(document.body).backgroundColor"))
            grounds.add(page.value("getComputedStyle(document.querySelector('figure .ground')).fill"))
            if shots is not None:
                page.value(by_id("editor-box") + ".open = false; 0")
                picture = page.browser.call("Page.captureScreenshot", captureBeyondViewport=True)
                (shots / f"web-{width}-{scheme}.png").write_bytes(base64.b64decode(picture["data"]))
    page.check(f"grounds of both schemes: {sorted(grounds)}", len(grounds) == 2)
    nodes = page.browser.call("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"] for node in nodes
        if not node.get("ignored") and node["role"]["value"] in ROLES and not node.get("name", {}).get("value")
    ]  # fmt: skip
    page.check(f"controls without a name: {nameless}", not nameless)


def main() -> None:
    parser = argparse.ArgumentParser(description="uses target/web in a headless Chromium")
    parser.add_argument("--program", default="chromium")
    parser.add_argument("--shots", type=Path)
    parser.add_argument("paceline")
    options = parser.parse_args()
    handler = functools.partial(Server, directory=str(REPOSITORY / "target" / "web"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        folder = Path(profile) / "saved"
        folder.mkdir()
        browser = Browser(options.program, profile)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
            browser.session = session
            for domain in ("Page", "Runtime", "Log", "Accessibility"):
                browser.call(f"{domain}.enable")
            page = Page(browser, f"http://127.0.0.1:{server.server_port}/", folder)
            parts: list[Callable[[], None]] = [
                lambda: controls(page), lambda: sliders(page), lambda: words(page), lambda: tours(page), lambda: bad_input(page), lambda: sharing(page, options.paceline),
                lambda: stopping(page), lambda: keyboard(page), lambda: appearance(page, options.shots),
            ]  # fmt: skip
            for part in parts:
                part()
        finally:
            browser.process.terminate()
            browser.process.wait()
            server.shutdown()
    print("\n".join(page.faults) or "no fault")
    print(f"first picture {page.first_picture_ms:.0f} ms after the start of loading")
    print(f"{len(parts)} parts, {len(page.faults)} faults")
    sys.exit(1 if page.faults else 0)


if __name__ == "__main__":
    main()

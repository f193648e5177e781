#!/usr/bin/env python3
"""Opens a running gateway's page in a headless Chromium, 390 and 1280 px wide, in light and dark.

The page has to show rates above zero with their history, which outlives a reload; the device, with a radio
rate of no more than the link's; and the state: green ("good"), or, where an interface refuses frames, not
green ("refusing"). There have to be no errors on the console, no horizontal scrolling, tiles in full rows,
and requests to the gateway alone. Prints a line for each fault; exit status 1 if there is any.

usage: gateway_page.py BROWSER URL DEVICE LINK_MBPS good|refusing
"""

from __future__ import annotations

import sys
import tempfile
import time

from browser import SCHEMES, WIDTHS, Browser, errors, layout

# Hang guard for the page's figures, which it fetches every two seconds; the history has a sample every five.
FIGURES_SECONDS = 90
POINTS = "document.querySelector('#card-throughput .line').getAttribute('d').split(/[ML]/).length - 1"
# Tops of the tiles, whose rows have to be equally long.
TOPS = "[...document.querySelectorAll('#rates .card')].map(card => Math.round(card.getBoundingClientRect().top))"


def until(browser: Browser, expression: str) -> bool:
    """Waits until an expression is true; false if that takes too long."""
    end = time.monotonic() + FIGURES_SECONDS
    while time.monotonic() < end:
        if browser.value(f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"):
            return True
        time.sleep(0.2)
    return False


def shown(browser: Browser, device: str, mbps: float, state: str) -> list[str]:
    """Faults of the content."""
    found = []
    down = "document.querySelector('#card-throughput .value').textContent"
    if not until(browser, f"/[1-9].* down/.test({down})"):
        found.append(f"the rate is {browser.value(down)!r}")
    expected = [("devices", device), ("gain", "Not measured"), ("name", "srv to mob")]
    if state == "refusing":
        if not until(browser, "document.getElementById('state').className !== 'good'"):
            found.append("the state is green though frames are refused")
        expected += [("state", "refused a frame"), ("troubles", "refused a frame")]
    else:
        expected += [("state", "running, nothing to report")]
    for element, text in expected:
        content = str(browser.value(f"document.getElementById('{element}').textContent"))
        if text not in content:
            found.append(f"#{element} has no {text!r}: {content!r}")
    until(browser, "document.querySelectorAll('#devices tr').length > 1")
    cells = browser.value("[...document.querySelectorAll('#devices tr')].map(row => row.cells[2]?.textContent)")
    factors = {"b/s": 1e-6, "kb/s": 1e-3, "Mb/s": 1.0, "Gb/s": 1e3}
    rates = [float(cell.split()[0]) * factors[cell.split()[1]] for cell in cells[1:] if cell]
    # A fifth for the bytes in a bucket and the bounds of the interval.
    if cells[:1] != ["radio rate"] or not rates or max(rates) > 1.2 * mbps:
        found.append(f"radio rates above {mbps} Mb/s: {cells}")
    tops = browser.value(TOPS)
    rows = {top: tops.count(top) for top in tops}
    if len(set(rows.values())) != 1:
        found.append(f"rows of tiles: {rows}")
    axes = browser.value("[...document.querySelectorAll('#card-throughput text')].map(text => text.textContent)")
    if "now" not in axes or not any(text.endswith(" min") for text in axes) or "b/s" not in axes[1]:
        found.append(f"the axes have no units: {axes}")
    return found


def main() -> int:
    program, url, device, mbps, state = sys.argv[1:]
    faults: list[str] = []
    points = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(f"{domain}.enable")
        for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
            browser.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
            )
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.events.clear()
            browser.call("Page.navigate", url=url)
            browser.wait("Page.loadEventFired")
            # The first drawing after a reload has the points of before.
            drawn = until(browser, f"{POINTS} > 0") and int(browser.value(POINTS))
            found = [] if drawn and drawn >= points else [f"the history has {drawn} points after a reload, {points} before"]
            found += shown(browser, device, float(mbps), state)
            if not until(browser, f"{POINTS} >= {max(points, 3)}"):
                found.append("the history does not grow")
            points = int(browser.value(POINTS))
            found += errors(browser) + layout(browser)
            for event in browser.events:
                if event.get("method") == "Network.requestWillBeSent":
                    asked = str(event["params"]["request"]["url"])
                    if not asked.startswith((url, "data:")):
                        found.append(f"a request to {asked}")
            faults += [f"{width} px, {scheme}: {fault}" for fault in found]
        browser.process.kill()
        browser.process.wait()
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

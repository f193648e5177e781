#!/usr/bin/env python3
"""Opens a running gateway's page in a headless Chromium, 390 and 1280 px wide, in light and dark.

The page has to show rates above zero with their history, the device, and the state; without errors on the
console, without horizontal scrolling, and with requests to the gateway alone. Prints a line for each fault;
exit status 1 if there is any.

usage: gateway_page.py BROWSER URL DEVICE
"""

from __future__ import annotations

import sys
import tempfile
import time

from browser import SCHEMES, WIDTHS, Browser, errors, layout

# Hang guard for the page's first figures, which it fetches every two seconds.
FIGURES_SECONDS = 60


def shown(browser: Browser, device: str) -> list[str]:
    """Faults of the content, once the page has two readings."""
    ready = "document.querySelector('#card-down polyline').points.length >= 3"
    end = time.monotonic() + FIGURES_SECONDS
    while not browser.value(ready) and time.monotonic() < end:
        time.sleep(0.2)
    found = []
    down = str(browser.value("document.querySelector('#card-down .value').textContent"))
    if not down.endswith("b/s") or down.startswith("0 "):
        found.append(f"the rate is {down!r}")
    for element, text in (("devices", device), ("state", "running"), ("gain", "Not measured"), ("name", "srv to mob")):
        content = str(browser.value(f"document.getElementById('{element}').textContent"))
        if text not in content:
            found.append(f"#{element} has no {text!r}: {content!r}")
    return found


def main() -> int:
    program, url, device = sys.argv[1:]
    faults = []
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
            found = shown(browser, device) + errors(browser) + layout(browser)
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

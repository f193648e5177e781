#!/usr/bin/env python3
"""Checks the links of the built documentation.

    scripts/check/site_links.py [FOLDER]

Every relative link and picture of FOLDER/*.html (target/site by default) must lead to a file of it, and a
fragment to an element there. `try/`, the page of the simulator, is built by another command. Exit code 1 if
a link leads nowhere.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and identifiers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "target/site").resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    # 404.html has links from the root of the site; print.html has all pages in one.
    checked = [path for path in pages if path.name not in ("404.html", "print.html", "toc.html")]
    faults = links = 0
    for path in checked:
        for link in pages[path].links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or parts.path.startswith("/") or parts.path.split("/")[0] == "try":
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            if not target.exists():
                print(f"{path.relative_to(folder)}: {link}: no such file")
                faults += 1
            elif fragment and target in pages and fragment not in pages[target].names:
                print(f"{path.relative_to(folder)}: {link}: no such element")
                faults += 1
    print(f"{faults} faults in {links} links of {len(checked)} pages")
    sys.exit(1 if faults or not checked else 0)


if __name__ == "__main__":
    main()

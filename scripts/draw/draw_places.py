#!/usr/bin/env python3
"""Draws the pictures of docs/deploy.md: where the gateway is, one picture for each place.

    scripts/draw/draw_places.py [--check]    write docs/places/*.svg; --check: say whether they are up to date

A picture is a row of boxes and the lines between them. Its ground is light whatever the page's theme, so that
it can be read in a light and in a dark one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "places"
# Pixels: height of a box, and of the picture; length of a line; of the margin; width of a letter.
BOX, HEIGHT, LINE, MARGIN, LETTER = 46, 130, 92, 14, 8.2
INK, MUTED, GROUND, GATEWAY = "#1f2933", "#52606d", "#f8fafc", "#0f766e"


@dataclass
class Box:
    """A host; `below` is a second line of text."""

    name: str
    below: str = ""

    def width(self) -> float:
        """Pixels for the longer line."""
        return max(64.0, LETTER * max(len(self.name), len(self.below)) + 18)


@dataclass
class Line:
    """A link with a label above; a radio is drawn as a wave."""

    label: str
    radio: bool = False
    below: str = ""

    def width(self) -> float:
        """Pixels for the longer label."""
        return max(float(LINE), LETTER * max(len(self.label), len(self.below)) + 10)


Row = list[Box | Line]
# The machine that the gateway is on is a frame around the boxes from the first to the last index.
PLACES: dict[str, tuple[str, Row, tuple[int, int]]] = {
    "n6-bridge": (
        "Place 1: behind the UPF, on the UPF's machine, as a bridge",
        [
            Box("phone"),
            Line("", True),
            Box("gNB"),
            Line("GTP-U"),
            Box("UPF", "namespace upf"),
            Line("veth", below="upf0 = mobile"),
            Box("gateway", "bridge"),
            Line("N6", below="eth0 = server"),
            Box("router"),
            Line(""),
            Box("servers"),
        ],
        (4, 6),
    ),
    "n6-routed": (
        "Place 1: behind the UPF, on the UPF's machine, as a router",
        [
            Box("phone"),
            Line("", True),
            Box("gNB"),
            Line("GTP-U"),
            Box("UPF"),
            Line("TUN", below="ogstun = mobile"),
            Box("gateway", "routes"),
            Line("N6", below="eth0 = server"),
            Box("router"),
            Line(""),
            Box("servers"),
        ],
        (4, 6),
    ),
    "n3": (
        "Place 2: between gNB and UPF",
        [
            Box("phone"),
            Line("", True),
            Box("gNB"),
            Line("N3: GTP-U", below="eth1 = mobile"),
            Box("gateway", "bridge"),
            Line("N3: GTP-U", below="eth0 = server"),
            Box("UPF"),
            Line("N6"),
            Box("router"),
            Line(""),
            Box("servers"),
        ],
        (4, 4),
    ),
    "cpe": (
        "Place 3: in a CPE or fixed-wireless router",
        [
            Box("computers"),
            Line("LAN", below="lan0 = mobile"),
            Box("gateway", "ACK filter"),
            Line("", below="wwan0 = server"),
            Box("modem"),
            Line("", True),
            Box("gNB"),
            Line(""),
            Box("UPF"),
            Line(""),
            Box("servers"),
        ],
        (2, 4),
    ),
    "server": (
        "Place 4: on one host with the server",
        [
            Box("phone"),
            Line("", True),
            Box("gNB"),
            Line(""),
            Box("UPF"),
            Line("internet", below="eth0 = mobile"),
            Box("gateway", "bridge"),
            Line("veth", below="web0 = server"),
            Box("server", "namespace web"),
        ],
        (6, 8),
    ),
    "lab": (
        "Place 5: a lab on one machine",
        [
            Box("phone", "namespace"),
            Line("tbf in radio", True, "phone0 = mobile"),
            Box("gateway", "bridge"),
            Line("veth", below="server0 = server"),
            Box("server", "namespace"),
        ],
        (0, 4),
    ),
}


def text(x: float, y: float, words: str, colour: str, size: int = 13, weight: str = "normal") -> str:
    """A centred line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="middle">{words}</text>'
    )


def box(x: float, middle: float, item: Box) -> str:
    """A box; the gateway's is filled."""
    own = item.name == "gateway"
    fill, ink = (GATEWAY, "#ffffff") if own else ("#ffffff", INK)
    parts = [
        (
            f'<rect x="{x:.1f}" y="{middle - BOX / 2:.1f}" width="{item.width():.1f}" height="{BOX}" rx="6" '
            f'fill="{fill}" stroke="{GATEWAY if own else INK}"/>'
        ),
        text(x + item.width() / 2, middle + (-3 if item.below else 5), item.name, ink, 13, "bold"),
    ]
    if item.below:
        parts.append(text(x + item.width() / 2, middle + 14, item.below, ink, 11))
    return "\n".join(parts)


def line(x: float, middle: float, item: Line) -> str:
    """A link; that of a radio is a wave."""
    width = item.width()
    if item.radio:
        step = width / 8
        path = f"M {x:.1f} {middle:.1f} q {step / 2:.1f} -12 {step:.1f} 0" + f" t {step:.1f} 0" * 7
        label = item.label or "radio"
    else:
        path, label = f"M {x:.1f} {middle:.1f} h {width:.1f}", item.label
    parts = [f'<path d="{path}" fill="none" stroke="{MUTED}" stroke-width="1.6"/>']
    parts.append(text(x + width / 2, middle - 12, label, MUTED, 12) if label else "")
    parts.append(text(x + width / 2, middle + 18, item.below, GATEWAY, 11) if item.below else "")
    return "\n".join(part for part in parts if part)


def picture(title: str, row: Row, frame: tuple[int, int]) -> str:
    """The SVG of a place."""
    middle, x, starts = 76.0, float(MARGIN + 10), []
    parts = []
    for item in row:
        starts.append(x)
        parts.append(box(x, middle, item) if isinstance(item, Box) else line(x, middle, item))
        x += item.width()
    width = x + MARGIN + 10
    first, last = starts[frame[0]] - 9, starts[frame[1]] + row[frame[1]].width() + 9
    machine = (
        f'<rect x="{first:.1f}" y="{middle - BOX / 2 - 9:.1f}" width="{last - first:.1f}" height="{BOX + 18}" rx="9" '
        f'fill="none" stroke="{GATEWAY}" stroke-dasharray="5 4"/>'
    )
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {HEIGHT}" width="{width:.0f}" '
                f'height="{HEIGHT}" role="img" font-family="sans-serif">'
            ),
            f"<title>{title}</title>",
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
            f'<text x="{MARGIN + 2}" y="24" fill="{INK}" font-size="14" font-weight="bold">{title}</text>',
            machine,
            *parts,
            text((first + last) / 2, HEIGHT - 8, "the gateway's machine", GATEWAY, 11),
            "</svg>\n",
        ]
    )


def main() -> None:
    """Writes or compares the files."""
    check = sys.argv[1:] == ["--check"]
    FOLDER.mkdir(exist_ok=True)
    stale = []
    for name, (title, row, frame) in PLACES.items():
        path, drawn = FOLDER / f"{name}.svg", picture(title, row, frame)
        if check and (not path.exists() or path.read_text() != drawn):
            stale.append(path.name)
        elif not check:
            path.write_text(drawn)
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}; run scripts/draw/draw_places.py")


if __name__ == "__main__":
    main()

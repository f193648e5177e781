#!/usr/bin/env python3
"""Compares `paceline explain` with Wireshark's analysis of the same captures.

    scripts/measure/explain_tshark.py PACELINE CAPTURE...

Each line has the segments that both count as sent again, those with the ones out of order, and the median
and the least round trip from data to ACK of the largest connection. Exits with 1 if the sums differ in a
capture without copies of mirrored packets, which Wireshark counts as sent again, or if round trips do by more
than 5%.

The definitions differ: Wireshark calls a segment that fills a hole out of order if it comes within 3 ms or
the handshake's round trip, `explain` by timestamps or the least round trip, so that only the sum is the
same near the receiver. Round trips are compared where the receiver is 1 ms away or more and both have 20 of
them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

AGAIN = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.spurious_retransmission"
DISORDERED = "tcp.analysis.out_of_order"


def tshark(capture: str, display_filter: str, field: str) -> list[str]:
    # Data may look like a protocol: none is decoded.
    command = ["tshark", "-r", capture, "-d", "tcp.port==1-65535,data", "-Y", display_filter, "-T", "fields"]
    return subprocess.run([*command, "-e", field], check=False, capture_output=True, text=True).stdout.split()


def directions(explanation: dict[str, Any]) -> list[dict[str, Any]]:
    return [c[key] for c in explanation["connections"] for key in ("to_client", "to_server")]


def round_trips(capture: str, connection: dict[str, Any]) -> tuple[float, float, float, float] | None:
    """Median and least round trip from the capture point to the receiver, ours and Wireshark's, ms."""
    receiver = "client" if connection["data_from"] == "server" else "server"
    half = connection[f"{receiver}_half"]
    port = connection[receiver].rsplit(":", 1)[1]
    found = tshark(capture, f"tcp.analysis.ack_rtt && tcp.srcport == {port}", "tcp.analysis.ack_rtt")
    theirs = [1e3 * float(value) for value in found]
    if half["samples"] < 20 or len(theirs) < 20 or min(half["min_ms"], *theirs) < 1:
        return None
    return half["median_ms"], statistics.median(theirs), half["min_ms"], min(theirs)


def compare(paceline: str, capture: str) -> bool:
    """Prints a line; whether both agree."""
    found = subprocess.run([paceline, "explain", capture, "--json"], check=False, capture_output=True, text=True)
    if found.returncode == 2:
        print(f"{capture}: {found.stderr.strip()}")
        return True
    explanation = json.loads(found.stdout)["explanation"]
    losses = [direction["losses"] for direction in directions(explanation)]
    ours = sum(loss["retransmissions"] for loss in losses)
    our_sum = ours + sum(loss["out_of_order"] for loss in losses)
    theirs = len(tshark(capture, AGAIN, "frame.number"))
    their_sum = theirs + len(tshark(capture, DISORDERED, "frame.number"))
    has_copies = any("copies of mirrored packets" in note for note in explanation["notes"])
    line = f"{capture}: sent again {ours} and {theirs}, with out of order {our_sum} and {their_sum}"
    agrees = has_copies or our_sum == their_sum
    trips = round_trips(capture, explanation["connections"][0])
    if trips is not None:
        line += "; round trip {:.2f} and {:.2f} ms, least {:.2f} and {:.2f} ms".format(*trips)
        agrees = agrees and abs(trips[0] / trips[1] - 1) < 0.05 and abs(trips[2] / trips[3] - 1) < 0.05
    print(line + ("; with copies of mirrored packets" if has_copies else "") + ("" if agrees else "; DIFFERENT"))
    return agrees


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit((__doc__ or "").strip())
    agreements = [compare(sys.argv[1], capture) for capture in sys.argv[2:]]
    sys.exit(not all(agreements))

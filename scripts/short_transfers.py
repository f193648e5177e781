#!/usr/bin/env python3
"""Time until a file has arrived, without and with the accelerator, over rates and round-trip times.

    scripts/short_transfers.py PROGRAM [MEGABYTES]

Each row is one rate. A star marks a transfer that the accelerator ends later by more than a millisecond and
a thousandth of its time.
"""

import csv
import pathlib
import subprocess
import sys
import tempfile

RATES_MBPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
ROUND_TRIPS_MS = [20, 40, 80]
SCENARIO = """
[run]
duration = "60 s"
warmup = "0 s"
[core]
path = "{path}"
hops = [{{ rate = "10 Gb/s", delay = "5 ms" }}]
[tcp]
congestion_control = "cubic"
[link]
delay = "{delay} ms"
queue = "4 MB"
[link.fixed]
downlink_rate = "{rate} Mb/s"
uplink_rate = "{uplink} Mb/s"
[[station]]
file = "{megabytes} MB"
start_spread = "0 s"
"""


def received_s(program: str, path: str, rate: int, rtt: int, megabytes: int) -> float:
    """Seconds until the station has the file."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "short.toml"
        text = SCENARIO.format(
            path=path,
            delay=rtt // 2 - 5,
            rate=rate,
            uplink=max(1, rate // 10),
            megabytes=megabytes,
        )
        scenario.write_text(text)
        results = pathlib.Path(folder) / "results"
        command = [program, "run", str(scenario), "--out", str(results)]
        subprocess.run(command, check=True, capture_output=True)
        with (results / "flows.csv").open() as rows:
            return float(next(csv.DictReader(rows))["received_s"])


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    program = sys.argv[1]
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(f"{megabytes} MB: seconds until all has arrived, direct and accelerated")
    print("      Mb/s" + "".join(f"{rtt:>13} ms" for rtt in ROUND_TRIPS_MS))
    later = 0
    for rate in RATES_MBPS:
        row = f"{rate:>10}"
        for rtt in ROUND_TRIPS_MS:
            direct, accelerated = (
                received_s(program, path, rate, rtt, megabytes) for path in ("direct", "accelerator")
            )
            is_later = accelerated > 1.001 * direct + 0.001
            later += is_later
            row += f"  {direct:6.3f} {accelerated:6.3f}{'*' if is_later else ' '}"
        print(row, flush=True)
    print(f"{later} of {len(RATES_MBPS) * len(ROUND_TRIPS_MS)} end later with the accelerator")
    return 1 if later else 0


if __name__ == "__main__":
    sys.exit(main())

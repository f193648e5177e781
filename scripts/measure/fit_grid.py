#!/usr/bin/env python3
"""Judges `paceline fit` by random cells: draws them, captures their traffic, fits, and compares.

    scripts/measure/fit_grid.py PROGRAM --seed 1 --cells 20 [--kernel 5] [--keep FOLDER]

Prints, for each quantity, in how many cells it could be known, the share in which it was claimed, and the
share of the claims that are right; then the worst cases. `--kernel N` adds cells whose TCP is this host's, by
`paceline emulate` (needs root and iperf3).
"""

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

PATTERNS = [
    ("DDDSU 10:2:2", 30), ("DDSUU 10:2:2", 30), ("DDDDDDDSUU 6:4:4", 30), ("DDSU 10:2:2", 30),
    ("DSUUU 10:2:2", 30), ("DDDDDDSUUU 10:2:2", 30), ("DDDSUUDDDD 10:2:2", 30),
    ("DDDSU 10:2:2", 120),
]
SR_NR = {2: ["4 ms", "8 ms", "20 ms", "40 ms"], 0: ["5 ms", "10 ms", "20 ms", "40 ms"]}
SR_LTE = ["5 ms", "10 ms", "20 ms", "40 ms"]
LTE_SPLIT = ["DSUUU", "DDSUU", "DDDSU", "DDDDDDSUUU", "DDDDDDDSUU", "DDDDDDDDSU", "DDSUUUDSUU"]
# Seconds: light traffic alone, then the bulk transfer beside it.
LIGHT, BULK = 6, 10
# The same of an emulation, whose pings are farther apart.
KERNEL_LIGHT = 9


class Cell(NamedTuple):
    """A drawn cell."""

    number: int
    kind: str
    access: str
    station: str
    radio: str
    core_ms: float
    buffer: int
    point: str
    upload: bool
    pattern: str
    sr_ms: float


def draw(index: int, rng: random.Random) -> Cell:
    """Draws a cell and a capture point."""
    kind = rng.choice(["nr-tdd"] * 5 + ["nr-fdd", "lte-fdd", "lte-fdd", "lte-tdd", "lte-tdd", "link", "link"])
    core_ms = round(rng.choice([rng.uniform(1, 10), rng.uniform(5, 60)]), 2)
    point = rng.choice(["server", "client", "between"])
    upload = rng.random() < 0.15
    sinr = rng.uniform(5, 28)
    fading = rng.choice([0, 0, 2, 4])
    control = rng.choice(["cubic", "cubic", "cubic", "newreno", "bbr"])
    radio = f'downlink_sinr = "{sinr:.1f} dB"\nuplink_sinr = "{rng.uniform(5, 20):.1f} dB"\n'
    if fading:
        radio += f'fading = "{fading} dB"\ncoherence = "{rng.choice([20, 50, 200])} ms"\n'
    station = f'direction = "{"upload" if upload else "download"}"\n'
    station += f'tcp.congestion_control = "{control}"\n'
    pattern, sr_ms, extra = "", 0.0, ""
    mbps = 10.0
    if kind == "link":
        mbps = round(10 ** rng.uniform(0.3, 1.9), 1)
        extra = f'[link.fixed]\ndownlink_rate = "{mbps} Mb/s"\n'
        radio = ""
    elif kind == "nr-tdd":
        pattern, khz = rng.choice(PATTERNS)
        period = rng.choice(SR_NR[2 if len(pattern.split()[0]) == 4 else 0])
        bandwidth = rng.choice([10, 20, 40]) if khz == 30 else 50
        frequency = 'frequency = "27 GHz"\n' if khz == 120 else ""
        extra = f'rat = "nr"\npattern = "{pattern}"\nbandwidth = "{bandwidth} MHz"\nsr_period = "{period}"\n'
        extra += f'subcarrier_spacing = "{khz} kHz"\n{frequency}'
        extra += 'nr.layers = 1\n'
        mbps = bandwidth * 2.0
        pattern = f"{pattern.split()[0]}/{khz}kHz"
        sr_ms = float(period.split()[0])
    elif kind == "nr-fdd":
        period = rng.choice(["5 ms", "8 ms", "10 ms", "20 ms", "40 ms"])
        bandwidth = rng.choice([5, 10, 20])
        extra = f'rat = "nr"\nbandwidth = "{bandwidth} MHz"\nsr_period = "{period}"\nnr.layers = 1\n'
        mbps, pattern, sr_ms = bandwidth * 2.5, "FDD", float(period.split()[0])
    else:
        configuration = rng.randrange(7)
        # In TDD an occasion stands in an uplink subframe.
        long_period = kind == "lte-tdd" and configuration > 2
        period = rng.choice(SR_LTE[1:] if long_period else SR_LTE)
        bandwidth = rng.choice([5, 10, 20])
        extra = f'bandwidth = "{bandwidth} MHz"\nsr_period = "{period}"\n'
        mbps, pattern, sr_ms = bandwidth * 2.0, "FDD", float(period.split()[0])
        if kind == "lte-tdd":
            extra += f"tdd_configuration = {configuration}\n"
            pattern = f"{LTE_SPLIT[configuration]}/15kHz"
    # Buffers of 20 to 300 ms at the rate that such a cell has about.
    buffer = max(20_000, int(mbps * 1e3 / 8 * rng.uniform(20, 300)))
    if kind == "link":
        access = f'[link]\ndelay = "{round(rng.uniform(2, 30), 2)} ms"\nqueue = "{buffer} B"\n'
        if rng.random() < 0.25:
            access += f"loss_percent = {rng.choice([0.01, 0.05])}\n"
        access += extra
    else:
        access = f"[cell]\n{extra}downlink_buffer = \"{buffer} B\"\nuplink_buffer = \"{buffer} B\"\n"
    return Cell(index, kind, access, station, radio, core_ms, buffer, point, upload, pattern, sr_ms)


def scenario(cell: Cell, stations: str, seconds: float, warmup: float) -> str:
    """The text of a scenario of the cell with these stations."""
    hops = f'[core]\nhops = [{{ rate = "10 Gb/s", delay = "{cell.core_ms} ms" }}]\n'
    run = f'[run]\nseed = {cell.number + 1}\nduration = "{seconds} s"\nwarmup = "{warmup} s"\n'
    return f"{run}{hops}{cell.access}{stations}"


def shifted(source: Path, target: Path, shift_ms: float, servers: str) -> None:
    """Moves a capture at the servers by a time along the path, into a pcap file of raw IP: packets from the
    servers pass later, packets to them earlier."""
    data = source.read_bytes()
    at, packets = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            interface, high, low, captured, original = struct.unpack_from("<IIIII", data, at + 8)
            if interface == 0:
                packet = data[at + 28 : at + 28 + captured]
                time = (high << 32) + low
                from_server = ".".join(str(byte) for byte in packet[12:14]) == servers
                time += int((1 if from_server else -1) * shift_ms * 1e6)
                packets.append((time, original, packet))
        at += length
    packets.sort(key=lambda packet: packet[0])
    with target.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
        for time, original, packet in packets:
            time += 10**9
            file.write(struct.pack("<IIII", time // 10**9, time % 10**9, len(packet), original) + packet)


class Grid:
    """Runs cells and gathers verdicts."""

    def __init__(self, program: str, folder: Path, keep: bool) -> None:
        self.program, self.folder, self.keep = program, folder, keep
        self.rows: dict[str, list[tuple[bool, bool, str]]] = {}

    def paceline(self, *args: str) -> str:
        run = subprocess.run([self.program, *args], capture_output=True, text=True, check=False, timeout=600)
        if run.returncode != 0:
            raise RuntimeError(f"{args}: {run.stderr[-500:]}")
        return run.stdout

    def truth(self, cell: Cell, kernel: bool) -> dict[str, float]:
        """Least round trip of pings on the idle path, and capacity by UDP."""
        # As long as the packets of the light traffic; on an idle path, longer ones wait for a second grant.
        payload = 24 if cell.number % 4 == 3 else 56
        kind = f'traffic = "ping"\nping_interval = "184.72 ms"\nping_payload = "{payload} B"\n'
        # In TDD, requests of the other end come at other phases of the pattern.
        kind += f'direction = "{"upload" if cell.point == "client" else "download"}"\n'
        # The occasions of scheduling requests follow from the index of the station.
        others = "" if kernel else f'[[station]]\n{cell.radio}direction = "none"\n'
        ping = f"{others}[[station]]\n{cell.radio}{kind}"
        file = self.folder / f"ping-{cell.number}.toml"
        file.write_text(scenario(cell, ping, 40, 0))
        pings = json.loads(self.paceline("run", str(file), "--json"))
        rtt = pings["runs"][0]["pings"][0]["rtt"]["min_ms"]
        direction = "upload" if cell.upload else "download"
        kind = f'traffic = "udp"\ndirection = "{direction}"\nudp_rate = "400 Mb/s"\n'
        flood = f"[[station]]\n{cell.radio}{kind}"
        file = self.folder / f"udp-{cell.number}.toml"
        # At the same times: the channel is the same.
        light = KERNEL_LIGHT if kernel else LIGHT
        file.write_text(scenario(cell, flood, light + BULK, light))
        totals = json.loads(self.paceline("run", str(file), "--json"))["runs"][0]["stations"][0]
        rate = totals["upload_mbps" if cell.upload else "goodput_mbps"] * 1500 / 1472
        return {"rtt": rtt, "capacity": rate}

    def simulated(self, cell: Cell) -> Path:
        """A capture of a simulation: a light flow, and a bulk transfer beside it."""
        # At the client, its own requests show the uplink: the answers come back.
        way = f'direction = "{"upload" if cell.point == "client" else "download"}"\n'
        kind = f'traffic = "ping"\nping_interval = "184.72 ms"\n{way}'
        if cell.number % 4 == 3:
            kind = f'chunk = "300 B"\nchunk_interval = "211 ms"\nfile = "300 kB"\n{way}'
        light = f"[[station]]\n{cell.radio}{kind}"
        bulk = f'[[station]]\n{cell.radio}{cell.station}start = "{LIGHT} s"\n'
        file = self.folder / f"cell-{cell.number}.toml"
        file.write_text(scenario(cell, bulk + light, LIGHT + BULK, 1))
        out = self.folder / f"run-{cell.number}"
        self.paceline("run", str(file), "--pcap", "--pcap-limit", "300 MB", "--out", str(out))
        return out / f"seed-{cell.number + 1}.pcapng"

    def emulated(self, cell: Cell) -> Path:
        """A capture of this host's TCP: pings, and iperf3 beside them."""
        file = self.folder / f"cell-{cell.number}.toml"
        station = f'[[station]]\n{cell.radio}direction = "none"\n'
        file.write_text(scenario(cell, station, KERNEL_LIGHT + BULK, 1))
        out = self.folder / f"run-{cell.number}"
        back = "" if cell.upload else "-R"
        # Longer than the round trip, or ping waits for the answers.
        ping = "ping -i 0.217 -c 80"
        by_client = cell.point == "client"
        asks = f"{ping} 198.18.0.1 >/dev/null & " if by_client else ""
        asked = "" if by_client else f"{ping} 198.18.128.1 & "
        inside = f"{asks}sleep {KERNEL_LIGHT}; iperf3 -c 198.18.0.1 {back} -t {BULK} >/dev/null"
        shell = f"ip link set lo up; iperf3 -s -1 >/dev/null & (sleep 2; {asked}wait) >/dev/null & sleep 1; "
        shell += f"exec {self.program} emulate {file} --pcap --out {out} -- sh -c '{inside}'"
        # In a network namespace of its own: no other emulation has these addresses.
        command = ["unshare", "-n", "sh", "-c", shell]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if run.returncode != 0:
            raise RuntimeError(f"emulate: {run.stderr[-500:]}")
        return next(out.glob("*.pcapng"))

    def fit(self, cell: Cell, capture: Path, kernel: bool) -> dict[str, Any]:
        """The fit of the capture at the cell's capture point."""
        if cell.point == "between":
            moved = self.folder / f"between-{cell.number}.pcap"
            shifted(capture, moved, cell.core_ms, "198.18")
            options = [str(moved)]
        else:
            stations = ["station-0"] if kernel else ["station-0", "station-1"]
            names = ["servers"] if cell.point == "server" else stations
            options = [str(capture)] + [option for name in names for option in ("--interface", name)]
        found: dict[str, Any] = json.loads(self.paceline("fit", "--json", *options))["fit"]
        return found

    def judge(self, name: str, found: dict[str, Any] | None, right: bool, text: str) -> None:
        claimed = found is not None and found["confidence"] != "low"
        self.rows.setdefault(name, []).append((claimed, right, text))

    def cell(self, cell: Cell, kernel: bool) -> None:
        truth = self.truth(cell, kernel)
        capture = self.emulated(cell) if kernel else self.simulated(cell)
        fit = self.fit(cell, capture, kernel)
        control = cell.station.rsplit('"', 2)[1]
        way = "up" if cell.upload else "down"
        place = f"{cell.number} {cell.kind} {cell.point} {way} {control} {cell.pattern} sr {cell.sr_ms}"
        if kernel:
            place += " kernel"

        def of(name: str) -> tuple[dict[str, Any] | None, float]:
            found = fit[name]
            return found, float("nan") if found is None else found["value"]

        found, value = of("base_rtt_ms")
        error = abs(value - truth["rtt"])
        right = error <= max(1, 0.05 * truth["rtt"])
        self.judge("base RTT", found, right, f"{place}: {value:.2f} of {truth['rtt']:.2f} ms")
        found, value = of("capacity_mbps")
        right = abs(value / truth["capacity"] - 1) <= 0.05
        self.judge("capacity", found, right, f"{place}: {value:.2f} of {truth['capacity']:.2f} Mb/s")
        found, value = of("buffer_bytes")
        right = abs(value / cell.buffer - 1) <= 0.15
        self.judge("buffer", found, right, f"{place}: {value / 1e3:.1f} of {cell.buffer / 1e3:.1f} kB")
        if cell.kind == "link":
            wrong = fit["pattern"]
            claims = wrong is not None and wrong["confidence"] != "low" and wrong["value"] != "FDD"
            self.judge("no pattern of a link", wrong if claims else None, False, f"{place}: {wrong}")
        else:
            found = fit["pattern"]
            value_text = "none" if found is None else found["value"]
            right = value_text == canonical(cell.pattern)
            self.judge("pattern", found, right, f"{place}: {value_text} {found}")
            found, value = of("sr_period_ms")
            self.judge("SR period", found, abs(value - cell.sr_ms) < 1e-6, f"{place}: {value} ms {found}")
        if not self.keep:
            for path in self.folder.glob(f"run-{cell.number}/*.pcapng"):
                path.unlink()
            (self.folder / f"between-{cell.number}.pcap").unlink(missing_ok=True)

    def report(self, worst: int) -> bool:
        """Prints the shares; whether all claims hold as they must."""
        need = {"pattern": 0.95, "SR period": 0.8}
        holds = True
        print(f"{'quantity':22} {'cells':>5} {'claimed':>8} {'right':>7}")
        for name, rows in self.rows.items():
            claims = [row for row in rows if row[0]]
            right = sum(row[1] for row in claims)
            share = right / max(1, len(claims))
            print(f"{name:22} {len(rows):5} {len(claims) / len(rows):8.0%} {share:7.0%}")
            holds &= not claims or share >= need.get(name, 0.95)
        for name, rows in self.rows.items():
            wrong = [row[2] for row in rows if row[0] and not row[1]]
            for text in wrong[:worst]:
                print(f"wrong {name}: {text}")
        for name, rows in self.rows.items():
            for _, right, text in [row for row in rows if not row[0]][:worst]:
                print(f"not claimed {name} ({'right' if right else 'wrong'}): {text}")
        return holds


def canonical(pattern: str) -> str:
    """Letters from the first downlink slot behind an uplink slot on, special slots as D or S."""
    if pattern == "FDD":
        return pattern
    letters, spacing = pattern.split("/")
    starts = [at for at in range(len(letters)) if letters[at] != "U" and letters[at - 1] == "U"]
    return f"{min(letters[at:] + letters[:at] for at in starts)}/{spacing}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="index of the first cell")
    parser.add_argument("--kernel", type=int, default=0, help="cells with this host's TCP, after the others")
    parser.add_argument("--keep", type=Path, help="folder for scenarios and captures, which are kept")
    parser.add_argument("--worst", type=int, default=12, help="cases of each kind that are printed")
    args = parser.parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        if args.keep:
            args.keep.mkdir(parents=True)
        grid = Grid(args.program, args.keep or Path(folder), args.keep is not None)
        for index in range(args.first, args.first + args.cells + args.kernel):
            cell = draw(index, random.Random(f"{args.seed}-{index}"))
            try:
                grid.cell(cell, index >= args.first + args.cells)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"cell {index}: {error}", file=sys.stderr)
        holds = grid.report(args.worst)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

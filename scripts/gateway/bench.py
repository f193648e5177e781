#!/usr/bin/env python3
"""CPU seconds per gigabyte of middleboxes between a client and a server: the kernel alone, `paceline
gateway`, HAProxy and PEPsal, in the same three network namespaces, one after the other in each round.

    scripts/gateway/bench.py [--paceline PATH] [--pepsal PATH] [--rounds N] [--gigabytes N] [--hosts-tso]
                             [--control NAME]

Client and server are iperf3. Packets between hosts are 1514 bytes long, and the middlebox merges and splits
them (GRO, TSO). `CPU s/GB` is the time of the whole machine (/proc/stat): client, server, middlebox and
interrupts; nothing else may run meanwhile. `programs` is the time of the programs alone, with the interrupts
that they are charged with: less exact, and to be used on a machine where other programs run. `in` and `out`
are the mean bytes of the packets that the middlebox receives from the server and sends to the client.
Processor, kernel and offloads are printed beside the figures, which depend on them.

Programs that are not installed are left out with a message. A candidate that fails has no figure and does not
end the others; the exit code is 1 then. Needs root.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from machine import Packets, machine, offloads
from network import CommandError, Network, built_program, main_program, wait_until

# Columns user, system, irq and softirq of /proc/stat (man 5 proc). The measured programs have no nice level.
BUSY_COLUMNS = (0, 2, 5, 6)


def busy_seconds() -> float:
    """CPU time of all processors since boot, in seconds."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(int(ticks[i]) for i in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """CPU time of a process so far in seconds; 0 if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    return sum(int(number) for number in stat.rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def programs_seconds(network: Network) -> float:
    """CPU time of the programs in the network so far, and of all commands that have ended, in seconds."""
    running = sum(process_seconds(pid) for namespace in network.namespaces for pid in network.pids(namespace))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return running + ended.ru_utime + ended.ru_stime


def kernel_alone(_: Network, __: Path) -> None:
    """Starts no program."""


def haproxy(network: Network, folder: Path) -> None:
    config = folder / "haproxy.cfg"
    config.write_text(
        "global\n  nbthread 1\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n"
        "  timeout server 60s\n  option splice-auto\nlisten all\n  bind 10.77.1.1:5201\n  server s 10.77.2.2:5201\n"
    )
    network.start_server(network.middlebox, 5201, "haproxy", "-db", "-f", str(config))


def pepsal(path: str) -> Callable[[Network, Path], None]:
    def start(network: Network, _: Path) -> None:
        network.run_in(network.middlebox, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
        network.run_in(network.middlebox, "ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100")
        network.run_in(
            network.middlebox, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "mobile", "-p", "tcp",
            "-j", "TPROXY", "--on-port", "5000", "--tproxy-mark", "1",
        )  # fmt: skip
        # Packets from the server to a socket of PEPsal have the client's address; they are delivered to the
        # socket.
        network.run_in(
            network.middlebox, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "wired", "-p", "tcp",
            "-m", "socket", "--transparent", "-j", "MARK", "--set-mark", "1",
        )  # fmt: skip
        network.start_server(network.middlebox, 5000, "sh", "-c", f"ulimit -n 65536; exec {path} -f -p 5000")

    return start


def gateway(path: str, settings: str) -> Callable[[Network, Path], None]:
    def start(network: Network, folder: Path) -> None:
        config, control = folder / "gateway.toml", folder / "control.sock"
        config.write_text(f'control = "{control}"\n{settings}')
        process = network.start(network.middlebox, path, "gateway", str(config))

        def started() -> bool:
            if process.poll() is not None:
                raise CommandError(f"{path} gateway: ended with exit code {process.returncode}")
            return control.exists()

        wait_until(started, f"{path} gateway has a control socket")

    return start


# Time after the start of the programs. Chosen: the gateway's first heartbeats, addresses of IPv6.
SETTLE_S = 0.5


@dataclass
class Figure:
    """The result of one transfer."""

    cpu_s_per_gb: float
    # CPU time of the programs at both ends and of the middlebox.
    programs_s_per_gb: float
    gbit_per_s: float
    # Mean bytes of the packets from the server, and of those to the client.
    bytes_in: float
    bytes_out: float


@dataclass
class Candidate:
    """A middlebox, and its results so far."""

    name: str
    routed: bool
    prepare: Callable[[Network, Path], None]
    figures: list[Figure]
    failures: list[str]

    def median(self, value: Callable[[Figure], float]) -> float:
        return statistics.median(value(figure) for figure in self.figures)


def measure(candidate: Candidate, options: argparse.Namespace) -> Figure:
    """One transfer through a network of its own."""
    routed = candidate.routed
    addresses = ("10.77.1.2/24", "10.77.2.2/24") if routed else ("10.77.1.2/16", "10.77.2.2/16")
    network = Network(*addresses, routed=routed)
    try:
        prepare_hosts(network, options)
        with tempfile.TemporaryDirectory() as folder:
            candidate.prepare(network, Path(folder))
            network.start_server(network.server, 5201, "iperf3", "-s")
            time.sleep(SETTLE_S)
            target = "10.77.1.1" if candidate.name == "haproxy" else "10.77.2.2"
            client = ["iperf3", "-c", target, "-R", "-J", "-P", str(options.streams), "-n"]
            network.run_in(network.client, *client, "20M")  # resolve addresses, warm up
            rate = ["-b", options.rate] if options.rate else []
            packets, before, started = Packets(network), programs_seconds(network), time.monotonic()
            machine_before = busy_seconds()
            length = f"{int(options.gigabytes * 1000 / options.streams)}M"
            report = json.loads(network.run_in(network.client, *client, length, *rate))
            machine_s, took_s = busy_seconds() - machine_before, time.monotonic() - started
            programs_s = programs_seconds(network) - before
            if "error" in report:
                raise CommandError(f"iperf3: {report['error']}")
            gigabytes = report["end"]["sum_received"]["bytes"] / 1e9
            if gigabytes == 0:
                raise CommandError("iperf3: nothing was transferred")
            costs = (machine_s / gigabytes, programs_s / gigabytes)
            return Figure(*costs, gigabytes * 8 / took_s, *packets.mean_bytes())
    finally:
        network.close()


def prepare_hosts(network: Network, options: argparse.Namespace) -> None:
    """Sets the hosts' offloads and congestion control."""
    if not options.hosts_tso:
        for host in (network.client, network.server):
            network.run_in(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
    if options.control:
        for host in (network.client, network.middlebox, network.server):
            network.run_in(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={options.control}")


def print_conditions(options: argparse.Namespace) -> None:
    """Prints what the figures depend on beside the middleboxes."""
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    try:
        prepare_hosts(network, options)
        print("\n".join(machine() + offloads(network)))
    finally:
        network.close()


# Columns of the printed figures: heading, decimals, value.
COLUMNS: list[tuple[str, int, Callable[[Figure], float]]] = [
    ("CPU s/GB", 2, lambda figure: figure.cpu_s_per_gb),
    ("programs", 2, lambda figure: figure.programs_s_per_gb),
    ("Gb/s", 2, lambda figure: figure.gbit_per_s),
    ("in", 0, lambda figure: figure.bytes_in),
    ("out", 0, lambda figure: figure.bytes_out),
]
# The columns that are also printed relative to the first candidate.
COSTS = COLUMNS[:2]


def print_figures(candidates: list[Candidate]) -> None:
    """Prints the medians. Costs are relative to those of the first candidate."""
    first = candidates[0]
    headings = [
        f"{name:>9}" + (f"{'relative':>9}" if (name, digits, value) in COSTS else "") for name, digits, value in COLUMNS
    ]
    print(f"{'':16}{''.join(headings)}")
    for candidate in candidates:
        if candidate.figures:
            cells = []
            for column in COLUMNS:
                _, digits, value = column
                median = candidate.median(value)
                cells.append(f"{median:9.{digits}f}")
                if column in COSTS:
                    cells.append(f"{median / first.median(value):9.2f}" if first.figures else f"{'-':>9}")
            print(f"{candidate.name:16}{''.join(cells)}")
        if candidate.failures:
            count, reason = len(candidate.failures), candidate.failures[-1]
            print(f"{candidate.name:16} failed in {count} round{'s' if count > 1 else ''}: {reason}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--pepsal", default=shutil.which("pepsal"), metavar="PATH")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--rate", help="rate of each stream, such as 1G, instead of the highest")
    parser.add_argument("--control", help="congestion control of all senders instead of this machine's")
    parser.add_argument("--only", default="", help="names to measure, separated by commas")
    parser.add_argument("--hosts-tso", action="store_true", help="64 KB super-packets end to end")
    parser.add_argument("--config", type=Path, help="the gateway's settings instead of the defaults")
    parser.add_argument(
        "--gateway", action="append", default=[], metavar="NAME=PATH",
        help="another program to measure as a gateway, such as an earlier build (repeatable)",
    )  # fmt: skip
    return parser.parse_args()


def candidates_of(options: argparse.Namespace) -> list[Candidate]:
    """The middleboxes to measure."""
    settings = options.config.read_text() if options.config else 'server = "wired"\nmobile = "mobile"\n'
    programs = [("gateway", options.paceline), *(other.split("=", 1) for other in options.gateway)]
    candidates = [
        Candidate("kernel routing", True, kernel_alone, [], []),
        Candidate("kernel bridge", False, kernel_alone, [], []),
        *(Candidate(name, False, gateway(os.path.abspath(path), settings), [], []) for name, path in programs),
    ]
    if shutil.which("haproxy"):
        candidates.append(Candidate("haproxy", True, haproxy, [], []))
    if options.pepsal:
        candidates.append(Candidate("pepsal", True, pepsal(options.pepsal), [], []))
    for name in ("haproxy", "pepsal"):
        if name not in [candidate.name for candidate in candidates]:
            print(f"left out: {name} is not installed", file=sys.stderr)
    only = [name.strip() for name in options.only.split(",") if name.strip()]
    known = [candidate.name for candidate in candidates]
    for name in only:
        if name not in known:
            sys.exit(f"--only {name}: allowed: {', '.join(known)}")
    return [candidate for candidate in candidates if not only or candidate.name in only]


def main() -> None:
    options = parse_options()
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    candidates = candidates_of(options)
    print_conditions(options)
    for number in range(options.rounds):
        for candidate in candidates:
            print(f"round {number + 1}: {candidate.name}", file=sys.stderr)
            try:
                candidate.figures.append(measure(candidate, options))
            except (CommandError, ValueError) as error:
                print(f"{candidate.name}: {error}", file=sys.stderr)
                candidate.failures.append(str(error))
    print_figures(candidates)
    if any(candidate.failures for candidate in candidates):
        sys.exit(1)


if __name__ == "__main__":
    main_program(main)

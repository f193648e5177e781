#!/usr/bin/env python3
"""Converts packetdrill's .pkt files into behaviour scripts (docs/tcp-scripts.md) and runs them.

    git clone https://github.com/google/packetdrill
    scripts/check/packetdrill.py packetdrill/gtests/net/tcp

prints for each file whether it holds, fails, or cannot be expressed and why, then the number of each. The
scripts are written below --out; --no-run only writes them. Statements about the socket API, about PSH, and
about fields of tcp_info that behaviour scripts lack are left out; assertions left out are counted. Times have
packetdrill's tolerance of 4 ms.
"""

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# packetdrill's default tolerance (run_packet.c, --tolerance_usecs), and the settings of gtests' defaults.sh.
TOLERANCE_US = 4000
DEFAULT_SYSCTLS = {
    "tcp_timestamps": "1",
    "tcp_sack": "1",
    "tcp_dsack": "1",
    "tcp_ecn": "0",
    "tcp_frto": "2",
    "tcp_early_retrans": "4",
    "tcp_recovery": "1",
    "tcp_congestion_control": "cubic",
    "tcp_slow_start_after_idle": "0",
    "tcp_syn_retries": "5",
    "tcp_synack_retries": "5",
    "tcp_syn_linear_timeouts": "4",
}
# Settings that change nothing here: of memory, of the size of bursts, and the defaults of others.
IGNORED_SYSCTLS = re.compile(r"tcp_(rmem|wmem|tso_win_divisor|min_tso_segs|pacing_.*_ratio|fack|reordering|ecn_option)")
IGNORED_OPTIONS = ("SO_REUSEADDR", "IP_FREEBIND", "SO_MARK", "SO_SNDBUF, [200000]", "SO_SNDBUF, [2000000]")
# Calls without effect on segments once the connection is open.
IGNORED_CALLS = ("socket", "bind", "listen", "fcntl", "getsockopt")
QUANTITIES = {"tcpi_snd_cwnd": "cwnd", "tcpi_snd_ssthresh": "ssthresh", "tcpi_total_retrans": "retransmitted_segments"}
ECN = {"ect0": "ect0", "ect1": "ect1", "ce": "ce", "noecn": "noect"}
# Bytes of the timestamps option in each segment (RFC 7323 appendix A), and the MSS of packetdrill's device.
TIMESTAMPS_LEN = 12
OWN_MSS = 1460

TIME = re.compile(r"(?P<mark>\+?)(?P<low>\d*\.?\d+)?(?:\s*(?:\.\.\.|~)\s*\+?(?P<high>\d*\.?\d+))?\s+|(?P<any>\*)\s+")
PACKET = re.compile(
    r"(?P<way>[<>])\s*(?:\[(?P<ecn>[^\]]*)\]\s*)?(?P<flags>[SFRPEWUA.\-]+)\s+(?P<left>\d+):(?P<right>\d+)\((?P<len>\d+)\)"
    r"(?:\s+ack\s+(?P<ack>\d+))?(?:\s+win\s+(?P<win>\d+))?\s*(?:<(?P<options>[^>]*)>)?\s*$"
)
CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)\s*=\s*(?P<result>\S+)", re.DOTALL)
ASSERT = re.compile(r"assert\s+(tcpi_\w+)\s*(==|!=|<=|>=|<|>)\s*(\d+)\s*(?:,|;|$|\\)")


class Inexpressible(Exception):
    """The reason why a file has no equivalent."""


@dataclass
class Statement:
    """One timed event; times in microseconds from the start."""

    low: int
    high: int
    text: str


@dataclass
class Conversion:
    """The state of the conversion of one file."""

    sysctls: dict[str, str]
    tolerance: int = TOLERANCE_US
    active: bool = False
    start_us: int = 0
    advertised: int = OWN_MSS
    nagle: str = "minshall"
    pacing: str = "none"
    mss: int = OWN_MSS
    peer_mss: int = 536
    timestamps: bool = False
    opened: bool = False
    closed: bool = False
    last_us: int = 0
    written: int = 0
    arrived: int = 0
    read: int = 0
    left_out: int = 0
    sockets: int = 0
    listening: set[str] = field(default_factory=set)
    clock: dict[int, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def add(self, at: int, event: str, until: int | None = None) -> None:
        """Appends a line at a time, or for a segment that leaves, within the tolerance around it."""
        wait = max(at - self.last_us, 0)
        if until is None:
            when = f"+{wait}us"
        else:
            latest = max(until - self.last_us, wait) + self.tolerance
            when = f"+{max(wait - self.tolerance, 0)}us..{latest}us"
        self.lines.append(f"{when:<10} {event}")
        self.last_us = max(at, self.last_us)


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"(^|\s)//[^\n]*", r"\1", text)


def microseconds(text: str) -> int:
    return round(float(text) * 1e6)


def statement_end(text: str, at: int) -> int:
    """The end of the statement that begins at `at`: a code block, a command, or a line with its brackets."""
    for opening, closing in (("%{", "}%"), ("`", "`")):
        if text.startswith(opening, at):
            end = text.find(closing, at + len(opening))
            return len(text) if end < 0 else end + len(closing)
    depth, end = 0, at
    while end < len(text):
        letter = text[end]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "\n" and depth <= 0:
            break
        end += 1
    return end


def statements(text: str, conversion: Conversion) -> list[Statement]:
    """Cuts a file into statements; options and commands before the first one go into the conversion."""
    found: list[Statement] = []
    at = now = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("--", at):
            end = text.find("\n", at)
            option(text[at:end].strip(), conversion)
            at = end
        elif text[at] == "`":
            end = statement_end(text, at)
            command(text[at:end], conversion)
            at = end
        else:
            time = TIME.match(text, at)
            if time is None:
                raise Inexpressible(f"unknown statement: {text[at : at + 40].splitlines()[0]}")
            base = now if time["mark"] else 0
            low = now if time["any"] else base + microseconds(time["low"] or "0")
            high = base + microseconds(time["high"]) if time["high"] else low
            end = statement_end(text, time.end())
            found.append(Statement(low, max(low, high), text[time.end() : end].strip()))
            now, at = low, end
    return found


def option(text: str, conversion: Conversion) -> None:
    name, _, value = text.split()[0].partition("=")
    if name == "--tolerance_usecs":
        conversion.tolerance = int(value)
    elif name == "--tcp_ts_ecr_scaled":
        raise Inexpressible("scaled timestamps")


def command(text: str, conversion: Conversion) -> None:
    """Takes the settings of a shell command."""
    if re.search(r"qdisc\s+(add|replace)[^\n]*(limit|netem)", text):
        raise Inexpressible("a device that drops packets")
    if re.search(r"qdisc\s+(add|replace)[^\n]*\bfq\b", text):
        conversion.pacing = "linux"
    if re.search(r"ip\s+(route|link|tcp_metrics)|ifconfig", text):
        raise Inexpressible("routes and devices")
    for name, value in re.findall(r"net[./]ipv4[./](\w+)=\"?([^\s\"`\\]*)", text):
        if name in DEFAULT_SYSCTLS:
            conversion.sysctls[name] = value
        elif "fastopen" in name:
            raise Inexpressible("TCP Fast Open")
        elif not IGNORED_SYSCTLS.fullmatch(name):
            raise Inexpressible(f"sysctl {name}")


def segment(match: re.Match[str], at: Statement, conversion: Conversion) -> str:
    """A segment in the notation of behaviour scripts."""
    flags = match["flags"].replace(".", "A")
    left, right, length = int(match["left"]), int(match["right"]), int(match["len"])
    leaves, syn = match["way"] == ">", "S" in flags
    place = str(left)
    if length:
        size = conversion.mss if leaves else length
        place = f"{left}..{right}/{size}"
    words = [flags, place]
    if "A" in flags:
        words += ["ack", match["ack"] or "0"]
    if match["win"] and not (leaves and not syn):
        words += ["win", match["win"]]
    words += options(match["options"], leaves, syn, at, conversion)
    if match["ecn"]:
        if match["ecn"] not in ECN:
            raise Inexpressible(f"IP header: {match['ecn']}")
        words.append(ECN[match["ecn"]])
    if leaves and length:
        words.append("anypush")
    return " ".join(words)


def options(text: str | None, leaves: bool, syn: bool, at: Statement, conversion: Conversion) -> list[str]:
    """The options of a segment; `<...>` stands for any."""
    words: list[str] = []
    if text is not None and text.strip() == "...":
        return words
    seen: set[str] = set()
    for item in (item.strip() for item in (text or "").split(",")):
        name = item.split(" ")[0] if item else "nop"
        seen.add(name)
        numbers = [int(number) for number in re.findall(r"\d+", item)]
        if name in ("nop", "eol"):
            continue
        if name == "mss":
            words += ["mss", str(numbers[0])]
            if not leaves:
                conversion.peer_mss = numbers[0]
        elif name == "sackOK":
            words.append("sackok")
        elif name == "wscale":
            words += ["wscale", str(numbers[0])]
        elif name == "sack":
            blocks = zip(numbers[::2], numbers[1::2])
            words += ["sack"] + [f"{left}..{right}" for left, right in blocks]
        elif name == "TS":
            words += ["ts", timestamps(numbers, leaves, at, conversion)]
        elif name in ("FO", "FOEXP"):
            raise Inexpressible("TCP Fast Open")
        else:
            raise Inexpressible(f"option {name}")
    if syn and leaves:
        words += [no for name, no in (("TS", "nots"), ("wscale", "nowscale"), ("sackOK", "nosackok")) if name not in seen]
    if syn and not leaves:
        conversion.timestamps = "TS" in seen and conversion.sysctls["tcp_timestamps"] == "1"
        room = min(conversion.advertised, conversion.peer_mss)
        conversion.mss = room - (TIMESTAMPS_LEN if conversion.timestamps else 0)
    return words


def timestamps(numbers: list[int], leaves: bool, at: Statement, conversion: Conversion) -> str:
    """Own timestamps count milliseconds from 1; a .pkt file names them by its own numbers."""
    val, ecr = numbers
    if leaves:
        conversion.clock[val] = at.low // 1000 + 1
        return f"*:{ecr}"
    return f"{val}:{conversion.clock.get(ecr, ecr)}"


def packet(statement: Statement, conversion: Conversion) -> None:
    match = PACKET.match(" ".join(statement.text.split()))
    if match is None:
        reason = "ICMP" if "icmp" in statement.text else "TCP Fast Open" if "FO" in statement.text else "segment"
        raise Inexpressible(reason if reason != "segment" else f"segment: {statement.text[:60]}")
    leaves = match["way"] == ">"
    if not leaves:
        if "S" in match["flags"] and not conversion.active and conversion.opened and int(match["left"]) == 0:
            raise Inexpressible("several connections in turn")
        if "S" in match["flags"] and int(match["len"]):
            raise Inexpressible("TCP Fast Open")
        if int(match["left"]) <= conversion.arrived + 1:
            conversion.arrived = max(conversion.arrived, int(match["right"]) - 1)
        conversion.opened = True
    elif "S" in match["flags"] and int(match["len"]):
        raise Inexpressible("TCP Fast Open")
    text = segment(match, statement, conversion)
    conversion.add(statement.low, f"{match['way']} {text}", statement.high if leaves else None)


def set_option(arguments: str, conversion: Conversion) -> None:
    maxseg = re.search(r"TCP_MAXSEG, \[(\d+)\]", arguments)
    if "TCP_NODELAY, [1]" in arguments:
        conversion.nagle = "off"
    elif maxseg:
        conversion.advertised = int(maxseg[1])
    elif not any(name in re.sub(r"\s+", " ", arguments) for name in IGNORED_OPTIONS):
        named = re.search(r"((?:TCP|SO|IP|IPV6)_\w+)", arguments.split(",", 2)[-1])
        option_name = named[1] if named else arguments
        raise Inexpressible("TCP Fast Open" if "FASTOPEN" in option_name else f"socket option {option_name}")


def call(statement: Statement, conversion: Conversion) -> None:
    """A system call: of the application's calls only those that change what is sent remain."""
    match = CALL.match(statement.text)
    if match is None:
        raise Inexpressible(f"statement: {statement.text[:40]}")
    name, arguments, result = match["name"], match["arguments"], match["result"]
    if "FASTOPEN" in arguments:
        raise Inexpressible("TCP Fast Open")
    descriptor = arguments.split(",")[0].strip()
    if name == "socket":
        conversion.sockets += 1
        if conversion.sockets > 1:
            raise Inexpressible("several connections in turn")
    if name == "listen":
        conversion.listening.add(descriptor)
    if name == "setsockopt":
        set_option(arguments, conversion)
    elif name == "connect":
        if "EINPROGRESS" not in statement.text and result != "0":
            raise Inexpressible("a connect that fails")
        conversion.active, conversion.start_us = True, statement.low
    elif name in ("write", "send"):
        write(name, arguments, result, statement, conversion)
    elif name in ("read", "recv"):
        if result.isdigit() and int(result) > 0:
            conversion.read += int(result)
            conversion.add(statement.low, f"! read {result}")
    elif name == "close" or name == "shutdown":
        finish(name, arguments, descriptor, statement, conversion)
    elif name == "ioctl" and "SIOCINQ" in arguments:
        unread = re.search(r"\[(\d+)\]", arguments)
        if unread:
            conversion.add(statement.low, f"? bytes_received == {int(unread[1]) + conversion.read}")
    elif name == "accept" and statement.low == statement.high:
        conversion.add(statement.low, "? established == yes")
    elif name not in (*IGNORED_CALLS, "accept"):
        raise Inexpressible(f"system call {name}")


def write(name: str, arguments: str, result: str, statement: Statement, conversion: Conversion) -> None:
    if name == "send" and not re.search(r",\s*0\s*$", arguments):
        raise Inexpressible("flags of send")
    wanted = arguments.split(",")[2].strip()
    if result == "-1":
        if "EPIPE" not in statement.text:
            raise Inexpressible("a write that fails")
        return
    if result.isdigit() and wanted.isdigit() and int(wanted) != int(result):
        raise Inexpressible("a write that is cut short by the send buffer")
    if not result.isdigit():
        raise Inexpressible("a write of unknown length")
    conversion.add(statement.low, f"! write {result}")


def finish(name: str, arguments: str, descriptor: str, statement: Statement, conversion: Conversion) -> None:
    if descriptor in conversion.listening or "SHUT_RD)" in f"{arguments})" or conversion.closed:
        return
    if not conversion.opened:
        raise Inexpressible("close before the connection is open")
    if name == "close" and conversion.arrived > conversion.read:
        raise Inexpressible("close with unread data, which resets")
    conversion.closed = True
    conversion.add(statement.low, "! close")


def check(statement: Statement, conversion: Conversion) -> None:
    """The assertions of a code block, as far as they are quantities of behaviour scripts."""
    code = re.sub(r"#[^\n]*", "", statement.text)
    conversion.left_out += len(re.findall(r"\bassert\b", code))
    for name, operator, value in ASSERT.findall(code):
        if name not in QUANTITIES:
            continue
        conversion.left_out -= 1
        if name.startswith("tcpi_snd_"):
            large = int(value) >= 0x7FFFFFFF
            value = "infinite" if large else f"{int(value) * conversion.mss}B"
        conversion.add(statement.low, f"? {QUANTITIES[name]} {operator} {value}")


def header(conversion: Conversion) -> list[str]:
    sysctls = conversion.sysctls
    offers = sysctls["tcp_timestamps"] == "1" and (conversion.active or conversion.timestamps)
    if sysctls["tcp_congestion_control"] not in ("cubic", "reno"):
        raise Inexpressible(f"congestion control {sysctls['tcp_congestion_control']}")
    variant = {"cubic": "cubic", "reno": "newreno"}[sysctls["tcp_congestion_control"]]
    switch = {True: "on", False: "off"}
    return [
        f"open = {'active' if conversion.active else 'passive'}",
        *([f"start_at = {conversion.start_us}us"] if conversion.active else []),
        "source = calls",
        "strict = off",
        f"segment_size = {conversion.advertised - (TIMESTAMPS_LEN if offers else 0)}",
        f"timestamps = {switch[offers]}",
        f"sack = {switch[sysctls['tcp_sack'] == '1']}",
        f"dsack = {switch[sysctls['tcp_dsack'] == '1']}",
        f"ecn = {({'1': 'on', '2': 'passive'}).get(sysctls['tcp_ecn'], 'off')}",
        f"variant = {variant}",
        f"frto = {switch[sysctls['tcp_frto'] != '0']}",
        f"loss_recovery = {'sack' if sysctls['tcp_recovery'] == '0' else 'rack'}",
        f"tail_loss_probe = {switch[sysctls['tcp_early_retrans'] in ('3', '4')]}",
        f"idle_restart = {switch[sysctls['tcp_slow_start_after_idle'] == '1']}",
        f"syn_retries = {sysctls['tcp_syn_retries']}",
        f"syn_ack_retries = {sysctls['tcp_synack_retries']}",
        f"syn_linear_timeouts = {sysctls['tcp_syn_linear_timeouts']}",
        f"nagle = {conversion.nagle}",
        f"pacing = {conversion.pacing}",
        "receive_buffer = 15728640",
        "adaptive_ack = on",
        "sack_compression = on",
        "",
    ]


def convert(text: str) -> tuple[str, int]:
    """The behaviour script of a .pkt file, and the number of assertions left out."""
    conversion = Conversion(dict(DEFAULT_SYSCTLS))
    for statement in statements(without_comments(text), conversion):
        if statement.text.startswith(("<", ">")):
            packet(statement, conversion)
        elif statement.text.startswith("%{"):
            check(statement, conversion)
        elif statement.text.startswith("`"):
            command(statement.text, conversion)
        else:
            call(statement, conversion)
    if not any("> " in line or "? " in line for line in conversion.lines):
        raise Inexpressible("no segment leaves")
    return "\n".join(header(conversion) + conversion.lines) + "\n", conversion.left_out


def run(folder: Path, runner: list[str]) -> tuple[dict[str, bool], str]:
    """Runs the scripts below a folder: the verdict of each, and the runner's output."""
    environment = {**os.environ, "PACELINE_SCRIPTS": str(folder.resolve())}
    done = subprocess.run(runner, env=environment, capture_output=True, text=True, check=False)
    verdicts = re.findall(r"^test (\S+) \.\.\. (ok|FAILED)$", done.stdout, re.MULTILINE)
    if not verdicts:
        sys.exit(f"{' '.join(runner)}: ran no script\n{done.stderr[-2000:]}")
    return {name: verdict == "ok" for name, verdict in verdicts}, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a .pkt file, or a folder with them")
    parser.add_argument("--out", type=Path, default=Path("target/packetdrill"), help="folder for the scripts")
    parser.add_argument("--no-run", action="store_true", help="write the scripts only")
    parser.add_argument("--runner", nargs="+", default=["cargo", "test", "-q", "-p", "paceline-tcp", "--test", "scripts"])
    arguments = parser.parse_args()
    root = arguments.source if arguments.source.is_dir() else arguments.source.parent
    files = sorted(arguments.source.rglob("*.pkt")) if arguments.source.is_dir() else [arguments.source]
    if not files:
        parser.error(f"{arguments.source}: no .pkt files")
    results: dict[str, tuple[str, str]] = {}
    scripts: dict[str, tuple[str, int]] = {}
    for file in files:
        place = file.relative_to(root).with_suffix("")
        folder = "-".join(place.parts[:-1]) or "packetdrill"
        try:
            script, left_out = convert(file.read_text())
        except Inexpressible as reason:
            results[str(place)] = ("cannot be expressed", str(reason))
            continue
        path = arguments.out / folder / f"{place.name}.script"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# packetdrill: {place}\n{script}")
        scripts[f"{folder}/{place.name}"] = (str(place), left_out)
    output = ""
    if scripts and not arguments.no_run:
        verdicts, output = run(arguments.out, arguments.runner)
        for name, (file_name, left_out) in scripts.items():
            note = f"{left_out} assertions left out" if left_out else ""
            results[file_name] = ("holds" if verdicts.get(name) else "fails", note)
    for file_name in sorted(results):
        verdict, note = results[file_name]
        print(f"{verdict:<20} {file_name}{': ' if note else ''}{note}")
    for verdict in ("holds", "fails", "cannot be expressed"):
        print(f"{sum(result[0] == verdict for result in results.values()):>5} {verdict}")
    if not arguments.no_run:
        (arguments.out / "report.txt").write_text(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())

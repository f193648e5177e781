"""A client, a middlebox and a server in three network namespaces, for measurements with the kernel's network
stack."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

# Chosen: longer than any measured transfer; a program that hangs ends the measurement.
COMMAND_TIMEOUT_S = 300


class CommandError(Exception):
    """A command that failed or hung; the message has the command and its output."""


def run(*args: str, check: bool = True) -> str:
    """Runs a command; gives its standard output."""
    try:
        done = subprocess.run(args, check=False, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{' '.join(args)}: {error}") from error
    if check and done.returncode != 0:
        message = done.stderr.strip() or error_in(done.stdout) or f"exit code {done.returncode}"
        raise CommandError(f"{' '.join(args)}: {message}")
    return done.stdout


def error_in(output: str) -> str:
    """The message in the output of a failed command: iperf3 -J writes it as JSON, among its results."""
    try:
        return str(json.loads(output)["error"])
    except (ValueError, KeyError, TypeError):
        return output.strip()


def built_program() -> str:
    """The release build of the program, in cargo's folder of builds."""
    folder = run(str(pathlib.Path(__file__).parent.parent / "package" / "target_dir.sh")).strip()
    return f"{folder}/release/paceline"


def main_program(main: Callable[[], None]) -> None:
    """Runs a script's main function. A failed command ends the script with its message. SIGTERM and SIGHUP
    end it like Ctrl-C, so that namespaces and programs are removed."""

    def stop(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        main()
    except CommandError as error:
        sys.exit(str(error))


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = 10.0) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise CommandError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.02)


class Network:
    """The middlebox has interfaces `mobile` and `wired`, connected to `eth0` of client and server. They
    belong to two networks between which the middlebox routes, or are ports of a bridge. Client and server may
    have no addresses. `close` ends all programs in the namespaces and removes these."""

    numbers = itertools.count()

    def __init__(self, client: str, server: str, routed: bool = False) -> None:
        prefix = f"pl{os.getpid() % 100000}-{next(self.numbers)}"
        self.client, self.middlebox, self.server = (prefix + name for name in ("c", "b", "s"))
        self.namespaces: list[str] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            self.connect(client, server)
            if routed:
                self.route(client, server)
            else:
                self.bridge()
        except BaseException:
            self.close()
            raise

    def connect(self, client: str, server: str) -> None:
        """Makes the namespaces and the interfaces."""
        for name in (self.client, self.middlebox, self.server):
            self.add_namespace(name)
        for host, device, address in ((self.client, "mobile", client), (self.server, "wired", server)):
            run("ip", "link", "add", device, "netns", self.middlebox, "type", "veth", "peer", "eth0", "netns", host)
            self.run_in(self.middlebox, "ethtool", "-K", device, "gro", "on")
            self.run_in(host, "ethtool", "-K", "eth0", "gro", "on")
            if address:
                run("ip", "-n", host, "addr", "add", address, "dev", "eth0")
            run("ip", "-n", host, "link", "set", "eth0", "up")
            run("ip", "-n", self.middlebox, "link", "set", device, "up")

    def add_namespace(self, name: str) -> None:
        """Makes a namespace, which `close` removes."""
        run("ip", "netns", "add", name)
        self.namespaces.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def route(self, client: str, server: str) -> None:
        """Makes the middlebox a router."""
        for host, device, address in ((self.client, "mobile", client), (self.server, "wired", server)):
            gateway = address.split("/")[0].rsplit(".", 1)[0] + ".1"
            run("ip", "-n", self.middlebox, "addr", "add", f"{gateway}/24", "dev", device)
            run("ip", "-n", host, "route", "add", "default", "via", gateway)
        self.run_in(self.middlebox, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def bridge(self) -> None:
        """Makes the middlebox a bridge."""
        run("ip", "-n", self.middlebox, "link", "add", "br0", "type", "bridge")
        for device in ("mobile", "wired"):
            run("ip", "-n", self.middlebox, "link", "set", device, "master", "br0")
        run("ip", "-n", self.middlebox, "link", "set", "br0", "up")

    def run_in(self, name: str, *args: str, check: bool = True) -> str:
        """Runs a command in a namespace."""
        return run("ip", "netns", "exec", name, *args, check=check)

    def pids(self, name: str) -> list[int]:
        """The processes in a namespace."""
        return [int(pid) for pid in run("ip", "netns", "pids", name, check=False).split()]

    def start(self, name: str, *args: str) -> subprocess.Popen[bytes]:
        """Starts a program in a namespace. `close` ends it."""
        # The program ends when this script is killed.
        command = ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", name, *args]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def start_server(self, name: str, port: int, *args: str) -> subprocess.Popen[bytes]:
        """Starts a program in a namespace, and waits until it listens on a TCP port."""
        process = self.start(name, *args)

        def listening() -> bool:
            if process.poll() is not None:
                raise CommandError(f"{' '.join(args)}: ended with exit code {process.returncode}")
            return bool(self.run_in(name, "ss", "-Hltn", f"sport = :{port}").strip())

        wait_until(listening, f"{args[0]} listens on port {port}")
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a program."""
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)

    def close(self) -> None:
        """Ends all programs, also those that a started program has left behind, and removes the
        namespaces."""
        for process in list(self.processes):
            self.stop(process)
        for name in self.namespaces:
            for pid in self.pids(name):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended meanwhile
            run("ip", "netns", "del", name, check=False)

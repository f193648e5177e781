"""A client, a middlebox and a server in three network namespaces, for measurements with the kernel's network
stack."""

import itertools
import os
import pathlib
import subprocess
import sys


def run(*args: str, check: bool = True) -> str:
    """Runs a command; gives its standard output."""
    done = subprocess.run(args, check=False, capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(args)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def built_program() -> str:
    """The release build of the program, in cargo's folder of builds."""
    folder = run(str(pathlib.Path(__file__).parent.parent / "target_dir.sh")).strip()
    return f"{folder}/release/paceline"


class Network:
    """The middlebox has interfaces `mobile` and `wired`, connected to `eth0` of client and server. They
    belong to two networks between which the middlebox routes, or are ports of a bridge. Client and server may
    have no addresses."""

    numbers = itertools.count()

    def __init__(self, client: str, server: str, routed: bool = False) -> None:
        prefix = f"pl{os.getpid() % 100000}-{next(self.numbers)}"
        self.client, self.middlebox, self.server = (prefix + name for name in ("c", "b", "s"))
        self.processes: list[subprocess.Popen[bytes]] = []
        for name in (self.client, self.middlebox, self.server):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for host, device, address in ((self.client, "mobile", client), (self.server, "wired", server)):
            run("ip", "link", "add", device, "netns", self.middlebox, "type", "veth", "peer", "eth0", "netns", host)
            self.run_in(self.middlebox, "ethtool", "-K", device, "gro", "on")
            self.run_in(host, "ethtool", "-K", "eth0", "gro", "on")
            if address:
                run("ip", "-n", host, "addr", "add", address, "dev", "eth0")
            run("ip", "-n", host, "link", "set", "eth0", "up")
            run("ip", "-n", self.middlebox, "link", "set", device, "up")
        if routed:
            for host, device, address in ((self.client, "mobile", client), (self.server, "wired", server)):
                gateway = address.split("/")[0].rsplit(".", 1)[0] + ".1"
                run("ip", "-n", self.middlebox, "addr", "add", f"{gateway}/24", "dev", device)
                run("ip", "-n", host, "route", "add", "default", "via", gateway)
            self.run_in(self.middlebox, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        else:
            run("ip", "-n", self.middlebox, "link", "add", "br0", "type", "bridge")
            for device in ("mobile", "wired"):
                run("ip", "-n", self.middlebox, "link", "set", device, "master", "br0")
            run("ip", "-n", self.middlebox, "link", "set", "br0", "up")

    def run_in(self, name: str, *args: str, check: bool = True) -> str:
        """Runs a command in a namespace."""
        return run("ip", "netns", "exec", name, *args, check=check)

    def start(self, name: str, *args: str) -> subprocess.Popen[bytes]:
        """Starts a program in a namespace. `close` ends it."""
        command = ["ip", "netns", "exec", name, *args]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a program."""
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
        self.processes.remove(process)

    def close(self) -> None:
        """Ends all programs and removes the namespaces."""
        for process in list(self.processes):
            self.stop(process)
        for name in (self.client, self.middlebox, self.server):
            run("ip", "netns", "del", name, check=False)

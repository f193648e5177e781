"""The conditions of a figure of the gateway: processor, kernel, offloads of the interfaces, and the mean
length of the packets that the middlebox receives and sends."""

import json
import os
import platform
from pathlib import Path

from network import Network, run

# Features of `ethtool -k`, and their names in the output.
OFFLOADS = {
    "rx-checksumming": "rx checksum",
    "tx-checksumming": "tx checksum",
    "tcp-segmentation-offload": "TSO",
    "generic-segmentation-offload": "GSO",
    "generic-receive-offload": "GRO",
}


def machine() -> list[str]:
    """Lines on processor and kernel."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    name = fields.get("model name", platform.machine())
    family = ", ".join(f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields)
    hypervisor = "hypervisor" in fields.get("flags", "").split()
    virtual = ", a virtual machine" if hypervisor else ""
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    source = f", clock {clock.read_text().strip()}" if clock.exists() else ""
    mitigations = Path("/sys/devices/system/cpu/vulnerabilities/spectre_v2")
    spectre = f"\nspectre_v2   {mitigations.read_text().strip()}" if mitigations.exists() else ""
    return (
        f"processor    {name} ({family}), {os.cpu_count()} CPUs{virtual}\n"
        f"kernel       {platform.system()} {platform.release()}{source}{spectre}"
    ).splitlines()


def offloads(network: Network) -> list[str]:
    """Lines on the offloads of the middlebox's and the hosts' interfaces."""
    places = (
        ("middlebox", network.middlebox, "mobile"),
        ("middlebox", network.middlebox, "wired"),
        ("client", network.client, "eth0"),
        ("server", network.server, "eth0"),
    )
    lines: dict[str, list[str]] = {}
    for host, namespace, device in places:
        features = network.run_in(namespace, "ethtool", "-k", device)
        values = dict(line.strip().split(": ", 1) for line in features.splitlines() if ": " in line)
        text = ", ".join(f"{name} {values.get(key, '?').split()[0]}" for key, name in OFFLOADS.items())
        lines.setdefault(text, []).append(f"{host} {device}")
    return [f"offloads     {', '.join(devices)}: {text}" for text, devices in lines.items()]


class Packets:
    """Mean lengths of the packets that arrive at the middlebox from the server and leave it to the client, in
    bytes, since this value was made. The kernel counts a merged packet once."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.before = self.counters()

    def counters(self) -> list[int]:
        values = []
        for device, direction in (("wired", "rx"), ("mobile", "tx")):
            out = run("ip", "-n", self.network.middlebox, "-s", "-j", "link", "show", "dev", device)
            stats = json.loads(out)[0]["stats64"][direction]
            values += [stats["bytes"], stats["packets"]]
        return values

    def mean_bytes(self) -> tuple[float, float]:
        """From the server, and to the client."""
        grown = [now - before for now, before in zip(self.counters(), self.before, strict=True)]
        return grown[0] / max(grown[1], 1), grown[2] / max(grown[3], 1)

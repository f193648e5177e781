"""A host behind VLAN tags, where the kernel has no VLAN devices: a TAP device whose frames leave by another device with
the tags put in, and come from there with the tags taken out. Arguments: device, address/length, tags from the outermost.
"""

import fcntl, os, select, socket, struct, subprocess, sys

device, address, tags = sys.argv[1], sys.argv[2], [int(tag) for tag in sys.argv[3:]]
head = b"".join(struct.pack("!HH", 0x8100, tag) for tag in tags)

tap = os.open("/dev/net/tun", os.O_RDWR)
name = "tagged%d" % tags[-1]
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x0002 | 0x1000))  # TUNSETIFF: TAP, no packet info
mtu = 1504 - 4 * len(tags)
for line in ["link set %s mtu %d up" % (name, mtu), "addr add %s dev %s" % (address, name)]:
    subprocess.run(["ip", *line.split()], check=True)

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((device, 0))
wire.setsockopt(263, 8, 1)  # PACKET_AUXDATA: the kernel takes the outer tag out
wire.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
wire.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
print("ready", flush=True)

while True:
    for ready in select.select([tap, wire], [], [])[0]:
        if ready is tap:
            frame = os.read(tap, 65536)
            wire.send(frame[:12] + head + frame[12:])
            continue
        frame, control, _, _ = wire.recvmsg(65600, 128)
        found = b""
        for level, kind, data in control:
            status, tci, tpid = struct.unpack("=I12xHH", data[:20])
            if status & 0x10:
                found = struct.pack("!HH", tpid, tci)
        frame = frame[:12] + found + frame[12:]
        if frame[12 : 12 + len(head)] == head and frame[12 + len(head) : 14 + len(head)] != b"\x81\x00":
            os.write(tap, frame[:12] + frame[12 + len(head) :])

"""Sends Ethernet frames as they are, or prints those that arrive.

Usage: frames.py send DEVICE FILE       sends the frames of FILE, one a line in hexadecimal digits
       frames.py receive DEVICE SOURCE  prints the frames from the address SOURCE likewise
"""

import socket
import struct
import sys
import time

# linux/if_packet.h
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
TP_STATUS_VLAN_VALID = 0x10
# asm-generic/socket.h
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
RECEIVE_BUFFER_BYTES = 64 << 20
# Frames that are sent at once, so that no queue on the way overflows.
BATCH = 50


def main() -> None:
    """Runs until all frames are sent, or until it is killed."""
    mode, device, argument = sys.argv[1:]
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.bind((device, 0))
    if mode == "send":
        with open(argument, encoding="ascii") as lines:
            for number, line in enumerate(lines):
                packets.send(bytes.fromhex(line))
                if number % BATCH == BATCH - 1:
                    time.sleep(0.01)
        return
    # The kernel removes the outermost tag from the frame; it is in the auxiliary data.
    packets.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    packets.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    print("ready", flush=True)
    while True:
        frame, control, _, _ = packets.recvmsg(70_000, 128)
        tag = b""
        for _, _, data in control:
            status, tci, tpid = struct.unpack("=I12xHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                tag = struct.pack("!HH", tpid, tci)
        if frame[6:12].hex() == argument:
            print((frame[:12] + tag + frame[12:]).hex(), flush=True)


main()

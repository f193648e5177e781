"""Client and server of a WebSocket, with the library `websockets`: `websocket.py serve PORT`, `websocket.py
talk HOST PORT`."""

import asyncio
import random
import sys
from typing import Any

import websockets

# Around the limits of the length field of a frame (RFC 6455 section 5.2), and a long one.
MESSAGE_BYTES = (0, 1, 125, 126, 65_535, 65_536, 3_000_000)
PING_INTERVAL_S = 0.5


async def echo(connection: Any) -> None:
    async for message in connection:
        await connection.send(message)


async def serve(port: int) -> None:
    async with websockets.serve(echo, "", port, max_size=None):
        await asyncio.get_running_loop().create_future()


async def talk(host: str, port: int) -> None:
    url = f"ws://{host}:{port}/"
    async with websockets.connect(url, max_size=None, ping_interval=PING_INTERVAL_S) as connection:
        for size in MESSAGE_BYTES:
            message = random.randbytes(size)
            await connection.send(message)
            assert await connection.recv() == message, size
            await connection.send("é" * size)
            assert await connection.recv() == "é" * size, size
        await asyncio.sleep(3 * PING_INTERVAL_S)  # pings in both directions
        await connection.send("still here")
        assert await connection.recv() == "still here"


if sys.argv[1] == "serve":
    asyncio.run(serve(int(sys.argv[2])))
else:
    asyncio.run(talk(sys.argv[2], int(sys.argv[3])))

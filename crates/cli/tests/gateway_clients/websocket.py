"""A WebSocket by the library `websockets`: `serve PORT`, or `talk ADDRESS PORT`."""

import asyncio
import random
import sys

import websockets


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def serve(port):
    async with websockets.serve(echo, "", port, max_size=None):
        await asyncio.get_running_loop().create_future()


async def talk(address, port):
    async with websockets.connect(f"ws://{address}:{port}/", max_size=None, ping_interval=0.5) as socket:
        for size in (0, 1, 125, 126, 65_535, 65_536, 3_000_000):
            message = random.randbytes(size)
            await socket.send(message)
            assert await socket.recv() == message, size
            await socket.send("é" * size)
            assert await socket.recv() == "é" * size, size
        await asyncio.sleep(1.5)  # pings both ways
        await socket.send("still here")
        assert await socket.recv() == "still here"


if sys.argv[1] == "serve":
    asyncio.run(serve(int(sys.argv[2])))
else:
    asyncio.run(talk(sys.argv[2], int(sys.argv[3])))

#!/usr/bin/python3 -B
"""Counts the bytes between PostgreSQL servers: forwards Unix sockets and keeps the numbers of bytes sent to the target
and received from it in a file, as text. A byte is counted before it is forwarded, so the file is complete when a query
ends. It is empty until all sockets accept connections.

    bench/wire.py COUNTS LISTEN=TARGET...
"""

import asyncio
import os
import sys

CHUNK = 1 << 17


class Wire:
    def __init__(self, counts):
        self.file = os.open(counts, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.bytes = [0, 0]

    def count(self, direction, size):
        self.bytes[direction] += size
        os.pwrite(self.file, b"%15d %15d\n" % tuple(self.bytes), 0)

    async def pump(self, direction, reader, writer):
        while chunk := await reader.read(CHUNK):
            self.count(direction, len(chunk))
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def forward(self, target, reader, writer):
        there = await asyncio.open_unix_connection(target)
        pumps = self.pump(0, reader, there[1]), self.pump(1, there[0], writer)
        await asyncio.gather(*pumps, return_exceptions=True)

    async def serve(self, pairs):
        for pair in pairs:
            listen, target = pair.split("=")
            await asyncio.start_unix_server(lambda r, w, target=target: self.forward(target, r, w), listen)
            os.chmod(listen, 0o777)
        self.count(0, 0)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(Wire(sys.argv[1]).serve(sys.argv[2:]))

"""A TCP proxy on loopback that breaks what passes it: between members, and between clients and members.

Faults are rules on (sender, receiver), names of members or `clients`; bytes from the one to the other are

    drop     swallowed. TCP never loses the middle of a stream, so a connection that lost bytes is reset when the rule ends
    cut      answered by a reset, as are new connections; either direction of a connection is enough
    delay    held for so many seconds, each piece
    slow     passed on at so many bytes a second

A peer says who it is in the first request of its connection (X-Server-From); clients have listeners of their own.
One thread with one event loop serves all listeners; every method may be called from another thread."""
import asyncio
import re
import threading

SERVER_FROM = re.compile(rb"\r\nX-Server-From: *([0-9a-f]+)\r\n", re.IGNORECASE)
HEAD_BYTES_MAX = 65536
PIECE_BYTES = 65536


class Connection:
    def __init__(self, sender, receiver):
        self.ends = {sender, receiver}
        self.writers = []
        self.lost_bytes = False

    def reset(self):
        for writer in self.writers:
            writer.transport.abort()


class FaultProxy:
    def __init__(self):
        self.names = {}        # member id in hexadecimal: name
        self.rules = {}        # (sender, receiver): (kind, number)
        self.connections = set()
        self.counts = {"bytes dropped": 0, "connections reset": 0, "connections": 0}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def listen(self, port, target_port, target, sender=None):
        """What connects to `port` is led to `target_port`, where `target` listens. `sender`: who connects; None: peers."""
        async def serve():
            await asyncio.start_server(lambda r, w: self._accept(r, w, target_port, target, sender), "127.0.0.1", port)
        self._call(serve())

    def set(self, sender, receiver, kind, number=0.0):
        async def apply():
            self.rules[sender, receiver] = (kind, number)
            if kind == "cut":
                self._reset({sender, receiver})
        self._call(apply())

    def clear(self, *pairs):
        async def apply():
            for pair in pairs:
                self.rules.pop(pair, None)
                for connection in [c for c in self.connections if c.lost_bytes and c.ends == set(pair)]:
                    self._end(connection)
        self._call(apply())

    def reset(self, one, other):
        """Resets the connections between the two."""
        async def apply():
            self._reset({one, other})
        self._call(apply())

    def close(self):
        async def stop():
            for connection in list(self.connections):
                connection.reset()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
        self._call(stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def _reset(self, ends):
        for connection in [c for c in self.connections if c.ends == ends]:
            self._end(connection)

    def _end(self, connection):
        self.counts["connections reset"] += 1
        connection.reset()

    def _is_cut(self, one, other):
        return any(self.rules.get(pair, ("", 0))[0] == "cut" for pair in ((one, other), (other, one)))

    async def _accept(self, reader, writer, target_port, target, sender):
        head = b""
        try:
            if sender is None:
                while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES_MAX:
                    piece = await reader.read(PIECE_BYTES)
                    if not piece:
                        break
                    head += piece
                found = SERVER_FROM.search(head)
                sender = self.names.get(found.group(1).decode().lower(), "?") if found else "?"
            if self._is_cut(sender, target):
                writer.transport.abort()
                return
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", target_port)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        connection = Connection(sender, target)
        connection.writers = [writer, there_writer]
        self.connections.add(connection)
        self.counts["connections"] += 1
        try:
            await asyncio.gather(self._pump(connection, reader, there_writer, sender, target, head),
                                 self._pump(connection, there_reader, writer, target, sender, b""))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            connection.reset()
            self.connections.discard(connection)

    async def _pump(self, connection, reader, writer, sender, receiver, piece):
        while True:
            if piece and not await self._pass(connection, writer, self.rules.get((sender, receiver)), piece):
                raise ConnectionResetError
            piece = await reader.read(PIECE_BYTES)
            if not piece:
                writer.write_eof()
                return

    async def _pass(self, connection, writer, rule, piece):
        kind, number = rule or ("", 0)
        if kind == "cut":
            return False
        if kind == "drop":
            connection.lost_bytes = True
            self.counts["bytes dropped"] += len(piece)
            return True
        if connection.lost_bytes:
            return False
        if kind == "delay":
            await asyncio.sleep(number)
        if kind == "slow":
            await asyncio.sleep(len(piece) / number)
        writer.write(piece)
        await writer.drain()
        return True

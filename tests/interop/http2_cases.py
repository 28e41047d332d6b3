"""HTTP/2 as a suite and as an attacker see it."""
import contextlib
import select
import socket
import struct
import subprocess
import time

from bad_input import PREFACE, call_head, dial, frame
from harness import ORACLE, Cluster, Skip, expect

HELLO = PREFACE + frame(4, 0, 0, b"")
STREAMS = 100  # the suite opens as many as it is allowed
# All keys, limit 100: what the answers hold must not grow with the load beside, and so with how slow the machine is.
RANGE_OF_100 = b"\0\0\0\0\x08\x0a\x01\0\x12\x01\0\x18\x64"
CONNECTION_BYTES_MAX = 256 * 1024 * 1024  # kConnectionReceiveBacklogMax


def h2spec(server, short):
    program = ORACLE / "h2spec"
    if not program.exists():
        raise Skip("needs Go")
    groups = ["http2/4", "http2/6.5", "http2/6.9", "http2/8.1"] if short else []
    with Cluster(server, 1, extra=[["--max-concurrent-streams", str(STREAMS)]]) as cluster:
        member = cluster.members[0]
        done = subprocess.run([str(program), str(member.client_port), *groups], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600)
        lines = done.stdout.strip().splitlines()
        expect(done.returncode == 0, " | ".join(lines[-10:]))
        expect(member.process.poll() is None and member.healthy(), f"the server is gone: {member.log_tail()}")
        return lines[-1]


def peak_memory(member):
    """The most bytes that the process ever had in memory."""
    with open(f"/proc/{member.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def send_all(connection, data):
    """False: the other side has had enough."""
    try:
        connection.sendall(data)
        return True
    except (ConnectionResetError, BrokenPipeError, socket.timeout):
        return False


def floods(cluster, short):
    """Frames by the hundred thousand, on connections that read nothing."""
    put = "/etcdserverpb.KV/Put"
    opened = HELLO + call_head(1, put)
    rapid = b"".join(call_head(stream, put) + frame(3, 0, stream, b"\0\0\0\x08") for stream in range(1, 40001, 2))
    kinds = [
        ("resets", HELLO, rapid),
        ("pings", HELLO, frame(6, 0, 0, b"12345678") * 100_000),
        ("settings", HELLO, frame(4, 0, 0, struct.pack(">HI", 4, 1000)) * 20_000),
        ("window updates", opened, frame(8, 0, 1, b"\0\0\0\1") * 100_000),
        ("empty data", opened, frame(0, 0, 1, b"") * 100_000),
        ("priorities", HELLO, frame(2, 0, 1, b"\0\0\0\3\x10") * 100_000),
        ("continuations", HELLO + call_head(1, put, 0), frame(9, 0, 1, b"\0\1x" + b"\x7f\x00" + b"x" * 127) * 20_000),
    ]
    rounds = 1 if short else 5
    for turn in range(rounds):
        for name, before, flood in kinds:
            with contextlib.closing(dial(cluster.members[turn % 3].client_port, 10.0)) as connection:
                # All of it may fit into the buffers of the sockets; what counts is that the connection is ended.
                send_all(connection, before + flood)
                limit = time.monotonic() + 20
                over = False
                while not over and time.monotonic() < limit:
                    try:
                        over = not connection.recv(65536)
                    except (ConnectionResetError, BrokenPipeError):
                        over = True
                expect(over, f"{name}: the connection still stands")
    return f"{rounds * len(kinds)} floods of {len(kinds)} kinds"


def greedy(cluster, short):
    """Clients that begin messages without end, and clients that take no answers."""
    victim = cluster.members[0]
    before = peak_memory(victim)
    streams, chunk = (40 if short else 400), b"x" * 16_000
    body = b"\0" + struct.pack(">I", 2_000_000)
    connection = dial(victim.client_port, 20.0)
    connection.sendall(HELLO)
    connection.recv(65536)
    connection.sendall(frame(4, 1, 0, b""))  # the windows of the server's SETTINGS hold from now on
    for stream in range(1, 2 * streams, 2):
        part = call_head(stream, "/etcdserverpb.KV/Put") + frame(0, 0, stream, body)
        part += b"".join(frame(0, 0, stream, chunk) for _ in range(60))
        # What the server grants is read and thrown away; the windows it opens are not waited for.
        if not send_all(connection, part):
            break
        while select.select([connection], [], [], 0)[0] and connection.recv(65536):
            pass
    deaf = []
    for _ in range(4 if short else 20):
        one = dial(victim.client_port, 20.0)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = b"".join(call_head(stream, "/etcdserverpb.KV/Range") + frame(0, 1, stream, RANGE_OF_100)
                         for stream in range(1, 401 if short else 1001, 2))
        send_all(one, HELLO + asked)
        deaf.append(one)
    time.sleep(2)
    grown = peak_memory(victim) - before
    expect(victim.healthy(), f"{victim.name} is not healthy beside greedy clients")
    for one in [connection, *deaf]:
        reset(one)
    bound = CONNECTION_BYTES_MAX + 200 * 1024 * 1024
    expect(grown < bound, f"{victim.name} grew by {grown >> 20} MiB")
    return f"grew by {grown >> 20} MiB at most"


CASES = [("floods of frames", floods), ("greedy clients", greedy)]

"""Bad input on the ports of a live cluster: each gets the documented error or a close, other clients notice nothing.

Each case runs beside a load on all three members whose error count must stay 0."""
import concurrent.futures
import contextlib
import json
import random
import socket
import struct
import subprocess
import time

from harness import ORACLE, Cluster, Load, expect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LOAD_RATE = 200
RECEIVE_LIMIT = 2_097_152  # --max-request-bytes 1572864 + 524288


def under_load(server, body, short):
    with Cluster(server, 3) as cluster:
        cluster.leader()
        load = Load(cluster, LOAD_RATE)
        note = None
        try:
            time.sleep(0.5)
            note = body(cluster, short)
            time.sleep(0.5)
        finally:
            summary, errors = load.stop()
        for member in cluster.members:
            expect(member.process.poll() is None, f"{member.name} ended with {member.process.returncode}: {member.log_tail()}")
        wrong = summary["Failed"] + summary["Missing"] + summary["Wrong"] + summary["Older"]
        expect(wrong == 0, f"other clients were harmed: {summary} {errors.strip()}")
        expect(summary["Acknowledged"] > 50, f"the other clients' load stood still: {summary}")
        return f"{note}; beside it {summary['Acknowledged']} puts without an error"


def dial(port, seconds=5.0):
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def exchange(port, data, seconds=3.0):
    """Sends, then reads until the other side closes. Returns what came and whether it closed in time."""
    received = b""
    with contextlib.closing(dial(port, seconds)) as connection:
        try:
            connection.sendall(data)
            limit = time.monotonic() + seconds
            while time.monotonic() < limit:
                piece = connection.recv(65536)
                if not piece:
                    return received, True
                received += piece
        except socket.timeout:
            return received, False
        except (ConnectionResetError, BrokenPipeError):
            return received, True
    return received, False


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    """A header field as literal without indexing, no Huffman code (RFC 7541 §6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call_head(stream, path, flags=0x4):
    block = b"".join(field(*pair) for pair in ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                                               ("content-type", "application/grpc"), ("te", "trailers")))
    return frame(1, flags, stream, block)


def frames(data):
    """The HTTP/2 frames at the start of `data` as (kind, stream, payload)."""
    found = []
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        if len(data) < 9 + size:
            break
        found.append((data[3], int.from_bytes(data[5:9], "big") & 0x7FFFFFFF, data[9:9 + size]))
        data = data[9 + size:]
    return found


def grpc_call(url, path, body):
    """One call by rawcall: HTTP status, grpc-status, grpc-message, seconds. None for what did not come."""
    started = time.monotonic()
    done = subprocess.run([str(ORACLE / "rawcall"), url, path], input=body, stdout=subprocess.PIPE, check=True, timeout=20)
    answer = json.loads(done.stdout)
    return answer.get("http"), answer.get("code"), answer.get("text", answer.get("error")), time.monotonic() - started


def message(data, size=None):
    return b"\0" + struct.pack(">I", len(data) if size is None else size) + data


PUT = message(b"\x0a\x03bad\x12\x01v")  # PutRequest: key "bad", value "v"


def garbage(cluster, short):
    source = random.Random(1)
    count = 30 if short else 300
    for turn in range(count):
        member = cluster.members[turn % 3]
        data = source.randbytes(source.choice([1, 8, 24, 100, 4096, 70000]))
        answer, closed = exchange(member.client_port, data, 1.0)
        # A short piece may be the beginning of a line; the server is right to wait for the rest.
        expect(closed or len(data) < 4096 or answer, f"garbage of {len(data)} bytes: neither an answer nor a close (turn {turn})")
    return f"{count} pieces"


def after_preface(cluster, short):
    source = random.Random(2)
    settings = frame(4, 0, 0, b"")
    pieces = [
        ("garbage", PREFACE + source.randbytes(2000)),
        ("no settings", PREFACE + frame(6, 0, 0, b"12345678")),
        ("frame larger than announced", PREFACE + settings + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 20000),
        ("data on stream 0", PREFACE + settings + frame(0, 0, 0, b"x")),
        ("even stream", PREFACE + settings + call_head(2, "/etcdserverpb.KV/Put")),
        ("data on an idle stream", PREFACE + settings + frame(0, 0, 1, b"x")),
        ("undecodable header block", PREFACE + settings + frame(1, 0x4, 1, b"\xff\xff\xff\xff\xff\xff")),
        ("continuation of nothing", PREFACE + settings + frame(9, 0x4, 1, b"")),
        ("window update of 0", PREFACE + settings + frame(8, 0, 0, b"\0\0\0\0")),
        ("window overflow", PREFACE + settings + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2),
        ("settings of 5 bytes", PREFACE + frame(4, 0, 0, b"12345")),
        ("ping of 7 bytes", PREFACE + settings + frame(6, 0, 0, b"1234567")),
        ("push promise", PREFACE + settings + frame(5, 0x4, 1, b"\0\0\0\2")),
        ("broken preface", PREFACE[:-2] + b"xx" + settings),
    ]
    for name, data in pieces:
        answer, closed = exchange(cluster.members[0].client_port, data)
        kinds = [kind for kind, _, _ in frames(answer)]
        # GOAWAY (7) ends the connection; a server may leave the closing to the client after it. RFC 9113 §5.4.1.
        expect(closed or 7 in kinds, f"{name}: neither GOAWAY nor a close; frames {kinds}")
    return f"{len(pieces)} violations"


def oversized(cluster, short):
    url = cluster.members[0].client_url
    for size in (RECEIVE_LIMIT + 1, 5_000_000):
        body = b"\x0a\x01k\x12" + varint(size - 3 - 1 - len(varint(size)) - 0)
        body += b"v" * (size - len(body))
        http, code, text, seconds = grpc_call(url, "/etcdserverpb.KV/Put", message(body))
        expect((http, code, text) == (200, "8", f"grpc: received message larger than max ({size} vs. {RECEIVE_LIMIT})"),
               f"a message of {size} bytes: HTTP {http}, grpc-status {code}, {text!r}")
    # The size is announced, the bytes never come: the answer needs only the announcement.
    http, code, text, seconds = grpc_call(url, "/etcdserverpb.KV/Put", message(b"x" * 10, 4_000_000_000))
    expect(code == "8" and "4000000000 vs." in (text or ""), f"an announced 4 GB: HTTP {http}, grpc-status {code}, {text!r}")
    value = b"v" * 1_600_000
    body = b"\x0a\x01k\x12" + varint(len(value)) + value
    http, code, text, seconds = grpc_call(url, "/etcdserverpb.KV/Put", message(body))
    expect((code, text) == ("3", "etcdserver: request is too large"), f"a put of 1.6 MB: grpc-status {code}, {text!r}")
    return "ResourceExhausted above 2 MiB, request is too large above 1.5 MiB"


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def truncated(cluster, short):
    head = PREFACE + frame(4, 0, 0, b"") + call_head(1, "/etcdserverpb.KV/Put")
    data = frame(0, 1, 1, PUT)
    whole = head + data
    count = 0
    for cut in range(1, len(whole), 3 if short else 1):
        with contextlib.closing(dial(cluster.members[cut % 3].client_port)) as connection:
            connection.sendall(whole[:cut])
            if cut % 2:  # an orderly end, else a reset
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        count += 1
    url = cluster.members[0].client_url
    malformed = [
        ("cut inside the payload", PUT[:-3], "2", "unexpected EOF"),
        ("cut inside the prefix", PUT[:3], "2", "EOF"),
        ("a prefix alone", b"\0\0\0\0\x05", "2", "unexpected EOF"),
        ("undecodable protobuf", message(b"\x0a\xff"), "13", None),
        ("compression byte 2", b"\x02" + PUT[1:], "13", None),
        ("compression not announced", b"\x01" + PUT[1:], "13", "grpc: compressed flag set with identity or empty encoding"),
    ]
    for name, body, want_code, want_text in malformed:
        http, code, text, _ = grpc_call(url, "/etcdserverpb.KV/Put", body)
        expect(code == want_code and (want_text is None or text == want_text), f"{name}: HTTP {http}, grpc-status {code}, {text!r}")
    return f"{count} cuts of a call, {len(malformed)} malformed messages"


def unknown_methods(cluster, short):
    url = cluster.members[0].client_url
    for path, text in (("/etcdserverpb.KV/Nothing", "unknown method Nothing for service etcdserverpb.KV"),
                       ("/no.Service/Put", "unknown service no.Service"), ("/Put", None), ("/", None), ("/a/b/c", None)):
        http, code, found, seconds = grpc_call(url, path, PUT)
        expect(http == 200 and code == "12" and (text is None or found == text) and seconds < 2,
               f"{path}: HTTP {http}, grpc-status {code}, {found!r} after {seconds:.1f} s")
    return "Unimplemented at once"


def half_open(cluster, short):
    held = []
    try:
        for turn in range(1000):
            connection = dial(cluster.members[turn % 3].client_port)
            beginning = [b"", b"P", PREFACE[:10], PREFACE, b"GET /health HT", PREFACE + frame(4, 0, 0, b"") + call_head(1, "/etcdserverpb.KV/Put")]
            connection.sendall(beginning[turn % len(beginning)])
            held.append(connection)
        for turn in range(200):
            held.append(dial(cluster.members[turn % 3].peer_port))
        time.sleep(2 if short else 10)
        for member in cluster.members:
            expect(member.healthy(), f"{member.name} is not healthy beside a thousand connections")
    finally:
        for connection in held:
            connection.close()
    return "1,000 on client ports, 200 on peer ports"


def slow_heads(cluster, short):
    held = [dial(cluster.members[turn % 3].client_port) for turn in range(60)]
    request = b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"y" * 4000
    seconds = 4 if short else 20
    try:
        for step in range(seconds * 10):
            for connection in held:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(request[step:step + 1])
            time.sleep(0.1)
    finally:
        for connection in held:
            connection.close()
    # A head without end is refused when it passes the limit.
    answer, closed = exchange(cluster.members[0].client_port, b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"y" * 2_000_000)
    expect(closed, "a head of 2 MB: no close")
    expect(not answer or answer.startswith(b"HTTP/1.1 4"), f"a head of 2 MB: {answer[:80]}")
    return f"60 connections, 10 bytes a second each, {seconds} s"


def peer_port(cluster, short):
    # A head is judged when it is whole, or when its time (5 s) is over: the pieces wait side by side.
    source = random.Random(3)
    count = 20 if short else 200
    pieces = [source.randbytes(source.choice([1, 100, 5000, 70000])) for _ in range(count)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        ports = [cluster.members[turn % 3].peer_port for turn in range(count)]
        for data, (answer, closed) in zip(pieces, pool.map(lambda port, data: exchange(port, data, 8.0), ports, pieces)):
            expect(closed or answer, f"garbage of {len(data)} bytes: neither an answer nor a close")
    member, other = cluster.members[0], cluster.members[1]

    def ask(method, path, extra, body=b""):
        head = {"Host": "localhost", "X-Server-From": f"{other.id:x}", "X-Server-Version": "3.7.3", "X-Min-Cluster-Version": "3.0.0",
                "X-Etcd-Cluster-ID": f"{cluster.id:x}", "X-Raft-To": f"{member.id:x}", "Content-Length": str(len(body)), **extra}
        text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items() if value is not None) + "\r\n"
        answer, _ = exchange(member.peer_port, text.encode() + body, 1.0)
        return answer

    message_path = f"/raft/stream/message/{other.id:x}"
    for method, path, extra, status, text in (
            ("GET", message_path, {"X-Etcd-Cluster-ID": "1"}, 412, "cluster ID mismatch"),
            ("GET", message_path, {"X-Etcd-Cluster-ID": None}, 412, "cluster ID mismatch"),
            ("GET", message_path, {"X-Server-Version": "2.3.0"}, 412, "incompatible version"),
            ("GET", message_path, {"X-Raft-To": "1"}, 412, "to field mismatch"),
            ("GET", "/raft/stream/message/1", {}, 404, "error sender not found"),
            ("GET", "/raft/stream/nothing/1", {}, 404, "invalid path"),
            ("POST", "/raft", {"X-Etcd-Cluster-ID": "1"}, 412, "cluster ID mismatch"),
            ("POST", "/raft", {}, 400, None)):
        body = b"\xff\xff\xff" if method == "POST" else b""
        answer = ask(method, path, extra, body)
        expect(answer.startswith(f"HTTP/1.1 {status} ".encode()) and (text is None or text.encode() in answer),
               f"{method} {path} {extra}: want {status} {text}, got {answer[:300]!r}")
    # A handshake that is right, then nothing or rubbish in the other direction.
    answer = ask("GET", message_path, {})
    expect(answer.startswith(b"HTTP/1.1 200"), f"a right handshake: {answer[:200]!r}")
    return f"{count} pieces of garbage, 9 handshakes"


CASES = [("garbage", garbage), ("HTTP/2 violations", after_preface), ("oversized messages", oversized), ("truncated messages", truncated),
         ("unknown methods", unknown_methods), ("half-open connections", half_open), ("slow heads", slow_heads), ("peer port", peer_port)]

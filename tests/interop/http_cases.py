"""Plain HTTP on client and peer ports, by curl, byte for byte what etcd answers (head and body; only Date differs)."""
import json
import re
import subprocess

from harness import HERE, Cluster, Failure, expect

CLIENT = [
    ["/health"], ["/health?serializable=true"], ["/health?exclude=NOSPACE"], ["/health?serializable=false"],
    ["/version"], ["-I", "/version"], ["-I", "/health"], ["-X", "POST", "/health"], ["-X", "PUT", "/version"], ["-X", "DELETE", "/version"],
    ["--http1.0", "/health"], ["--http1.0", "/version"], ["-H", "Connection: close", "/version"], ["-H", "Host:", "/version"],
    ["/nope"], ["/health/"], ["/version/"], ["/healthz"], ["/Version"], ["-I", "/nope"], ["-X", "POST", "/nope"], ["/nope?a=b"],
    ["-X", "POST", "-d", "body", "/version"], ["-X", "OPTIONS", "/health"], ["-X", "OPTIONS", "/nope"],
]
PEER = [
    ["/version"], ["-X", "POST", "/version"], ["/nope"], ["/health"], ["/raft"], ["-X", "PUT", "/raft"], ["/raft/stream/nothing/1"],
    ["-X", "POST", "/raft/stream/message/1"], ["/version/"],
]


def ask(url, words):
    *options, path = words
    done = subprocess.run(["curl", "-si", "--max-time", "10", *options, url + path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    text = done.stdout.decode("latin-1")
    text = re.sub(r"(?mi)^Date: [^\r]*", "Date: D", text)
    head, split, body = text.partition("\r\n\r\n")
    lines = head.split("\r\n")
    # The order of header lines means nothing.
    return [done.returncode, [lines[0], *sorted(lines[1:])], body if split else None]


def normalise(answer, cluster):
    return json.loads(re.sub(rf"\b{cluster.id:x}\b", "<cluster>", json.dumps(answer)))


def transcript(program, requests, port):
    with Cluster(program, 1) as cluster:
        member = cluster.members[0]
        url = member.client_url if port == "client" else member.peer_url
        return {" ".join(words): normalise(ask(url, words), cluster) for words in requests}


def compare(server, oracle, record, requests, port):
    path = HERE / "expected" / f"http-{port}.json"
    if oracle:
        expected = transcript(oracle, requests, port)
        if record:
            path.write_text(json.dumps(expected, indent=1) + "\n")
        elif path.exists():
            expect(json.loads(path.read_text()) == expected, f"{path.name} is not what etcd answers")
    else:
        expected = json.loads(path.read_text())
    found = transcript(server, requests, port)
    wrong = [f"      curl {name}\n        etcd  {expected[name]}\n        detcd {found[name]}" for name in expected if expected[name] != found[name]]
    if wrong:
        raise Failure(f"{len(wrong)} of {len(expected)} answers differ:\n" + "\n".join(wrong))
    return f"{len(expected)} answers equal"


def client_port(server, oracle, record):
    return compare(server, oracle, record, CLIENT, "client")


def peer_port(server, oracle, record):
    return compare(server, oracle, record, PEER, "peer")

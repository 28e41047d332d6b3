"""Answers of etcd and detcd to the same calls: starts pairs of servers for the program in differential/, which compares."""
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness

HERE = Path(__file__).resolve().parent
TABLE = HERE / "differential" / "accepted.txt"
# Nobody listens there: a single member dials nobody. The same for both servers, so that their ids and URLs are equal.
PEER_URL, CLIENT_URL = "http://127.0.0.1:1", "http://127.0.0.1:2"
ALL_ENTRIES_FROM = 10_000  # sequences in which every entry of the table must be met


class Alike(harness.Member):
    """A member that says of itself what every other one here says."""

    def command(self):
        return [str(self.program), "--name", "m1", "--data-dir", str(self.data), "--listen-client-urls", self.client_url,
                "--advertise-client-urls", CLIENT_URL, "--listen-peer-urls", self.peer_url,
                "--initial-advertise-peer-urls", PEER_URL, "--initial-cluster", f"m1={PEER_URL}",
                "--initial-cluster-token", harness.TOKEN, "--initial-cluster-state", "new"]


class Pair(harness.Cluster):
    """An etcd and a detcd, each a cluster of its own, on fresh folders: in memory where that is possible, because what
    is compared here are answers, not disks."""

    def __init__(self, etcd, server, home):
        self.folder = Path(tempfile.mkdtemp(prefix="detcd-differential-", dir=home))
        ports = harness.free_ports(4)
        self.members = [Alike(self, "etcd", etcd, [], *ports[:2]), Alike(self, "detcd", server, [], *ports[2:])]


def drive(driver, etcd, server, first, count):
    """One run of the driver. Its summary; prints what it finds."""
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2**31 else None
    command = [str(driver), "--accepted", str(TABLE), "--first", str(first), "--count", str(count)]
    pair = None
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            for line in process.stdout:
                if line.startswith("@summary "):
                    return json.loads(line.removeprefix("@summary "))
                if line != "@fresh\n":
                    print(line, end="", flush=True)
                    continue
                if pair is not None:
                    pair.__exit__(None, None, None)
                pair = Pair(etcd, server, home).__enter__()
                process.stdin.write(" ".join(str(m.client_port) for m in pair.members) + "\n")
                process.stdin.flush()
        finally:
            process.stdin.close()
            process.wait()
            if pair is not None:
                pair.__exit__(None, None, None)
    raise harness.Failure(f"{driver} ended with {process.returncode} and without a summary")


def compare(server, etcd, first, count, jobs=1):
    """Runs `count` sequences. A line of numbers; a Failure when anything differed that is not in the table."""
    if etcd is None:
        raise harness.Skip("needs Go, to build etcd")
    driver = harness.find_program("detcd-differential", beside=server)
    starts = [first + count * job // jobs for job in range(jobs + 1)]
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(drive, driver, etcd, server, begin, end - begin) for begin, end in zip(starts, starts[1:]) if end > begin]
        summaries = [run.result() for run in runs]
    sequences, calls, differences = (sum(s[word] for s in summaries) for word in ("sequences", "calls", "differences"))
    accepted = {name: sum(s["accepted"][name] for s in summaries) for name in summaries[0]["accepted"]}
    text = f"{sequences} sequences, {calls} calls, {differences} differences; accepted: " + (
        ", ".join(f"{name} {times}" for name, times in accepted.items()) or "none")
    harness.expect(differences == 0, text)
    stale = [name for name, times in accepted.items() if times == 0]
    harness.expect(not stale or count < ALL_ENTRIES_FROM, f"{text}; never met, so stale: {', '.join(stale)}")
    return text

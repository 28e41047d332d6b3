"""What the cases share: programs, clusters of real processes on loopback ports, a record of what passed.

Every process is ended through its own handle, and every data folder lies under one temporary folder."""
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ORACLE = ROOT / "build" / "oracle"
TOKEN = "interop"


class Failure(Exception):
    """A case found what it must not find; the text tells it."""


class Skip(Exception):
    """A case cannot run here; the text says what is missing."""


class Report:
    """Runs cases, prints a line for each, keeps the count."""

    def __init__(self, only):
        self.only, self.passed, self.failed = only, 0, 0

    def case(self, name, body, *arguments):
        if self.only and not any(word in name for word in self.only):
            return
        started = time.monotonic()
        try:
            note = body(*arguments) or ""
            word = "pass"
            self.passed += 1
        except Skip as skip:
            word, note = "skip", str(skip)
        except (Failure, OSError, subprocess.SubprocessError) as failure:
            word, note = "FAIL", f"{type(failure).__name__}: {failure}" if not isinstance(failure, Failure) else str(failure)
            self.failed += 1
        print(f"{word}  {name} ({time.monotonic() - started:.1f} s){': ' if note else ''}{note}", flush=True)


def expect(condition, text):
    if not condition:
        raise Failure(text)


def find_program(name, beside=None):
    """A program that lies beside the program `beside`, else of the release preset, else of sim or dev. When there is none
    it is built, in the first of them that was built before."""
    presets = ("release", "sim", "dev")
    folders = [ROOT / "build" / preset / "bin" for preset in presets]
    for folder in [Path(beside).parent, *folders] if beside else folders:
        if (folder / name).exists():
            return folder / name
    preset = next((p for p in presets if (ROOT / "build" / p / "build.ninja").exists()), "release")
    subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", preset, "--target", name], cwd=ROOT, check=True)
    return ROOT / "build" / preset / "bin" / name


def build_oracle():
    """Builds etcd, etcdctl, etcdutl, bbolt and our Go programs into build/oracle. False where that is not possible."""
    if shutil.which("go") is None:
        return False
    ORACLE.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(["go", "build", "-o", f"{ORACLE}/", "tool", "./load", "./walcheck", "./rawcall", "./h2spec"], cwd=HERE, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode != 0:
        print(built.stdout)
        return False
    shutil.move(ORACLE / "server", ORACLE / "etcd")
    return True


def free_ports(count):
    """Ports nobody listens on now. All are held until all are found, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Member:
    """One process, its folder and its ports."""

    def __init__(self, cluster, name, program, extra, client_port, peer_port):
        self.cluster, self.name, self.program, self.extra = cluster, name, program, extra
        self.client_port, self.peer_port = client_port, peer_port
        # Where it listens for peers is another place when a proxy stands before it.
        self.listen_peer_url = f"http://127.0.0.1:{peer_port}"
        self.client_url, self.peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        # SHA-1 of the sorted peer URLs and the token, first eight bytes: the id that every etcd computes.
        self.id = int.from_bytes(hashlib.sha1((self.peer_url + TOKEN).encode()).digest()[:8], "big")
        self.data = cluster.folder / f"{name}.data"
        self.log_path = cluster.folder / f"{name}.log"
        self.process = None

    def command(self):
        initial = ",".join(f"{m.name}={m.peer_url}" for m in self.cluster.members)
        return [str(self.program), *self.extra, "--name", self.name, "--data-dir", str(self.data),
                "--listen-client-urls", self.client_url, "--advertise-client-urls", self.client_url,
                "--listen-peer-urls", self.listen_peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", initial, "--initial-cluster-token", TOKEN, "--initial-cluster-state", "new"]

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.cluster.folder)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """SIGTERM, which must end the process well and soon. Returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired as late:
            self.kill()
            raise Failure(f"{self.name} still ran 10 s after SIGTERM") from late
        self.process = None
        return status

    def http(self, path, timeout=2.0):
        with urllib.request.urlopen(self.client_url + path, timeout=timeout) as answer:
            return answer.read().decode()

    def healthy(self):
        try:
            return '"health":"true"' in self.http("/health")
        except (OSError, urllib.error.URLError):
            return False

    def log_tail(self, lines=4):
        return " | ".join(self.log_path.read_text(errors="replace").strip().splitlines()[-lines:])[-1500:]


class Cluster:
    """Members on loopback. A context: leaving it ends every process and removes the folder (kept after a failure when
    INTEROP_KEEP is set). `program` is one for all or a list with one for each, `extra` a list of more flags for each."""

    def __init__(self, program, size, ports=None, extra=None):
        programs = program if isinstance(program, list) else [program] * size
        extra = extra or [[]] * size
        self.ports = ports or free_ports(2 * size)
        self.folder = Path(tempfile.mkdtemp(prefix="detcd-interop-"))
        self.members = [Member(self, f"m{i + 1}", programs[i], extra[i], self.ports[2 * i], self.ports[2 * i + 1])
                        for i in range(size)]
        ids = b"".join(m.id.to_bytes(8, "big") for m in sorted(self.members, key=lambda m: m.id))
        self.id = int.from_bytes(hashlib.sha1(ids).digest()[:8], "big")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        for member in self.members:
            if member.process is not None:
                member.kill()
        if os.environ.get("INTEROP_KEEP"):
            print(f"      kept {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        for member in self.members:
            member.start()
        self.wait_healthy()

    def wait_healthy(self, seconds=30.0):
        limit = time.monotonic() + seconds
        for member in self.members:
            while not (member.process and member.healthy() and "not_decided" not in member.http("/version")):
                if member.process is not None and member.process.poll() is not None:
                    raise Failure(f"{member.name} ended with status {member.process.returncode}: {member.log_tail()}")
                if time.monotonic() > limit:
                    raise Failure(f"{member.name} is not healthy after {seconds} s: {member.log_tail()}")
                time.sleep(0.05)

    def urls(self):
        return ",".join(m.client_url for m in self.members)

    def status(self):
        """The Status answer of each member, by Debian's etcdctl or the oracle's; members that are down are left out."""
        program = ORACLE / "etcdctl" if (ORACLE / "etcdctl").exists() else "etcdctl"
        running = ",".join(m.client_url for m in self.members if m.process is not None)
        done = subprocess.run([str(program), "--endpoints", running, "endpoint", "status", "-w", "json"], text=True,
                              env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=30)
        return {row["Endpoint"]: row["Status"] for row in json.loads(done.stdout or "[]")}

    def leader(self, seconds=15.0):
        """The member that itself says that it leads."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            for url, status in self.status().items():
                if status.get("leader", 0) == status["header"]["member_id"]:
                    return next(m for m in self.members if m.client_url == url)
            time.sleep(0.1)
        raise Failure(f"no leader after {seconds} s")

    def wait_equal(self, seconds=20.0):
        """Waits until every member has applied the same index."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            applied = {status.get("raftAppliedIndex", 0) for status in self.status().values()}
            if len(applied) == 1:
                return
            time.sleep(0.1)
        raise Failure(f"applied indexes differ after {seconds} s: {sorted(applied)}")


class Load:
    """The load program in the background. `stop` ends it, and returns its summary and its acknowledged puts."""

    def __init__(self, cluster, rate, **options):
        program = ORACLE / "load"
        if not program.exists():
            raise Skip("needs Go")
        self.acks = cluster.folder / "acks"
        command = [str(program), "-endpoints", cluster.urls(), "-out", str(self.acks), "-rate", str(rate)]
        for name, value in options.items():
            command += ["-" + name.replace("_", "-"), str(value)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def stop(self, seconds=120):
        return self._finish(self.process.communicate("", timeout=seconds))

    def wait(self, seconds=120):
        """For a load with a count of its own."""
        limit = time.monotonic() + seconds
        output = self.process.stdout.readline()
        expect(time.monotonic() < limit, "the load ran too long")
        return self._finish((output + self.process.stdout.read(), self.process.stderr.read()))

    def _finish(self, texts):
        output, errors = texts
        self.process.wait()
        self.process.stdout.close()
        expect(self.process.returncode in (0, 1) and output, f"load ended with {self.process.returncode}: {errors.strip()}")
        return json.loads(output.strip().splitlines()[-1]), errors

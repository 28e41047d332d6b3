"""Three real processes under faults drawn from a seed, and the judges' verdict on what clients saw.

The faults: those of fault_proxy.py between members and between clients and members, SIGKILL of one member and of all,
SIGSTOP, and a full disk (a small tmpfs; where mounting is not permitted, the case says so and goes without). Up to two
at a time. Then all is healed: every member must serve and show the same state within a minute, and `detcd-sim check`
must find the recorded history in order."""

import random
import shutil
import signal
import subprocess
import time

from fault_proxy import FaultProxy
from harness import Cluster, Failure, expect, find_program, free_ports

CLIENTS = "clients"
TMPFS_BYTES = 192 << 20    # two segments of 64 MB: one in use, one prepared
FINAL_SECONDS = 60


class Stage:
    """The cluster, its proxy, and what is broken now. Each fault is a method that breaks something and gives back what
    ends it; None: it does not apply now."""

    def __init__(self, cluster, proxy, draws, tmpfs):
        self.cluster, self.proxy, self.draws, self.tmpfs = cluster, proxy, draws, tmpfs
        self.names = [m.name for m in cluster.members]
        self.disturbed = set()     # members whose process is killed, stopped or about to end
        self.full_disk_stops = 0

    def _links(self, rule, pairs, number=0.0):
        pairs = [pair for pair in pairs if pair not in self.proxy.rules]
        if not pairs:
            return None
        for sender, receiver in pairs:
            self.proxy.set(sender, receiver, rule, number)
        return lambda: self.proxy.clear(*pairs)

    def _others(self, name):
        return [other for other in self.names if other != name]

    def partition(self):
        name = self.draws.choice(self.names)
        return self._links("cut", [(name, other) for other in self._others(name)])

    def cut_one_link(self):
        one, other = self.draws.sample(self.names, 2)
        return self._links("cut", [(one, other)])

    def mute(self):
        """Nobody hears the member; it hears all."""
        name = self.draws.choice(self.names)
        return self._links("drop", [(name, other) for other in self._others(name)])

    def deafen(self):
        name = self.draws.choice(self.names)
        return self._links("drop", [(other, name) for other in self._others(name)])

    def drop_one_way(self):
        return self._links("drop", [tuple(self.draws.sample(self.names, 2))])

    def delay_peers(self):
        name = self.draws.choice(self.names)
        pairs = [pair for other in self._others(name) for pair in ((name, other), (other, name))]
        return self._links("delay", pairs, self.draws.uniform(0.02, 0.3))

    def slow_peers(self):
        name = self.draws.choice(self.names)
        return self._links("slow", [(other, name) for other in self._others(name)], 20_000)

    def reset_peers(self):
        one, other = self.draws.sample(self.names, 2)
        for _ in range(3):
            self.proxy.reset(one, other)
            time.sleep(0.1)
        return lambda: None

    def cut_clients(self):
        return self._links("cut", [(CLIENTS, self.draws.choice(self.names))])

    def drop_answers(self):
        return self._links("drop", [(self.draws.choice(self.names), CLIENTS)])

    def delay_clients(self):
        name = self.draws.choice(self.names)
        return self._links("delay", [(CLIENTS, name), (name, CLIENTS)], self.draws.uniform(0.02, 0.5))

    def reset_clients(self):
        for name in self.names:
            self.proxy.reset(CLIENTS, name)
        return lambda: None

    def _free_member(self):
        free = [m for m in self.cluster.members if m.name not in self.disturbed]
        return self.draws.choice(free) if free else None

    def kill(self):
        return self._kill([self._free_member()])

    def kill_all(self):
        return self._kill(list(self.cluster.members)) if not self.disturbed else None

    def _kill(self, members):
        if None in members:
            return None
        for member in members:
            self.disturbed.add(member.name)
            member.kill()

        def end():
            for member in members:
                member.start()
                self.disturbed.discard(member.name)
        return end

    def pause(self):
        member = self._free_member()
        if member is None:
            return None
        self.disturbed.add(member.name)
        member.process.send_signal(signal.SIGSTOP)

        def end():
            member.process.send_signal(signal.SIGCONT)
            self.disturbed.discard(member.name)
        return end

    def full_disk(self):
        """The space that the log has prepared is taken from it, as a file system that promises nothing would, and the rest
        is filled: the member's next write finds no space."""
        member = self.cluster.members[-1]
        if self.tmpfs is None or member.name in self.disturbed:
            return None
        self.disturbed.add(member.name)
        member.process.send_signal(signal.SIGSTOP)
        for path in (member.data / "member" / "wal").iterdir():
            punch_tail(path)
        filler = self.tmpfs / "filler"
        with open(filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass
        member.process.send_signal(signal.SIGCONT)

        def end():
            stopped = member.process.poll() is not None
            self.full_disk_stops += stopped
            if not stopped:
                member.kill()
            filler.unlink()
            member.start()
            self.disturbed.discard(member.name)
        return end

    def check_running(self):
        for member in self.cluster.members:
            if member.name not in self.disturbed and member.process.poll() is not None:
                raise Failure(f"{member.name} ended by itself with status {member.process.returncode}: {member.log_tail()}")


FAULTS = ("partition", "cut_one_link", "mute", "deafen", "drop_one_way", "delay_peers", "slow_peers", "reset_peers",
          "cut_clients", "drop_answers", "delay_clients", "reset_clients", "kill", "kill", "kill_all", "pause", "full_disk")


def punch_tail(path):
    """Gives back the zeros at the end of a prepared segment."""
    content = path.read_bytes()
    used = -(-len(content.rstrip(b"\0")) // 4096) * 4096
    if used < len(content):
        subprocess.run(["fallocate", "--punch-hole", "--offset", str(used), "--length", str(len(content) - used), str(path)],
                       check=True)


def mount_tmpfs(folder):
    """The mounted folder, or None where that is not permitted."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES},mode=0700", "tmpfs", str(folder)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder if done.returncode == 0 and shutil.which("fallocate") else None


def disturb(stage, load, seconds):
    """Faults until the time is over; gives back how many of each there were."""
    counts = {}
    ends = []    # (when, end)
    queue = []
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        expect(load.poll() is None, f"the load ended early with {load.returncode}")
        now = time.monotonic()
        for entry in [entry for entry in ends if entry[0] <= now]:
            ends.remove(entry)
            entry[1]()
        stage.check_running()
        if len(ends) < 2 and stage.draws.random() < (0.3 if ends else 0.9):
            if not queue:      # all of them, each time in another order
                queue = list(FAULTS)
                stage.draws.shuffle(queue)
            name = queue.pop()
            end = getattr(stage, name)()
            if end is not None:
                counts[name] = counts.get(name, 0) + 1
                ends.append((time.monotonic() + stage.draws.uniform(0.5, 3.0), end))
        time.sleep(0.4)
    for _, end in ends:
        end()
    return counts


def faults(server, seconds, seed):
    seed = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"      faults: seed {seed} (--seed {seed})", flush=True)
    recorder, judge = find_program("history_load"), find_program("detcd-sim")
    cluster = Cluster(server, 3)
    history = cluster.folder / "history"
    proxy = FaultProxy()
    tmpfs = None
    load = None
    try:
        listeners = free_ports(6)
        for member, peer, client in zip(cluster.members, listeners[:3], listeners[3:]):
            # Peers know the proxy's port as the member's own.
            proxy.names[f"{member.id:x}"] = member.name
            member.listen_peer_url = f"http://127.0.0.1:{peer}"
            proxy.listen(member.peer_port, peer, member.name)
            proxy.listen(client, member.client_port, member.name, CLIENTS)
        tmpfs = mount_tmpfs(cluster.folder / "small")
        if tmpfs is not None:
            cluster.members[-1].data = tmpfs / "data"
        with cluster:
            load = subprocess.Popen(
                [str(recorder), "--endpoints", ",".join(f"127.0.0.1:{port}" for port in listeners[3:]), "--out", str(history),
                 "--duration", str(seconds + 3), "--final-within", str(FINAL_SECONDS), "--seed", str(seed),
                 "--note", f"tests/interop faults, seed {seed}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            stage = Stage(cluster, proxy, random.Random(seed), tmpfs)
            counts = disturb(stage, load, seconds)
            output, _ = load.communicate(timeout=seconds + 2 * FINAL_SECONDS)
            expect(load.returncode in (0, 2), f"the load ended with {load.returncode}: {output}")
            live = load.returncode == 0
            done = subprocess.run([str(judge), "check", str(history)], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=300)
            if done.returncode != 0:
                raise Failure(f"detcd-sim check ended with {done.returncode} (kept: {keep(history)})\n{done.stdout}")
            expect(live, f"healed, and the members did not serve alike within {FINAL_SECONDS} s: "
                         + "; ".join(f"{m.name}: {m.log_tail(2)}" for m in cluster.members))
            stage.check_running()
    finally:
        if load is not None and load.poll() is None:
            load.kill()
            load.wait()
        proxy.close()
        if tmpfs is not None:
            subprocess.run(["umount", "-l", str(tmpfs)], check=False)
        shutil.rmtree(cluster.folder, ignore_errors=True)
    disk = f"stopped by a full disk {stage.full_disk_stops} times" if tmpfs else "no full disk: mounting is not permitted here"
    return f"{sum(counts.values())} faults {counts}, {disk}; {proxy.counts}; {done.stdout.splitlines()[0].split(': ', 1)[1]}"


def keep(history):
    """A copy beside the temporary folder, which goes."""
    kept = history.parent.with_suffix(".history")
    shutil.copy(history, kept)
    return kept

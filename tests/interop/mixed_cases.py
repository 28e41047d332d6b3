"""One static cluster of etcd 3.7.3 and detcd members: each of them leads, each is killed and started again, under load."""
import json
import subprocess
import time

from harness import ORACLE, Cluster, Load, Skip, expect

RATE = 200        # puts started in a second, over all members
LEAD_SECONDS = 1.0
DOWN_SECONDS = 1.0

# No member of this release sends or takes snapshots: an etcd that leads must never need one.
ETCD_FLAGS = ["--snapshot-count", "100000000", "--snapshot-catchup-entries", "100000000"]


def etcdctl(url, *arguments, seconds=15):
    done = subprocess.run([str(ORACLE / "etcdctl"), "--endpoints", url, *arguments], text=True, timeout=seconds,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect(done.returncode == 0, f"etcdctl {' '.join(arguments)} at {url}: {done.stderr.strip()[-500:]}")
    return done.stdout


def move_leader(cluster, target):
    """By etcdctl, sent to the member that leads. The target may have won an election meanwhile."""
    leader = cluster.leader()
    if leader is not target:
        said = etcdctl(leader.client_url, "move-leader", f"{target.id:x}")
        expect(f"Leadership transferred from {leader.id:x} to {target.id:x}" in said, f"move-leader said {said.strip()}")
    expect(cluster.leader() is target, f"{target.name} does not lead after move-leader")


def works(cluster, key):
    """Writes, reads and deletes through every member; each sees what the one before it wrote."""
    for member in cluster.members:
        etcdctl(member.client_url, "put", key, member.name)
        for reader in cluster.members:
            expect(etcdctl(reader.client_url, "get", key, "--print-value-only").strip() == member.name,
                   f"{reader.name} does not see what was written through {member.name}")
    expect(etcdctl(cluster.members[0].client_url, "del", key).strip() == "1", "nothing was deleted")
    for reader in cluster.members:
        expect(etcdctl(reader.client_url, "get", key) == "", f"{reader.name} still sees a deleted key")


def contents(member):
    """Everything the member itself holds: keys with revisions and values, and its revision."""
    answer = json.loads(etcdctl(member.client_url, "get", "", "--from-key", "--consistency=s", "-w", "json", seconds=60))
    return answer["header"]["revision"], answer.get("kvs", [])


def check_equal(cluster):
    cluster.wait_equal()
    first, *others = [(member, contents(member)) for member in cluster.members]
    for member, found in others:
        expect(found == first[1], f"{member.name} and {first[0].name} hold different data")
    status = cluster.status()
    expect(len(status) == len(cluster.members), f"endpoint status of {len(status)} members only")
    for part in ("leader", "raftTerm", "raftAppliedIndex"):
        values = {row.get(part) for row in status.values()}
        expect(len(values) == 1, f"endpoint status: {part} differs: {values}")
    return first[1]


def mixed(server, oracle, kinds):
    if oracle is None:
        raise Skip("needs Go")
    programs = [oracle if kind == "etcd" else server for kind in kinds]
    extra = [ETCD_FLAGS if kind == "etcd" else [] for kind in kinds]
    with Cluster(programs, len(kinds), extra=extra) as cluster:
        for member in cluster.members:
            expect('"etcdcluster":"3.7.0"' in member.http("/version"), f"{member.name}: {member.http('/version')}")
        load = Load(cluster, RATE)
        try:
            for target in cluster.members + cluster.members[:1]:
                move_leader(cluster, target)
                works(cluster, "mixed/works")
                time.sleep(LEAD_SECONDS)
            for victim in cluster.members:
                was_leader = cluster.leader() is victim
                victim.kill()
                cluster.leader()
                time.sleep(DOWN_SECONDS)
                victim.start()
                cluster.wait_healthy()
                works(cluster, "mixed/works")
                if not was_leader:  # each is killed once as leader as well
                    move_leader(cluster, victim)
                    victim.kill()
                    cluster.leader()
                    time.sleep(DOWN_SECONDS)
                    victim.start()
                    cluster.wait_healthy()
        finally:
            summary, errors = load.stop()
        wrong = summary["Missing"] + summary["Wrong"] + summary["Older"]
        expect(wrong == 0, f"{wrong} acknowledged writes lost: {summary['Examples']} {errors.strip()}")
        expect(summary["Acknowledged"] > RATE, f"only {summary['Acknowledged']} puts were acknowledged: {summary['Errors']}")
        revision, keys = check_equal(cluster)
        # A stop hands leadership over, so that the others serve on at once.
        leaver = cluster.leader()
        status = leaver.stop()
        expect(status in (0, -15), f"{leaver.name} ended with {status} on SIGTERM")
        started = time.monotonic()
        cluster.leader()
        heir_seconds = time.monotonic() - started
        leaver.start()
        cluster.wait_healthy()
        check_equal(cluster)
        return (f"{len(cluster.members)} leaders in turn, each killed leading; {summary['Acknowledged']} of "
                f"{summary['Started']} puts acknowledged, all read back; revision {revision}, {len(keys)} keys equal in all; "
                f"a leader {heir_seconds:.2f} s after a stop of {'etcd' if leaver.program == oracle else 'detcd'}")


CASES = [("2 etcd, 1 detcd", ("etcd", "etcd", "detcd")), ("1 etcd, 2 detcd", ("detcd", "etcd", "detcd"))]

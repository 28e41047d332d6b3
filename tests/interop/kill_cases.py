"""Leaders killed under load, and what the logs of the members then hold."""
import json
import statistics
import subprocess
import time

from harness import ORACLE, Cluster, Failure, Load, Skip, expect

RATE = 1000        # puts started in a second
SETTLE_SECONDS = 1.5


def check_logs(cluster, acks):
    """Every acknowledged put is in every stopped member's log, as etcd's own package reads it."""
    notes = []
    for member in cluster.members:
        done = subprocess.run([str(ORACLE / "walcheck"), "-dir", str(member.data / "member" / "wal"), "-acks", str(acks)],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, f"{member.name}: {done.stdout.strip()}")
        found = json.loads(done.stdout)
        expect(found["NodeID"] == f"{member.id:x}" and found["ClusterID"] == f"{cluster.id:x}", f"{member.name}: ids {found}")
        notes.append(f"{member.name} {found['Segments']} segments, {found['Entries']} entries")
    return "; ".join(notes)


def stop_all(cluster):
    cluster.wait_equal()
    for member in cluster.members:
        status = member.stop()
        expect(status in (0, -15), f"{member.name} ended with {status} on SIGTERM")


def kill_leader(server, kills):
    with Cluster(server, 3) as cluster:
        load = Load(cluster, RATE)
        killed = []
        try:
            for _ in range(kills):
                time.sleep(SETTLE_SECONDS)
                leader = cluster.leader()
                killed.append(time.time_ns())
                leader.kill()
                cluster.leader()
                leader.start()
                cluster.wait_healthy()
        finally:
            summary, errors = load.stop()
        without = outages(killed, cluster.folder / "acks")
        wrong = summary["Missing"] + summary["Wrong"] + summary["Older"]
        expect(wrong == 0, f"{wrong} acknowledged writes lost: {summary['Examples']} {errors.strip()}")
        expect(summary["Acknowledged"] > kills * 100, f"only {summary['Acknowledged']} puts were acknowledged: {summary['Errors']}")
        stop_all(cluster)
        logs = check_logs(cluster, cluster.folder / "acks")
        return (f"{kills} kills, without service {min(without):.2f}/{statistics.median(without):.2f}/{max(without):.2f} s "
                f"(min/median/max); {summary['Started']} puts started, {summary['Acknowledged']} acknowledged, all read back; "
                f"errors {summary['Errors']}; {logs}")


def outages(killed, path):
    """Seconds from each kill to the end of the first acknowledged put that was started after it."""
    acks = sorted((int(fields[3]), int(fields[4])) for fields in (line.split() for line in path.read_text().splitlines()))
    seconds = []
    for moment in killed:
        ends = [end for start, end in acks if start > moment]
        if not ends:
            raise Failure("no put was acknowledged after the last kill")
        seconds.append((min(ends) - moment) / 1e9)
    return seconds


def segments(server):
    """One MiB a put makes a segment of 64 MB in seconds; killed in the middle and started again on three of them."""
    with Cluster(server, 3) as cluster:
        load = Load(cluster, 40, count=200, value_bytes=1_000_000, timeout="20s", prefix="big/")
        time.sleep(2.5)
        victim = cluster.leader()
        victim.kill()
        time.sleep(1.0)
        victim.start()
        summary, errors = load.wait()
        wrong = summary["Missing"] + summary["Wrong"] + summary["Older"]
        expect(wrong == 0, f"{wrong} acknowledged writes lost: {summary['Examples']} {errors.strip()}")
        cluster.wait_healthy()
        stop_all(cluster)
        for member in cluster.members:
            count = len(list((member.data / "member" / "wal").glob("*.wal")))
            expect(count >= 3, f"{member.name} has {count} segments; the case needs 3")
        logs = check_logs(cluster, cluster.folder / "acks")
        cluster.start()
        cluster.leader()
        return f"{summary['Acknowledged']} of {summary['Started']} puts of 1 MB acknowledged; {logs}; started again"

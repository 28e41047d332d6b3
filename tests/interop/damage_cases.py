"""A member started on a damaged log: refused with file and offset named and a status other than 0, or repaired."""
import re
import shutil
import struct
import subprocess

from harness import Cluster, Load, Skip, expect

RECORDS = 300


def written(cluster, count=RECORDS, **options):
    """Writes through a live cluster, and stops it. Returns the acknowledged keys in the order of their revisions."""
    summary, _ = Load(cluster, 1000, count=count, **options).wait()
    expect(summary["Acknowledged"] == count, f"the load before the damage failed: {summary}")
    cluster.members[0].stop()
    rows = (line.split() for line in (cluster.folder / "acks").read_text().splitlines())
    return [row[0] for row in sorted(rows, key=lambda row: int(row[2]))]


def segments(member):
    return sorted((member.data / "member" / "wal").glob("*.wal"))


def record_offsets(path):
    """Offsets of the frames of a segment, and where the last one ends."""
    data, offsets, at = path.read_bytes(), [], 0
    while at + 8 <= len(data):
        length, = struct.unpack_from("<Q", data, at)
        if length == 0:
            break
        offsets.append(at)
        at += 8 + (length & (1 << 56) - 1) + (length >> 56 & 7 if length >> 63 else 0)
    return offsets, at


def refused(member, path, low, high):
    """Starts the member, which must end by itself, with a message that names the file and an offset in [low, high]."""
    member.log_path.write_text("")
    member.start()
    try:
        status = member.process.wait(15)
        member.process = None
    except subprocess.TimeoutExpired:
        expect(False, f"started on a damaged {path.name}")
    text = member.log_path.read_text(errors="replace")
    expect(status > 0, f"ended with status {status}: {text[-400:]}")
    expect(path.name in text, f"the message does not name {path.name}: {text[-400:]}")
    if low is not None:
        found = [int(number) for number in re.findall(r"offset[^0-9]{0,5}(\d+)", text)]
        expect(any(low <= number <= high for number in found), f"no offset in [{low}, {high}] is named: {text[-400:]}")
    return text.strip().splitlines()[-1][-200:]


def keys_of(cluster):
    done = subprocess.run(["etcdctl", "--endpoints", cluster.urls(), "get", "load/", "--prefix", "--keys-only"], text=True,
                          env={"PATH": "/usr/bin:/bin", "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, check=True)
    return [line for line in done.stdout.split("\n") if line]


def repaired(cluster, keys, lost_max):
    """Starts the member, which must serve, and have lost no more than the last `lost_max` keys."""
    cluster.start()
    found = keys_of(cluster)
    kept = keys[:len(keys) - lost_max]
    expect(set(kept) <= set(found), f"{len(set(kept) - set(found))} keys before the damage are lost")
    return len(keys) - len(found)


def flipped(server):
    with Cluster(server, 1) as cluster:
        written(cluster)
        path = segments(cluster.members[0])[-1]
        offsets, _ = record_offsets(path)
        pristine = path.read_bytes()
        for part in ("length", "body"):
            at = offsets[len(offsets) // 2]
            spoiled = bytearray(pristine)
            spoiled[at + (1 if part == "length" else 20)] ^= 0x40
            path.write_bytes(spoiled)
            text = refused(cluster.members[0], path, at, at + 20)
        return text


def cut(server):
    """A log that ends inside its last record, as after a crash: the record was never acknowledged by a sync that ended."""
    with Cluster(server, 1) as cluster:
        keys = written(cluster)
        member = cluster.members[0]
        path = segments(member)[-1]
        offsets, end = record_offsets(path)
        pristine = path.read_bytes()
        lost = []
        for size in (end - 1, end - 9, offsets[-1] + 8, offsets[-1] + 3, offsets[-20] + 11):
            path.write_bytes(pristine[:size])
            lost.append(repaired(cluster, keys, 40))
            broken = list(path.parent.glob("*.broken"))
            expect(len(broken) == 1, f"cut to {size} bytes: repaired without a copy NAME.wal.broken: {broken}")
            broken[0].unlink()
            member.stop()
        return f"repaired 5 times, keys lost with their records: {lost}"


def zero_tail(server):
    """The sectors of the last record's end never reached the disk."""
    with Cluster(server, 1) as cluster:
        keys = written(cluster)
        member = cluster.members[0]
        path = segments(member)[-1]
        offsets, end = record_offsets(path)
        spoiled = bytearray(path.read_bytes())
        # A sector border inside a record, near the end.
        border = next(sector for sector in range(end // 512 * 512, 0, -512)
                      if any(at + 8 < sector for at in offsets) and sector not in offsets and sector - 8 not in offsets)
        spoiled[border:] = bytes(len(spoiled) - border)
        path.write_bytes(spoiled)
        lost = repaired(cluster, keys, 40)
        return f"repaired; keys lost with their records: {lost}"


def zero_middle(server):
    """Zeros over a whole record in the middle read as the end of the log for etcd: what follows is not looked at. Sectors
    that hold valid records behind them prove that this is damage."""
    with Cluster(server, 1) as cluster:
        written(cluster)
        path = segments(cluster.members[0])[-1]
        offsets, _ = record_offsets(path)
        at = offsets[len(offsets) // 2]
        spoiled = bytearray(path.read_bytes())
        spoiled[at + 8:offsets[len(offsets) // 2 + 1]] = bytes(offsets[len(offsets) // 2 + 1] - at - 8)
        path.write_bytes(spoiled)
        return refused(cluster.members[0], path, at, at + 20)


def earlier_segment(server):
    with Cluster(server, 1) as cluster:
        written(cluster, 140, value_bytes=1_000_000)
        member = cluster.members[0]
        first, second, *_ = segments(member)
        pristine = second.read_bytes()
        offsets, end = record_offsets(first)
        saved = first.read_bytes()
        first.write_bytes(saved[:end - 9])
        refused(member, first, offsets[-1], end)
        first.write_bytes(saved)
        aside = member.data / "aside"
        shutil.move(second, aside)
        member.log_path.write_text("")
        member.start()
        try:
            status = member.process.wait(15)
            member.process = None
        except subprocess.TimeoutExpired:
            expect(False, "started with a segment missing in the middle")
        expect(status > 0, f"a missing segment: status {status}")
        shutil.move(aside, second)
        expect(second.read_bytes() == pristine, "a refused start changed a segment")
        cluster.start()
        return "an earlier segment cut short, and one missing: refused; whole again: starts"


CASES = [("a flipped byte", flipped), ("cut inside the last records", cut), ("zeros from a sector on", zero_tail),
         ("a record of zeros in the middle", zero_middle), ("earlier segments", earlier_segment)]

"""etcdctl against detcd, compared with what etcd 3.7.3 prints for the same commands.

Both clusters run on the same ports one after the other, so ids and endpoints are equal and stay comparable; the
recorded texts under expected/ are in the normalised form, for machines without Go. README.md states what
`normalise` takes away and why."""
import difflib
import os
import re
import shlex
import shutil
import subprocess
import time

from harness import HERE, ORACLE, Cluster, Failure, Skip, expect, free_ports

# `@` in front: run at all endpoints; else at one, in turn, so that three members all serve every kind of call.
# A group in braces is run once in each of these output formats.
COMMANDS = """
get missing {}
put a/1 one {}
put a/2 two {}
put a/3 three {}
put a/10 ten
put b/1 uno
put empty ''
put a/1 uno {}
put a/1 eins --prev-kv {}
put a/2 zwei --prev-kv {}
put a/9 nine --prev-kv {}
put a/2 --ignore-value {}
put nowhere --ignore-value {}
put a/2 deux --ignore-lease {}
put nowhere x --ignore-lease {}
put a/2 x --lease=123 {}
put '' value {}
get a/1 {}
get a/1 --hex {}
get empty {}
get a/1 --print-value-only
get a/1 -w table
get a/ --prefix {}
get a/ --prefix --keys-only {}
get '' --prefix
get a/1 a/3 {}
get a/3 a/1 {}
get a/2 --from-key {}
get '' --from-key {}
get a/ --prefix --limit=2 {}
get a/ --prefix --limit=4 {}
get a/ --prefix --limit=5 {}
get a/1 --rev=2 {}
get a/1 --rev=3 {}
get a/1 --rev=9 {}
get a/1 --rev=10 {}
get a/ --prefix --rev=4 {}
get a/ --prefix --rev=6 --limit=2 --order=DESCEND {}
get a/1 --rev=999 {}
get a/1 --rev=1 {}
get a/ --prefix --sort-by=KEY --order=DESCEND {}
get a/ --prefix --sort-by=VERSION --order=ASCEND {}
get a/ --prefix --sort-by=VERSION --order=DESCEND
get a/ --prefix --sort-by=CREATE --order=ASCEND
get a/ --prefix --sort-by=CREATE --order=DESCEND {}
get a/ --prefix --sort-by=MODIFY --order=ASCEND
get a/ --prefix --sort-by=MODIFY --order=DESCEND {}
get a/ --prefix --sort-by=VALUE --order=ASCEND
get a/ --prefix --sort-by=VALUE --order=DESCEND --limit=2 {}
get a/ --prefix --sort-by=VALUE --limit=2
get a/ --prefix --sort-by=SIZE
get a/1 --consistency=s {}
get a/ --prefix --consistency=s {}
get a/1 --consistency=s --rev=5
get a/1 --consistency=l
get a/1 --consistency=x
get a/ --prefix --count-only -w fields
get a/ --prefix --count-only -w json
get a/ --prefix --count-only --limit=2 -w json
get a/ --prefix --count-only --rev=5 -w fields
get missing --count-only -w json
get --count-only -w fields --from-key a/2
del missing {}
del a/10 {}
del a/1 --prev-kv {}
get a/1 {}
get a/1 --rev=10 {}
get a/ --prefix -w fields
del a/2 a/3 --prev-kv {}
put a/1 again --prev-kv {}
del a/ --prefix --prev-kv {}
del a/ --prefix {}
del b --from-key --prev-kv {}
get '' --from-key {}
del ''  {}
del '' --from-key {}
member list {}
member list -w table
member list --hex -w json
@endpoint health
@endpoint health -w json
@endpoint health -w table
@endpoint health --cluster
@endpoint status {}
@endpoint status -w table
@endpoint status --cluster -w table
"""

# Options that 3.4's etcdctl does not know.
COMMANDS_37 = """
get a/ --prefix --min-mod-rev=1 {}
get a/ --prefix --max-mod-rev=99
get a/ --prefix --min-create-rev=3 --max-create-rev=99
"""

FORMATS = ["simple", "json", "fields"]

# What detcd has no part for yet: an answer at once, of one code.
UNBUILT = ["lease grant 10", "lease list", "user list", "role list", "auth disable", "move-leader 1", "defrag"]


def clients():
    found = {}
    if shutil.which("etcdctl"):
        version = subprocess.run(["etcdctl", "version"], env={**os.environ, "ETCDCTL_API": "3"}, text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        found["etcdctl-" + re.search(r"version: (\d+\.\d+)", version).group(1)] = "etcdctl"
    if (ORACLE / "etcdctl").exists():
        found["etcdctl-3.7"] = str(ORACLE / "etcdctl")
    return found


def commands(client):
    source = COMMANDS if client == "etcdctl-3.4" else COMMANDS.replace("\ndel missing", COMMANDS_37 + "\ndel missing", 1)
    for line in source.split("\n"):
        line = line.strip()
        if line.endswith("{}"):
            for form in FORMATS:
                yield line[:-2].strip() + f" -w {form}"
        elif line:
            yield line


def run_ctl(program, endpoints, words, seconds=15):
    done = subprocess.run([program, "--endpoints", endpoints, *words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "ETCDCTL_API": "3"},
                          timeout=seconds)
    return done.returncode, done.stdout


NUMBERS = [
    (r'"(raft_term|raftTerm|raftIndex|raftAppliedIndex|dbSize|dbSizeInUse)":\d+', r'"\1":N'),
    (r'"(RaftTerm|RaftIndex|RaftAppliedIndex|DBSize|DBSizeInUse)" : \d+', r'"\1" : N'),
    (r'"took":"[^"]*"', '"took":"T"'),
    (r"took = \S+", "took = T"),
    (r", \d+(\.\d+)?[mµn]?s,", ", T,"),  # the took column of a table
    (r"\b\d+(\.\d+)? [kMG]?B\b", "SIZE"),
    (r"\b\d+%", "PERCENT"),
    # etcdctl's own log lines: when, by which of its clients, from which port.
    (r'"ts":"[^"]*"', '"ts":"T"'),
    (r'"target":"[^"]*"', '"target":"CLIENT"'),
    (r"LocalAddr: '[^']*'", "LocalAddr: 'CLIENT'"),
    # Status as simple text or table: leader, learner, raft term, raft index, raft applied index.
    (r"(true|false), (true|false), \d+, \d+, \d+", r"\1, \2, N, N, N"),
]
# Who leads three members is chance.
LEADER = [
    (r'"leader":<member \w+>', '"leader":L'),
    (r'"Leader" : <member \w+>', '"Leader" : L'),
    (r"(true|false), (true|false), N, N, N", r"LEADS, \2, N, N, N"),
]


def normalise(text, cluster):
    # A table becomes its cells: column widths follow from what is taken away below.
    lines = []
    for line in text.splitlines():
        if re.fullmatch(r"[+\-─-╿]+", line.strip()):
            continue
        if re.match(r"\s*[|│]", line):
            line = ", ".join(cell.strip() for cell in re.split(r"[|│]", line.strip().strip("|│")))
        lines.append(line.rstrip())
    text = "\n".join(lines)
    for member in cluster.members:
        for form in (f"{member.id:x}", str(member.id), f"{member.id:X}"):
            text = re.sub(rf"\b{form}\b", f"<member {member.name}>", text)
        for url, role in ((member.client_url, "client"), (member.peer_url, "peer")):
            text = text.replace(url, f"<{member.name} {role}>").replace(url[7:], f"<{member.name} {role}>")
    for form in (f"{cluster.id:x}", str(cluster.id)):
        text = re.sub(rf"\b{form}\b", "<cluster>", text)
    for pattern, replacement in NUMBERS + (LEADER if len(cluster.members) > 1 else []):
        text = re.sub(pattern, replacement, text)
    return text


def transcript(cluster, client, program):
    """Runs all commands; returns the normalised transcript as lines."""
    lines = []
    for turn, command in enumerate(commands(client)):
        everywhere = command.startswith("@")
        words = shlex.split(command.lstrip("@"))
        member = cluster.members[turn % len(cluster.members)]
        if "--consistency=s" in words and len(cluster.members) > 1:
            run_ctl(program, member.client_url, ["get", "barrier"])  # so that this member has applied what came before
        status, output = run_ctl(program, cluster.urls() if everywhere else member.client_url, words)
        text = normalise(output, cluster)
        if "health" in words and "json" not in words:
            text = "\n".join(sorted(text.splitlines()))  # etcdctl asks all at once and prints as answers arrive
        if "health" in words and "json" in words:
            text = "\n".join(sorted(re.findall(r"\{[^}]*\}", text)))
        if "member" in words and "simple" in words or "table" in words:
            text = "\n".join(sorted(text.splitlines()))  # members stand in the order of their ids, which follow the ports
        if "member" in words and "json" in words:
            text = "\n".join(sorted(re.findall(r"\{[^{}]*\}", text)))
        if "member" in words and "fields" in words:
            text = "\n".join(sorted(text.splitlines()))
        lines += [f"$ etcdctl {command}", *text.splitlines(), f"[{status}]"]
        leads = re.findall(r'"IsLeader"|, true, false, \d+', output) if everywhere and "status" in words and "table" in words else None
        if leads is not None and len(leads) != 0 and len(leads) != 1:
            raise Failure(f"{len(leads)} members say that they lead:\n{output}")
    return lines


def cli(server, client, size, oracle, record):
    program = clients().get(client)
    if program is None:
        raise Skip(f"{client} is not here")
    ports = free_ports(2 * size)
    expected_path = HERE / "expected" / f"{client}.{size}.txt"
    if oracle:
        with Cluster(oracle, size, ports) as cluster:
            expected = transcript(cluster, client, program)
        if record:
            expected_path.write_text("\n".join(expected) + "\n")
        elif expected_path.exists() and expected_path.read_text().splitlines() != expected:
            raise Failure(f"{expected_path.name} is not what etcd prints here: {first_difference(expected_path.read_text().splitlines(), expected)}")
    else:
        expected = expected_path.read_text().splitlines()
    with Cluster(server, size, ports) as cluster:
        found = transcript(cluster, client, program)
    wrong, total = compare(expected, found)
    if wrong:
        raise Failure(f"{len(wrong)} of {total} answers differ:\n" + "\n".join(wrong[:12]))
    return f"{total} commands answered as etcd 3.7.3 does"


def first_difference(a, b):
    return " / ".join(list(difflib.unified_diff(a, b, lineterm="", n=1))[3:9])


def blocks(lines):
    found, name = {}, None
    for line in lines:
        if line.startswith("$ etcdctl "):
            name = f"{len(found):03d} {line[2:]}"
            found[name] = []
        else:
            found[name].append(line)
    return found


def compare(expected, found):
    left, right = blocks(expected), blocks(found)
    expect(left.keys() == right.keys(), "the expected text is of other commands; record it again (--record)")
    wrong = []
    for name, lines in left.items():
        if lines != right[name]:
            wrong.append(f"      {name}\n" + "\n".join(f"        {line}" for line in difflib.unified_diff(
                lines, right[name], "etcd", "detcd", lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))))
    return wrong, len(left)


def unbuilt(server):
    """Calls of parts that detcd does not have are refused at once, by name of the code."""
    client, program = next(iter(clients().items()))
    late = []
    with Cluster(server, 1) as cluster:
        for command in UNBUILT:
            started = time.monotonic()
            status, output = run_ctl(program, cluster.urls(), shlex.split(command))
            seconds = time.monotonic() - started
            if status == 0 or seconds > 2 or not re.search(r"Unimplemented|unimplemented|not implemented", output):
                late.append(f"{command}: status {status} after {seconds:.1f} s: {output.strip()[-200:]}")
    expect(not late, "\n" + "\n".join(late))
    return f"{len(UNBUILT)} calls by {client}"

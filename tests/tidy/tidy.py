#!/usr/bin/env python3
"""Reads the sources and enforces the determinism bans and the include rule of the project, and that each row of the
error table is told by the code and shown by a test, or said to be out of reach.

Usage: tests/tidy/tidy.py [--self-test]      prints one line a finding; exit status 1 when there is any
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Parts that must be deterministic. The command line, worker processes and reports of scenarios/ are free.
DETERMINISTIC = ("core/", "sim/", "checker/", "scenarios/swarm", "scenarios/settings", "scenarios/runner.cc",
                 "scenarios/episode_faults", "scenarios/expectations", "scenarios/measures", "scenarios/metrics",
                 "scenarios/recorder", "scenarios/shrink.", "scenarios/shrink_steps", "scenarios/story")
FREE = ("checker/report", "checker/proofs/")

# What no deterministic file may name, and why.
BANS = [
    (r"\bstd::(thread|jthread|mutex|shared_mutex|condition_variable|atomic|future|async)\b", "threads, locks, atomics"),
    (r"#include <(thread|mutex|shared_mutex|condition_variable|atomic|future|random|chrono|ctime|locale|regex)>",
     "a header of threads, clocks or library randomness"),
    (r"\bstd::chrono\b|\bclock_gettime\b|\bgettimeofday\b|\btime\(nullptr\)", "the machine's clock"),
    (r"\brandom_device\b|\bmt19937|\babsl::BitGen\b|\bstd::shuffle\b|_distribution\b|\brand\(\)", "library randomness"),
    (r"\bgetenv\b|\bsetlocale\b", "the environment"),
    (r"(?<![\w.>\"/])(float|double)\b(?![\w\"])", "floating point"),
    (r"\bthread_local\b", "thread-locals"),
    (r"\b(open|socket|connect|accept|fopen|fread|pread|pwrite|fsync)\s*\(\s*(\"|[a-z_]+\.c_str)", "file or socket calls"),
    (r"\bthrow\b|\btry\s*\{|\bcatch\s*\(", "exceptions"),
    (r"std::hash<[^>]*\*>|reinterpret_cast<u?intptr_t>", "addresses as values"),
]
# A mutable static; constants, functions and the probe macro's counter are fine.
MUTABLE_STATIC = re.compile(r"^\s+static (?!constexpr|const |_?assert|inline|[\w:<>,&* ]+\()")
# Which folder may include which.
MAY_INCLUDE = {
    "core": {"core"},
    "sim": {"core", "sim", "checker"},
    "checker": {"core", "checker"},
    "scenarios": {"core", "sim", "checker", "scenarios"},
    "realnet": {"core", "realnet"},
}
CHECKER_CORE = ("core/base/", "core/proto/")


def strip_comments(text):
    """The text with comments and string contents blanked, line structure kept."""
    def blank(match):
        token = match.group(0)
        if token.startswith(('"', "'")):
            return token[0] + token[0]
        return re.sub(r"[^\n]", " ", token)
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", blank, text, flags=re.S)


def hash_walks(code):
    """Range-for loops over a variable that the same file declares as a hash container."""
    names = re.findall(r"(?:flat_hash_map|flat_hash_set|unordered_map|unordered_set)<[^;]*>\s+(\w+)\s*[;{=]", code)
    for name in set(names):
        for match in re.finditer(r"for\s*\([^;)]*:\s*\*?" + name + r"\s*\)", code):
            yield code.count("\n", 0, match.start()) + 1, name


def check(path, text):
    findings = []
    code = strip_comments(text)
    if path.startswith(DETERMINISTIC) and not path.startswith(FREE):
        for number, line in enumerate(code.split("\n"), 1):
            for pattern, why in BANS:
                if re.search(pattern, line):
                    findings.append((path, number, f"{why}: {line.strip()}"))
            if MUTABLE_STATIC.match(line) and "detcd_probe" not in line:
                findings.append((path, number, f"mutable static: {line.strip()}"))
        for number, name in hash_walks(code):
            findings.append((path, number, f"a hash container is walked: {name}"))
    folder = path.split("/")[0]
    for number, line in enumerate(text.split("\n"), 1):
        included = re.match(r'#include "([^"]+)"', line)
        if not included or folder not in MAY_INCLUDE:
            continue
        target = included.group(1)
        top = target.split("/")[0]
        if top in MAY_INCLUDE and top not in MAY_INCLUDE[folder]:
            findings.append((path, number, f"{folder} may not include {target}"))
        if folder == "checker" and not path.startswith("checker/proofs/") and target.startswith("core/") and not target.startswith(CHECKER_CORE):
            findings.append((path, number, f"judges see core/base and core/proto only: {target}"))
    if path.endswith(".h") and "#pragma once" not in text:
        findings.append((path, 1, "no #pragma once"))
    return findings


def check_errors(table, core, tests):
    """What is wrong with the rows of errors.def, given the texts of core/ and of its tests."""
    rows = re.findall(r'^X\((k\w+), k\w+, "((?:\\.|[^"\\])*)"', table, re.M)
    unreachable = set()
    for block in re.findall(r"^//   unreachable \([^)]*\):(.*\n(?://     .*\n)*)", table, re.M):
        unreachable |= set(re.findall(r"\bk\w+", block))
    findings = [f"{name} is said to be unreachable and is no row" for name in sorted(unreachable - {name for name, _ in rows})]
    for name, text in rows:
        told = re.search(r"\bApiError::" + name + r"\b", core)
        if name in unreachable:
            findings += [f"{name} is said to be unreachable, and told"] if told else []
        elif not told:
            findings.append(f"{name} is not told by any code")
        elif not re.search(r"\bApiError::" + name + r"\b", tests) and text not in tests:
            findings.append(f"{name} is shown by no test")
    return findings


def error_findings():
    def texts(folder, but):
        return "".join(p.read_text() for p in sorted((ROOT / folder).rglob("*.cc")) if p.name != but)
    path = "core/rpc/errors.def"
    found = check_errors((ROOT / path).read_text(), texts("core", "api_error.cc"), texts("tests/core", "api_error_test.cc"))
    return [(path, 1, what) for what in found]


def self_test():
    """Each ban must find its own example."""
    bad = ["std::thread t;", "#include <chrono>", "double x;", "throw 1;", "  static int n = 0;", "getenv(p);",
           "absl::flat_hash_map<int, int> m;\nfor (auto& e : m) {}", '#include "realnet/loop.h"']
    good = ["// double", "  static constexpr int n = 0;", "std::string_view float_text;"]
    for text in bad:
        assert check("core/x.cc", text), text
    for text in good:
        assert not check("core/x.cc", text), text
    assert check("checker/x.cc", '#include "core/raft/raft.h"')
    table = '//   unreachable (later): kB\nX(kA, kUnknown, "a text", kUnknown)\nX(kB, kUnknown, "b text", kUnknown)\n'
    assert not check_errors(table, "ApiError::kA", "ApiError::kA")
    assert not check_errors(table, "ApiError::kA", '"a text"')
    assert check_errors(table, "", "ApiError::kA")
    assert check_errors(table, "ApiError::kA", "")
    assert check_errors(table, "ApiError::kA ApiError::kB", "ApiError::kA")
    assert check_errors(table.replace("later): kB", "later): kB kC"), "ApiError::kA", "ApiError::kA")
    print("tidy: each ban finds its example")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    files = subprocess.run(["git", "ls-files", "*.h", "*.cc"], cwd=ROOT, capture_output=True, text=True, check=True)
    findings = []
    for name in files.stdout.split():
        findings += check(name, (ROOT / name).read_text())
    findings += error_findings()
    for path, number, what in findings:
        print(f"{path}:{number}: {what}")
    print(f"tidy: {len(files.stdout.split())} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

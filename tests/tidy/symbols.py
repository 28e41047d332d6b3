#!/usr/bin/env python3
"""Reads what the deterministic libraries call: the undefined symbols of their objects. Sources can hide a clock or a
lock behind a header of a library; the linker's view cannot.

Usage: tests/tidy/symbols.py BUILD_DIRECTORY      one line a finding; exit status 1 when there is any
       tests/tidy/symbols.py --self-test
"""
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("core/libdetcd_core.a", "sim/libdetcd_sim.a", "checker/libdetcd_checker.a", "scenarios/libdetcd_scenarios.a")

# Plain C names that may be called: a list of what is allowed, so that a new one is looked at once. None of them sees
# the time, the environment, a descriptor, a thread, or anything else that differs between two runs.
C_ALLOWED = re.compile(r"""
    (mem(cpy|move|set|cmp|chr|rchr)|bcmp|str(len|cmp|ncmp|chr|ncpy))(_chk)?
  | abort|__assert_fail
  | SHA1|crc32_iscsi|XXH\w+|nghttp2_\w+                       # pure functions of their input; nghttp2 has no I/O of its own
  | (in|de)flate(Init2_|Reset|End|Bound)?                     # zlib: a state and the bytes handed over
  | __(start|stop)_detcd_probes                              # the probe table
  | __cxa_\w+|__gxx_personality_v0|_Unwind_Resume|__dynamic_cast|__dso_handle|__tls_get_addr
  | _GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(u|)(div|mod|mul)ti3
  | __libc_single_threaded                                   # std::shared_ptr: whether its count must be atomic
  | _*(asan|ubsan|tsan|sanitizer|sancov)_\w+|_dl_relocate_static_pie
""", re.VERBOSE)

# C++ names, by their demangled beginning: what must never be called.
CXX_BANNED = re.compile(r"""
    std::(_V2::)?chrono::|std::chrono | std::random_device|std::mersenne | std::(thread|jthread|this_thread|mutex|recursive)
  | std::(condition_variable|_V2::condition|__future|future|promise|async|counting_semaphore|__atomic_futex)
  | std::filesystem|std::__cxx11::basic_regex | std::basic_(ifstream|ofstream|fstream|filebuf) | std::locale::(global|classic)
  | absl(::lts_\w+)?::(Now|Sleep|Mutex|CondVar|BitGen|Notification|GetCurrentTimeNanos|base_internal::SpinLock|random_internal)
""", re.VERBOSE)

# Object, symbol: why that is no harm.
EXEMPT = [
    (r"^check\.cc\.o$", r"^(fprintf|__fprintf_chk|stderr|fwrite|fputs|fputc)$", "the last words of a failed CHECK, before abort"),
    (r"^runner\.cc\.o$", r"^(fprintf|__fprintf_chk|stderr|fputs|fwrite)$", "where a failed CHECK was in the run, before abort"),
    (r"^(scenario_text|shrink_details)\.cc\.o$", r"^(pthread_once|__once_proxy)$", "inline code of protobuf's descriptors: built once, by name"),
    (r"^http1_parser\.cc\.o$", r"^(pthread_mutex_(un)?lock|strerror_r|__xpg_strerror_r|snprintf|__snprintf_chk)$",
     "inline code of Boost.Beast's error categories: no error text is asked for, no lock taken on our paths"),
]


def judge(library, obj, symbol, demangled):
    """None, or why `symbol` must not be called."""
    for object_pattern, symbol_pattern, _ in EXEMPT:
        if re.match(object_pattern, obj) and re.match(symbol_pattern, symbol):
            return None
    if symbol.startswith("_Z"):
        if CXX_BANNED.match(demangled):
            return f"{library}: {obj} calls {demangled}"
    elif not C_ALLOWED.fullmatch(symbol):
        return f"{library}: {obj} calls {symbol}"
    return None


def undefined(path):
    """(object, symbol) of every undefined symbol."""
    listing = subprocess.run(["nm", "-A", "-u", path], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        place, _, symbol = line.rpartition(" ")
        yield place.split(":")[1], symbol


def self_test():
    for symbol in ("clock_gettime", "gettimeofday", "time", "open", "openat", "socket", "connect", "pthread_create",
                   "pthread_mutex_lock", "getrandom", "rand", "random", "getenv", "fopen", "read", "write", "memcpy2"):
        assert judge("l", "a.cc.o", symbol, symbol), symbol
    for name in ("std::chrono::_V2::steady_clock::now()", "std::random_device::_M_getval()", "std::thread::join()",
                 "std::filesystem::status()", "absl::lts_20220623::Now()", "absl::lts_20220623::Mutex::Lock()"):
        assert judge("l", "a.cc.o", "_Zx", name), name
    for symbol in ("memcpy", "__asan_report_load8", "nghttp2_session_send", "XXH3_64bits_withSeed", "abort"):
        assert not judge("l", "a.cc.o", symbol, symbol), symbol
    assert not judge("l", "check.cc.o", "fprintf", "fprintf")
    assert judge("l", "codec.cc.o", "fprintf", "fprintf")
    print("symbols: each ban finds its example")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    build = Path(sys.argv[1])
    findings, count = [], 0
    for library in LIBRARIES:
        path = build / library
        if not path.exists():
            continue
        pairs = sorted(set(undefined(path)))
        names = [symbol for _, symbol in pairs]
        demangled = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
        for (obj, symbol), readable in zip(pairs, demangled.stdout.splitlines()):
            finding = judge(library, obj, symbol, readable)
            if finding:
                findings.append(finding)
        count += len(pairs)
    for finding in findings:
        print(finding)
    print(f"symbols: {count} references, {len(findings)} findings")
    if count == 0:
        sys.exit("symbols: no library found below " + str(build))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

"""A storm on the real server in a memory cgroup: more load than it holds, cancellations, disconnects.

usage: storm_test.py SERVER STORM_CLIENT [--seconds S] [--load L] [--budget MIB] [--no-memory-limit]
The model is $QUIRE_TEST_MODEL, else the one scripts/fetch_model puts in place. Ends with 77, which ctest takes for
skipped, where the model is missing or no memory cgroup (v1) can be made; with CI=true a missing model is a failure.
--no-memory-limit is for sanitizer builds, which take memory of their own.
"""

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

HANG_SECONDS = 300  # a bound for a hung process, not a promise
SKIPPED = 77
MIB = 1 << 20


def model_path():
    folder = os.environ.get("QUIRE_MODEL_DIR", Path.home() / ".cache/quire/models")
    return Path(os.environ.get("QUIRE_TEST_MODEL", Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf"))


class MemoryCgroup:
    """A cgroup v1 with a hard limit, for one process."""

    def __init__(self, limit_bytes):
        self.path = Path(f"/sys/fs/cgroup/memory/quire-storm-{os.getpid()}")
        self.path.mkdir()
        (self.path / "memory.limit_in_bytes").write_text(str(limit_bytes))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak_bytes(self):
        return int((self.path / "memory.max_usage_in_bytes").read_text())

    def remove(self):
        self.path.rmdir()


class Server:
    """The server, ready, and a thread that reads its log."""

    def __init__(self, command, cgroup):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=cgroup.enter if cgroup else None)
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            ready = re.match(r"quire-server: ready on (\S+)$", line)
            if ready:
                self.address = ready.group(1)
                break
        else:
            sys.exit("the server did not start: " + "".join(self.log))
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()

    def resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found.group(1)) * 1024 if found else 0  # none: it has ended

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join()
        return code


def disconnect_until(end_time, command):
    """Clients that vanish in the middle of their calls."""
    number = 0
    while time.monotonic() < end_time:
        number += 1
        client = subprocess.Popen([*command, "--seed", str(1000 + number)], stdout=subprocess.DEVNULL)
        time.sleep(random.uniform(0.5, 3))
        client.kill()
        client.wait()
    return number


def cache_stats(client, address):
    done = subprocess.run([client, "--address", address, "--stats"], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def run_storm(arguments, server):
    """What the client said, resident memory over time in bytes, and how many clients were killed."""
    client = [arguments.client, "--address", server.address]
    storm = subprocess.Popen([*client, "--seconds", str(arguments.seconds), "--load", str(arguments.load)],
                             stdout=subprocess.PIPE, text=True)
    end_time = time.monotonic() + arguments.seconds
    killed = []
    disconnects = threading.Thread(target=lambda: killed.append(
        disconnect_until(end_time, [*client, "--seconds", "3600", "--load", str(arguments.load / 8)])))
    disconnects.start()
    resident = []
    while time.monotonic() < end_time and server.process.poll() is None:
        resident.append(server.resident_bytes())
        time.sleep(0.1)
    out, _ = storm.communicate(timeout=HANG_SECONDS)
    disconnects.join()
    return json.loads(out), resident, killed[0]


def stats_when_idle(arguments, server):
    """The cache's figures once nothing runs, or after some seconds at the latest."""
    for _ in range(100):
        stats = cache_stats(arguments.client, server.address)
        if stats["blocks_used"] == 0 and stats["requests_running"] + stats["requests_waiting"] == 0:
            break
        time.sleep(0.1)
    return stats


def find_faults(report, resident, stats, server):
    faults = [f"{count} calls: {what}" for what, count in report["faults"].items()]
    if report["calls"] != report["ended"]:
        faults.append(f"{report['calls']} calls, {report['ended']} statuses")
    if not report["statuses"].get("0"):
        faults.append("no call ended with OK")
    third = len(resident) // 3
    second, last = statistics.mean(resident[third:2 * third]), statistics.mean(resident[2 * third:])
    if abs(last / second - 1) > 0.02:
        faults.append(f"resident memory went from {second / MIB:.1f} to {last / MIB:.1f} MiB in the last third")
    if stats is None:
        return faults + ["the server did not live through it: " + "".join(server.log[-5:])]
    if stats["blocks_used"] != 0:
        faults.append(f"{stats['blocks_used']} blocks are still used")
    if stats["invariant_violations"] != 0:
        faults.append(f"{stats['invariant_violations']} invariants were violated: " + "".join(server.log[-5:]))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("client")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--load", type=float, default=4, help="tokens wanted at once, by those that the cache holds")
    parser.add_argument("--budget", type=int, default=480, help="the server's memory budget, in MiB")
    parser.add_argument("--no-memory-limit", action="store_true")
    arguments = parser.parse_args()
    if not model_path().exists():
        print(f"{model_path()} is missing: run scripts/fetch_model or set QUIRE_TEST_MODEL")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    budget = arguments.budget * MIB
    cgroup = None
    if not arguments.no_memory_limit:
        try:
            cgroup = MemoryCgroup(budget * 105 // 100)
        except OSError as error:
            print(f"skipped: no memory cgroup can be made here ({error})")
            sys.exit(SKIPPED)
    server = Server([arguments.server, "--model", str(model_path()), "--grpc-listen", "127.0.0.1:0", "--memory-budget",
                     str(budget), "--max-model-len", "1024", "--log-level", "error"], cgroup)
    try:
        report, resident, num_killed = run_storm(arguments, server)
        stats = stats_when_idle(arguments, server) if server.process.poll() is None else None
        faults = find_faults(report, resident, stats, server)
    finally:
        code = server.stop()
    if code != 0:
        faults.append(f"the server ended with {code}")
    print(f"calls {report['calls']} of {report['callers']} callers, statuses {report['statuses']}, tokens "
          f"{report['tokens']}, clients killed {num_killed}")
    print(f"resident {resident[len(resident) // 3] / MIB:.1f} to {max(resident) / MIB:.1f} MiB of {arguments.budget}; "
          f"cache {json.dumps(stats)}")
    if cgroup:
        print(f"cgroup peak {cgroup.peak_bytes() / MIB:.1f} of {budget * 1.05 / MIB:.1f} MiB, page cache included")
        cgroup.remove()
    for fault in faults:
        print("FAULT", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

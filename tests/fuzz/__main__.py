"""The long run: ``python3 dev.py fuzz --minutes N [--seed S]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.calls import Tally, fuzz_call, fuzz_twin
from tests.fuzz.files import fuzz_file
from tests.fuzz.hostile_requests import fuzz_request, local_page
from tests.fuzz.killed_runs import kill_many
from tests.fuzz.targets import SLOW, targets

FILES_PER_ROUND, SLOW_ROUNDS, REPORT_ROUNDS = 3, 20, 50


def main(arguments: list[str]) -> int:
    """Killed runs, mutated calls and malformed files until the time is over; 1 when something failed."""
    parser = argparse.ArgumentParser(prog="python3 dev.py fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="How long to run.")
    parser.add_argument("--seed", type=int, help="Where to begin. (default: the time)")
    parser.add_argument("--kills", type=int, default=200, help="Runs to kill, in at most half of the time.")
    asked = parser.parse_args(arguments)
    first = asked.seed if asked.seed is not None else int(time.time()) % 10**6
    print(f"fuzz: seeds from {first}", flush=True)
    calls, twins, files, requests, runs = Tally(), Tally(), Tally(), Tally(), Tally()
    every = list(targets())
    begin, seed = time.monotonic(), first
    end = begin + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as folder, local_page(Path(folder)) as page:
        kill_many(Path(folder), range(first, first + asked.kills), runs, until=(begin + end) / 2)
        while time.monotonic() < end:
            for target in every:
                if target.name not in SLOW or seed % SLOW_ROUNDS == 0:
                    fuzz_call(target, seed, calls)
                    fuzz_twin(target, seed, twins)
            for number in range(FILES_PER_ROUND):
                fuzz_file(Path(folder), seed * FILES_PER_ROUND + number, files)
                fuzz_request(page, seed * FILES_PER_ROUND + number, requests)
            seed += 1
            if seed % REPORT_ROUNDS == 0:  # a run that is killed has said what it found
                print(f"fuzz: seed {seed}\n{calls.report()}{twins.report()}{files.report()}", flush=True)
    print(f"calls {calls.report()}\nbeside twins {twins.report()}\nfiles {files.report()}")
    print(f"requests {requests.report()}\nkilled runs {runs.report()}")
    print(f"fuzz: seeds {first} to {seed - 1}")
    return 1 if any(tally.failures for tally in (calls, twins, files, requests, runs)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command line: many programs by seed, or one again."""

from __future__ import annotations

import argparse
import sys
import time

from .differential import checked, explained, libraries


def main() -> int:
    """Run programs; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the program of one seed")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--most", type=int, default=10, help="stop after so many disagreements (default 10)")
    parser.add_argument("--mixed", action="store_true", help="with the statements of mixed_statements.py")
    parser.add_argument("--whole", action="store_true", help="do not shorten the programs that disagree")
    given = parser.parse_args()
    libraries()
    seeds = [given.replay] if given.replay is not None else range(given.seed, given.seed + given.programs)
    failed, began = [], time.perf_counter()
    done = 0
    for seed in seeds:
        program, found = checked(seed, given.mixed)
        done += 1
        if given.show:
            print(f"# seed {seed}\n" + "\n".join(program) + "\n")
        if found is not None:
            failed.append(seed)
            print(explained(seed, program, found, shorten=not given.whole,
                            command="tests.random_programs" + " --mixed" * given.mixed), flush=True)
            if len(failed) >= given.most:
                break
    print(f"{done} programs, {len(failed)} disagreements, {time.perf_counter() - began:.0f} s"
          + (f"; seeds {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

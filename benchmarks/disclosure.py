"""What attackers learn from a release, beside what its readers get: by mode, size of the cell and attacker.

    python benchmarks/disclosure.py FOLDER [--cohorts SHARE] [--only PIECE...]

measures every piece that FOLDER does not hold yet, then prints the table of all pieces there. So it can be stopped and
begun again, and pieces can be made at the same time (`--only known-24`; a name that begins like that is enough).
`--cohorts 0.1` takes a tenth of the cohorts.

Attackers (an AUC of 0.5 is a coin; each uses the likelihood ratio of what was published, the noise's covariance known):

    known        has every other row, computes the release with a person and without, and says which was published:
                 from values, errors, bands of riders and the discrimination; `points` is the share of cells in which
                 other points are refused for one rider's influence, and the attacker is certain: `known` and `expert`
                 count these as won, `values` do not. Riders are drawn at random; the expert succeeds nearly everywhere
    one outcome  the same, for one outcome of a person whose other outcomes are known too: accuracy with even odds, and
                 what the release adds to guesses of somebody who knows the chance of success beforehand. An
                 `accomplice` gives those of some other outcomes that move the release most
    departure    has two releases, every other rider having added five outcomes between them and one person having
                 left, and says whether that one was good (the row computed again at once, which rules forbid)

In private mode the attackers have the sums with noise, before any row is made of them. Readers: RMSE of published
difficulties against the truth, coverage of published errors (1.96 of them either side) by published band, and share of
points with ten riders that are released. In brackets is the Monte Carlo standard error, by cells or cohorts.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attackers
import readers
from attackers import Pair

from isuit.release.policy import Policy

SIZES = (16, 24, 40, 120)
EPSILONS = (2.0, 1.0)
MODES = [Policy(noise=size) for size in (0.0, 0.18, Policy().noise, 0.45)]


def pieces() -> dict[str, tuple[int, Callable[[Sequence[int]], Any]]]:
    """By name: how many cohorts, and what is measured of them."""
    found: dict[str, tuple[int, Callable[[Sequence[int]], Any]]] = {}
    for size in SIZES:
        found[f"known-{size}"] = 100, lambda seeds, size=size: attackers.with_and_without(size, seeds, False)
        found[f"expert-{size}"] = 100, lambda seeds, size=size: attackers.with_and_without(size, seeds, True)
        for epsilon in EPSILONS:
            for name, expert in (("known", False), ("expert", True)):
                found[f"private-{epsilon:g}-{name}-{size}"] = (
                    24,
                    lambda seeds, of=(size, epsilon), expert=expert: attackers.private_evidence(*of, seeds, expert),
                )
    for size in SIZES[:3]:
        found[f"outcome-{size}"] = 100, lambda seeds, size=size: attackers.one_outcome_pairs(size, seeds, False)
        found[f"accomplice-{size}"] = 60, lambda seeds, size=size: attackers.one_outcome_pairs(size, seeds, True)
        found[f"departure-{size}"] = 400, lambda seeds, size=size: attackers.departures(size, seeds)
    for kind in readers.COHORTS:
        found[f"readers-{kind}"] = 16, lambda seeds, kind=kind: [readers.threshold(kind, seed, MODES) for seed in seeds]
        for epsilon in EPSILONS:
            found[f"private-{epsilon:g}-readers-{kind}"] = (
                16,
                lambda seeds, of=epsilon, kind=kind: [readers.private(kind, seed, of) for seed in seeds],
            )
    return found


def measure(folder: Path, share: float, only: Sequence[str]) -> None:
    for name, (cohorts, of) in pieces().items():
        file = folder / f"{name}.pickle"
        if file.exists() or (only and not name.startswith(tuple(only))):
            continue
        begun = time.process_time()
        found = of(range(1, max(3, round(share * cohorts)) + 1))
        file.write_bytes(pickle.dumps(found))
        print(f"{name}: {time.process_time() - begun:.0f} s of CPU", flush=True)


def table(folder: Path) -> Iterator[str]:
    held = {file.stem: pickle.loads(file.read_bytes()) for file in folder.glob("*.pickle")}
    for size in SIZES:
        for policy in MODES:
            said = list(_attacked(held, size, policy))
            if said:
                yield f"noise {policy.noise:4.2f}, {size:3} riders: {'; '.join(said)}"
        for epsilon in EPSILONS:
            names = [f"private-{epsilon:g}-{who}-{size}" for who in ("known", "expert")]
            said = [f"{name.split('-')[2]} {_told(attackers.area(held[name]))}" for name in names if name in held]
            if said:
                yield f"epsilon {epsilon:g}, {size:3} riders: {'; '.join(said)}"
    for kind in readers.COHORTS:
        for number, policy in enumerate(MODES):
            if f"readers-{kind}" in held:
                found = [each[number] for each in held[f"readers-{kind}"]]
                yield f"noise {policy.noise:4.2f}, {kind}: {readers.told(found)}"
        for epsilon in EPSILONS:
            if f"private-{epsilon:g}-readers-{kind}" in held:
                yield f"epsilon {epsilon:g}, {kind}: {readers.told(held[f'private-{epsilon:g}-readers-{kind}'])}"


def _attacked(held: dict[str, Any], size: int, policy: Policy) -> Iterator[str]:
    for who in ("known", "expert"):
        if f"{who}-{size}" in held:
            pairs: list[Pair] = held[f"{who}-{size}"]
            points = sum(map(attackers.differ_in_points, pairs)) / len(pairs)
            every, values = (_told(attackers.known(pairs, policy, points=each)) for each in (True, False))
            yield f"{who} {every} values {values} points {points:.0%}"
    for who in ("outcome", "accomplice"):
        if f"{who}-{size}" in held:
            even, gain, error = attackers.guessed(held[f"{who}-{size}"], policy)
            yield f"{who} {even:.3f} adds {gain:+.3f} ({error:.3f})"
    if f"departure-{size}" in held:
        yield f"departure {_told(attackers.departed(held[f'departure-{size}'], policy))}"


def _told(found: tuple[float, float]) -> str:
    return f"{found[0]:.3f} ({found[1]:.3f})"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("folder", type=Path)
    given.add_argument("--cohorts", type=float, default=1.0)
    given.add_argument("--only", nargs="+", default=[])
    options = given.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    measure(options.folder, options.cohorts, options.only)
    for line in table(options.folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()

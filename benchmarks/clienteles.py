"""The paper's central claim: two sites with one suitability curve, different clienteles, and different difficulty.

    python benchmarks/clienteles.py [--replicates 20] [--picture docs/pictures/clienteles.svg]

Strong riders go to a hard site and average riders to an easy one, so that both sites show the same success rates.
Twenty riders go to both. Prints the recovered gap in difficulty, in units of the cohort's skill sd, as a share of the
truth.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import expit

from isuit.domain import Z95, Estimate, FitConfig, Observations
from isuit.estimator import fit

GAP = 1.2  # of difficulty between the sites, and of mean skill between their clienteles
RIDERS, BOTH = 200, 20


def difficulty(metric: np.ndarray, hard: np.ndarray | bool) -> np.ndarray:
    return ((metric - 18) / 10) ** 2 - 1 + GAP * np.asarray(hard)


def draw(seed: int, outcomes: int) -> tuple[Observations, np.ndarray]:
    """A cohort of two sites, `easy` and `hard`; those who visit both divide their outcomes evenly."""
    generator = np.random.default_rng(seed)
    strong = np.arange(RIDERS) < RIDERS // 2
    skill = generator.standard_normal(RIDERS) + GAP * strong
    rider = np.repeat(np.arange(RIDERS), outcomes)
    both = np.isin(rider, generator.choice(RIDERS, BOTH, replace=False))
    away = both & (generator.random(rider.size) < 0.5)
    hard = strong[rider] ^ away
    metric = generator.uniform(3, 35, rider.size)
    outcome = generator.random(rider.size) < expit(2 * (skill[rider] - difficulty(metric, hard)))
    names = tuple(f"rider-{r:03d}" for r in range(RIDERS))
    return Observations(names, rider, metric, outcome.astype(np.int64), ("easy", "hard"), hard.astype(np.int64)), skill


def gap(estimate: Estimate) -> float:
    """Mean difference of the two sites' difficulty between 8 and 28 knots."""
    easy, hard = (next(c for c in estimate.curves if c.site == name) for name in ("easy", "hard"))
    assert easy.difficulty is not None
    assert hard.difficulty is not None
    inside = (easy.metric >= 8) & (easy.metric <= 28)
    return float(np.mean((hard.difficulty - easy.difficulty)[inside]))


def picture(path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data, skill = draw(1, 30)
    estimate = fit(data, FitConfig())
    assert data.site is not None
    colours = {"easy": "#3a9679", "hard": "#d1622b"}
    with plt.rc_context({"svg.hashsalt": "isuit", "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
        edges = np.linspace(3, 35, 13)
        for code, name in enumerate(data.sites):
            here = data.site == code
            place = np.digitize(data.metric[here], edges) - 1
            rate = [data.outcome[here][place == b].mean() for b in range(12)]
            left.plot((edges[1:] + edges[:-1]) / 2, rate, "o-", color=colours[name], label=f"{name} site")
            curve = next(c for c in estimate.curves if c.site == name)
            assert curve.difficulty is not None
            assert curve.difficulty_se is not None
            half = Z95 * curve.difficulty_se
            right.fill_between(curve.metric, curve.difficulty - half, curve.difficulty + half, color=colours[name],
                               alpha=0.2, linewidth=0)  # fmt: skip
            right.plot(curve.metric, curve.difficulty, color=colours[name], label=f"{name} site, recovered")
            truth = (difficulty(curve.metric, code == 1) - skill.mean()) / skill.std()
            right.plot(curve.metric, truth, color=colours[name], linestyle="--", linewidth=1)
        left.set(title="What a suitability curve sees", xlabel="wind (kn)", ylabel="share of successes", ylim=(0, 1))
        right.set(title="Difficulty, net of who goes there (dashed: truth)", xlabel="wind (kn)", ylabel="skill sd")
        left.legend(frameon=False)
        right.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.picture:
        picture(options.picture)
    print("| outcomes per rider | recovered gap / truth | Monte Carlo error |\n|---:|---:|---:|")
    for outcomes in (5, 10, 30):
        shares = []
        for seed in range(options.replicates):
            data, skill = draw(seed, outcomes)
            shares.append(gap(fit(data, FitConfig())) * skill.std() / GAP)
        error = np.std(shares, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else float("nan")
        print(f"| {outcomes} | {np.mean(shares):.3f} | {error:.3f} |")


if __name__ == "__main__":
    main()

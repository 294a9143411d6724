"""Whether sites that lie near one another should tell of one another (`isuit fit --nearby`).

    python benchmarks/nearby.py [--cohorts N] [--sites N] [--spots FILE]

Cohorts of 30,000 outcomes of 1,500 riders at 150 sites, each rider at up to four of them, popularity by Zipf's law. A
share of the variance of sites' levels (sd 0.6 of skill) goes with where they are, over a range of 150 km; sites lie
evenly on 10 by 15 degrees of Europe, or, with `--spots` (a CSV with the columns latitude and longitude), where these
are, with a range of 300 km. Each cohort is fitted twice, with sites that are unrelated and with sites that tell of one
another:

- RMSE of difficulty at a metric of 18 over the sites, and how often its 95 % interval holds the truth;
- a fifth of the sites is left out with all outcomes, both fits are made of the rest, with share and range chosen
  from the rest, and the outcomes of known riders there are predicted: the log score (lower is better), and RMSE of the
  left-out sites' levels.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from isuit.domain import FitConfig, FloatArray, Observations
from isuit.estimator.fit import _functions, _prepare
from isuit.estimator.likelihood.latent import LatentFit, borrow, fit_latent
from isuit.estimator.model.nearness import Nearness, _alike, _in_space

RIDERS, EACH, DISCRIMINATION, SD = 1_500, 20, 1.5, 0.6
AT = np.array([18.0])  # where the shared curve is least, -1


def draw(where: FloatArray, range_km: float, share: float, seed: int) -> tuple[Observations, FloatArray, FloatArray]:
    """Outcomes, the coordinates of their sites, and the sites' true levels."""
    rng, sites = np.random.default_rng(seed), len(where)
    space = _in_space(where)
    distance = np.linalg.norm(space[:, None] - space[None], axis=2)
    covariance = share * _alike(distance, range_km) + (1 - share + 1e-9) * np.eye(sites)
    level = SD * np.linalg.cholesky(covariance) @ rng.standard_normal(sites)
    popularity = rng.permutation(1 / np.arange(1, sites + 1))
    haunts = rng.choice(sites, (RIDERS, 4), p=popularity / popularity.sum())
    rider = np.repeat(np.arange(RIDERS), EACH)
    site, metric = haunts[rider, rng.integers(0, 4, rider.size)], rng.uniform(3, 35, rider.size)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + level[site]
    chance = 1 / (1 + np.exp(-DISCRIMINATION * (rng.standard_normal(RIDERS)[rider] - difficulty)))
    outcome = (rng.random(rider.size) < chance).astype(np.int8)
    used, code = np.unique(site, return_inverse=True)
    riders, names = tuple(f"{r:06d}" for r in range(RIDERS)), tuple(f"{s:05d}" for s in used)
    return Observations(riders, rider, metric, outcome, names, code), where[used], level[used]


def fits(data: Observations, where: FloatArray, chosen: FloatArray | None = None) -> tuple[LatentFit, ...]:
    """With sites unrelated, and with sites that tell of one another; and what that was."""
    config = FitConfig()
    prepared = _prepare(data, config, _functions(data, config), chosen=chosen)
    alone = fit_latent(prepared.counts, prepared.space, prepared.single)
    return alone, *borrow(alone, where)


def levels(fit: LatentFit, sites: int) -> tuple[FloatArray, FloatArray]:
    bands = [fit.difficulty(AT, site) for site in range(sites)]
    return np.array([band.value[0] for band in bands]) + 1, np.array([band.se[0] for band in bands])


def log_score(fit: LatentFit, test: Observations, site: FloatArray) -> float:
    chance = fit.predict(test.rider.astype(np.int64), test.metric, site)
    return float(-np.mean(np.log(np.where(test.outcome == 1, chance, 1 - chance))))


def one(where: FloatArray, range_km: float, share: float, seed: int) -> dict[str, float]:
    data, places, truth = draw(where, range_km, share, seed)
    found: dict[str, float] = {}
    began = time.process_time()
    alone, near, nearness = fits(data, places)
    assert isinstance(nearness, Nearness)
    found |= {"share": nearness.share, "range": nearness.range_km, "seconds": time.process_time() - began}
    for name, fit in (("alone", alone), ("nearby", near)):
        value, se = levels(fit, len(places))
        found[f"rmse {name}"] = float(np.sqrt(np.mean((value - truth) ** 2)))
        found[f"coverage {name}"] = float(np.mean(np.abs(value - truth) < 1.96 * se))
    left_out = np.random.default_rng(seed + 10**6).permutation(len(places))[: len(places) // 5]
    kept_back = np.isin(data.site, left_out)
    alone, near, _ = fits(data, places, ~kept_back)
    test = data.rows(kept_back)
    found["log score alone"] = log_score(alone, test, np.full(len(test), -1))
    found["log score nearby"] = log_score(near, test, test.site.astype(np.int64))
    if near is alone:
        found["log score nearby"] = found["log score alone"]
    found["new rmse alone"] = float(np.sqrt(np.mean((alone.difficulty(AT).value + 1 - truth[left_out]) ** 2)))
    found["new rmse nearby"] = float(np.sqrt(np.mean((levels(near, len(places))[0] - truth)[left_out] ** 2)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohorts", type=int, default=10)
    parser.add_argument("--sites", type=int, default=150)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--spots", type=Path)
    options = parser.parse_args()
    for share in (0.0, 0.5, 0.9):
        rows = []
        for seed in range(options.first, options.first + options.cohorts):
            rng = np.random.default_rng(seed + 10**7)
            where, range_km = (
                np.column_stack([rng.uniform(40, 50, options.sites), rng.uniform(0, 15, options.sites)]),
                150.0,
            )
            if options.spots is not None:
                with options.spots.open(newline="") as file:
                    where = np.array(
                        [[float(row["latitude"]), float(row["longitude"])] for row in csv.DictReader(file)]
                    )
                range_km = 300.0
            rows.append(one(where, range_km, share, seed))
        print(f"share {share}: {options.cohorts} cohorts, means (and standard errors)")
        for name in rows[0]:
            values = np.array([row[name] for row in rows])
            print(f"  {name:<18} {values.mean():9.4f} ({values.std(ddof=1) / np.sqrt(values.size):.4f})")
        gain = np.array([row["log score alone"] - row["log score nearby"] for row in rows])
        print(
            f"  {'log score gained':<18} {gain.mean():9.4f} ({gain.std(ddof=1) / np.sqrt(gain.size):.4f})", flush=True
        )


if __name__ == "__main__":
    main()

"""isuit from Python, as in a notebook: fit a frame, look at it, score, check. Every step prints what it found."""

# %% A cohort: any frame with the Arrow interface will do (pandas, polars, pyarrow), or a path.
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import isuit

random = np.random.default_rng(11)
riders, outcomes = 60, 30
skill = random.standard_normal(riders)
rider = np.repeat(np.arange(riders), outcomes)
wind = random.uniform(3, 35, rider.size)
chance = 1 / (1 + np.exp(-2 * (skill[rider] - ((wind - 18) / 8) ** 2 + 1)))
frame = pa.table(
    {
        "rider": [f"{number:08x}" for number in random.permutation(10**6)[:riders][rider]],
        "wind_knots": wind,
        "outcome": (random.random(rider.size) < chance).astype(np.int8),
    }
)

# %% Fit it. The store is made on the way; nothing stays open between calls.
folder = Path(tempfile.mkdtemp())
store = isuit.open(folder / "isuit-store")
expert = [(3, 0.1), (18, 0.9), (35, 0.1)]  # an expert's suitability by wind
knots = {"metric": "wind_knots"}
fit = store.fit(frame, activity="kitesurfing", dimension="wind", columns=knots, anchor=expert)
print(fit)
print(fit.summary())

# %% Difficulty along the wind, as an Arrow table, hence pandas or polars. In a notebook, `fit` draws itself.
print(fit.curves.slice(0, 3).to_pylist())
print(fit.difficulty([12, 18, 24]).to_pylist())
fit.plot(folder / "difficulty.png")

# %% Suitability for a declared skill; there is no way from a rider to a score.
for level in ("beginner", "intermediate", "expert"):
    report = fit.score(22, level)
    print(f"{level}: {report.suitability:.2f} ({report.lower:.2f} to {report.upper:.2f})")
week = fit.score_table({"metric": [8.0, 14.0, 20.0, 26.0]}, skill="intermediate")
print(week.to_pylist())
week

# %% The same fit again is confirmed, not recorded twice; it follows from its cohort; the store agrees with its log.
again = store.fit(frame, activity="kitesurfing", dimension="wind", columns=knots, anchor=expert)
print(again.recorded, fit.rederive().verdict, store.verify().ok)
print(store.status().log_head)
store

# %% Without a store nothing is recorded; the same cohort and configuration still have the same name.
loose = isuit.fit(frame, activity="kitesurfing", dimension="wind", columns=knots, anchor=expert)
print(loose.fit_id == fit.fit_id)
loose.diagnostics

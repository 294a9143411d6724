"""The reference cohort as CSV with every digit, for the program that checks it (lme4_reference.R)."""

from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw

data, _ = draw(Truth(), REFERENCE_SEED)
print("rider,metric,outcome")
for rider, metric, outcome in zip(data.rider, data.metric, data.outcome, strict=True):
    print(f"{data.riders[rider]},{float(metric)!r},{outcome}")

"""Sites that tell of one another: the fit in which levels of sites near one another are alike, where it is asked for.

The fit that takes sites as unrelated comes first: it is what the gates and the test of skill are about, and it stands
where nothing says that sites nearby are more alike than others. The record then says why.
"""

from __future__ import annotations

import numpy as np

from isuit.domain import FitConfig, Observations
from isuit.errors import EstimationError
from isuit.record.diagnostics import Nearby

from .likelihood.latent import LatentFit, borrow
from .likelihood.solver import Progress
from .model.nearness import LEAST_SITES


def borrowed(
    data: Observations, config: FitConfig, alone: LatentFit, progress: Progress | None = None
) -> tuple[LatentFit, Nearby | None]:
    """The fit with sites that tell of one another, and what the record says of it; None where nobody asked."""
    if not config.nearby:
        return alone, None
    places = {site: place for site, *place in config.nearby}
    where = np.array([places.get(site, [np.nan, np.nan]) for site in data.sites]).reshape(-1, 2)
    known = int(np.isfinite(where).all(axis=1).sum())
    if known < LEAST_SITES or not alone.space.places:
        return alone, _unrelated(known, f"that takes {LEAST_SITES} sites with coordinates, and there are {known}")
    try:
        found, nearness = borrow(alone, where, progress)
    except EstimationError:
        return alone, _unrelated(known, "no best fit with levels that are alike was found")
    if not nearness.share:
        return alone, _unrelated(known, "those nearby are no more alike than others")
    sentence = (
        f"Where a site is tells {nearness.share:.0%} of how its level differs from that of others; about "
        f"{nearness.range_km:.3g} km apart, two sites have half of that in common."
    )
    share, range_km = nearness.share, nearness.range_km
    return found, Nearby(sites=known, share=share, range_km=range_km, gain=nearness.gain, sentence=sentence)


def _unrelated(known: int, reason: str) -> Nearby:
    sentence = f"Sites tell nothing of one another: {reason}."
    return Nearby(sites=known, share=0.0, range_km=None, gain=0.0, sentence=sentence)

"""What a fit's record says besides its curves: the parameters to score from, and what the fit says about itself.

These are plain frozen values, described once: the estimator makes them, `as_json` writes them into the store, and
`isuit.published.reading` reads them back. Nothing but the standard library is needed here, so that the estimator can
make them and a start of the program does not pay for them.
"""

from isuit.record.diagnostics import Diagnostics
from isuit.record.parameters import Parameters, SurfaceParameters
from isuit.record.values import as_json

__all__ = ["Diagnostics", "Parameters", "SurfaceParameters", "as_json"]

"""A mean from replications, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats

#: Half-width of a 95% interval of a normal mean, in standard errors.
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the half-width of its 95% interval."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, sample: Floats, scale: float = 1.0) -> Estimate:
        """Estimate of the mean of ``sample`` divided by ``scale``."""
        spread = float(sample.std(ddof=1)) if len(sample) > 1 else float("nan")
        return cls(float(sample.mean()) / scale, float(Z95 * spread / np.sqrt(len(sample)) / scale))

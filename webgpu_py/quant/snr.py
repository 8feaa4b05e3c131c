"""How much a quantization loses, as a signal-to-noise ratio."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10, sqrt

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Snr:
    """Running SNR: `db = 10 log10(sum w^2 / sum (w - w')^2)`, summed in float64 block by block."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, exact: NDArray[np.float32], approximate: NDArray[np.float32]) -> None:
        """Count one block; both arrays have the same shape."""
        self.signal += float(np.square(exact, dtype=np.float64).sum())
        self.noise += float(np.square(np.subtract(exact, approximate, dtype=np.float64)).sum())

    @property
    def db(self) -> float:
        """Decibels; inf when nothing was lost, -inf when only zeros were to be kept."""
        if self.noise == 0:
            return inf
        return 10 * log10(self.signal / self.noise) if self.signal else -inf

    @property
    def relative_rms(self) -> float:
        """sqrt(sum (w - w')^2 / sum w^2); 0 when nothing was lost."""
        if self.noise == 0:
            return 0.0
        return sqrt(self.noise / self.signal) if self.signal else inf


def snr_db(exact: NDArray[np.float32], approximate: NDArray[np.float32]) -> float:
    """SNR in dB of one array against another of the same shape."""
    snr = Snr()
    snr.add(exact, approximate)
    return snr.db

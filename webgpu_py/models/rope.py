"""Rotary embeddings as tables: frequencies, and how they are stretched for longer contexts."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Literal, get_args

import numpy as np

from ..errors import FormatError, UnsupportedModel
from .terms import Terms

ScalingKind = Literal["linear", "llama3", "yarn", "longrope"]
KINDS: dict[str, ScalingKind] = {**{kind: kind for kind in get_args(ScalingKind)}, "su": "longrope"}
"""The kinds of scaling by the names that files have for them."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary frequencies are stretched for contexts longer than those of training.

    `longrope` divides each frequency by its own factor: `short_factor` for contexts up to
    `original_max_position`, `long_factor` for longer ones. `attention_factor` multiplies cosine
    and sine; None is what the kind defines.
    """

    kind: ScalingKind
    factor: float = 1.0
    original_max_position: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()

    @classmethod
    def from_hf(cls, settings: Terms, max_position: int) -> RopeScaling | None:
        """The scaling of `rope_parameters`, None for none; UnsupportedModel names another kind."""
        name = str(settings.get("rope_type", settings.get("type", "default")))
        if name == "default":
            return None
        kind = KINDS.get(name)
        if kind is None:
            raise UnsupportedModel(
                f"rope scaling {name!r} is not supported; supported: {', '.join(KINDS)}"
            )
        for key in ("mscale", "mscale_all_dim"):
            if settings.get(key):
                raise UnsupportedModel(f"rope scaling {name!r} with {key} is not supported")
        original = settings.count("original_max_position_embeddings", max_position, least=2)
        attention = settings.get("attention_factor")
        found = cls(
            kind,
            settings.number("factor", max_position / original if kind == "longrope" else None),
            original,
            settings.number("low_freq_factor", 1.0),
            settings.number("high_freq_factor", 4.0),
            settings.number("beta_fast", 32.0),
            settings.number("beta_slow", 1.0),
            None if attention is None else settings.number("attention_factor"),
            settings.numbers("short_factor"),
            settings.numbers("long_factor"),
        )
        ordered = found.low_freq_factor < found.high_freq_factor
        if not (found.factor > 0 and ordered and 0 < found.beta_slow < found.beta_fast):
            raise FormatError(
                f"rope scaling {name!r}: there must be a positive factor, a low_freq_factor below "
                f"high_freq_factor and a beta_slow below beta_fast; seen {found}"
            )
        return found


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotation of the first `dim` dimensions of a head, frequency theta^(-2i/dim) for pair i."""

    dim: int
    theta: float = 10000.0
    scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be computed."""
        if self.dim < 2 or self.dim % 2 or not self.theta > 1:
            raise FormatError(
                f"rope: {self.dim} dimensions of base {self.theta}, must be an even number of them "
                "and a base above 1"
            )
        s = self.scaling
        if s is not None and s.kind == "longrope":
            counts = len(s.short_factor), len(s.long_factor)
            if counts != (self.dim // 2, self.dim // 2):
                raise FormatError(
                    f"rope: {counts[0]} short and {counts[1]} long factors, {self.dim} rotated "
                    f"dimensions need {self.dim // 2} of each"
                )

    def table(self, positions: int) -> np.ndarray:
        """Cosine and sine of position * frequency: float32 [positions, dim / 2, 2].

        `positions` is the context that a session is built for; it chooses longrope's factors.
        """
        angles, factor = self.angles(positions)
        turns = np.stack([np.cos(angles), np.sin(angles)], axis=2) * factor
        return turns.astype(np.float32)

    def angles(self, positions: int) -> tuple[np.ndarray, float]:
        """Position * frequency, float64 [positions, dim / 2], and the factor on both tables."""
        inverse = self.theta ** (-np.arange(0, self.dim, 2, dtype=np.float64) / self.dim)
        factor = 1.0
        if self.scaling is not None:
            inverse, factor = self._scaled(inverse, self.scaling, positions)
        return np.arange(positions, dtype=np.float64)[:, None] * inverse, factor

    def _scaled(
        self, inverse: np.ndarray, s: RopeScaling, positions: int
    ) -> tuple[np.ndarray, float]:
        """Stretched frequencies, and the factor on cosine and sine."""
        if s.kind == "linear":
            return inverse / s.factor, 1.0
        if s.kind == "llama3":
            return _llama3(inverse, s), 1.0
        if s.kind == "yarn":
            usual = 0.1 * log(s.factor) + 1.0 if s.factor > 1 else 1.0
            inverse = self._yarn(inverse, s)
        else:
            usual = sqrt(1 + log(s.factor) / log(s.original_max_position)) if s.factor > 1 else 1.0
            long = positions > s.original_max_position
            inverse = inverse / np.array(s.long_factor if long else s.short_factor)
        return inverse, usual if s.attention_factor is None else s.attention_factor

    def _yarn(self, inverse: np.ndarray, s: RopeScaling) -> np.ndarray:
        """Frequencies that turn often are kept, those that turn rarely stretched by factor."""

        def pair(turns: float) -> float:
            return (
                self.dim * log(s.original_max_position / (turns * 2 * pi)) / (2 * log(self.theta))
            )

        low = max(np.floor(pair(s.beta_fast)), 0)
        high = min(np.ceil(pair(s.beta_slow)), self.dim - 1)
        ramp = np.clip((np.arange(self.dim // 2) - low) / max(high - low, 1e-3), 0, 1)
        found: np.ndarray = inverse / s.factor * ramp + inverse * (1 - ramp)
        return found


def _llama3(inverse: np.ndarray, s: RopeScaling) -> np.ndarray:
    """Long waves are stretched by factor, short ones kept, those between blended."""
    turns = s.original_max_position * inverse / (2 * pi)
    blend = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    blend = np.clip(blend, 0.0, 1.0)
    return np.asarray((1 - blend) * inverse / s.factor + blend * inverse)


def rope_settings(config: Terms, layer_type: str = "full_attention") -> Terms:
    """A `config.json`'s rotary settings for layers of one type.

    Newer files keep them in `rope_parameters`, some of them once a layer type; older ones in
    `rope_theta` and `rope_scaling`.
    """
    stored = config.part("rope_parameters")
    if layer_type in stored:
        return stored.part(layer_type)
    if layer_type != "full_attention":
        return Terms(rope_theta=config.get("rope_local_base_freq"))
    outside = ("rope_theta", "original_max_position_embeddings", "partial_rotary_factor")
    found = Terms({name: config[name] for name in outside if name in config})
    found.update(config.part("rope_scaling"))
    found.update(stored)
    return found


def read_rope(settings: Terms, head_dim: int, max_position: int) -> Rope:
    """The rotation of layers with these settings."""
    return Rope(
        round(head_dim * settings.number("partial_rotary_factor", 1.0)),
        settings.number("rope_theta", 10000.0),
        RopeScaling.from_hf(settings, max_position),
    )

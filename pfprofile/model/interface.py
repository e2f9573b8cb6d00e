"""What everybody outside this room may ask of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pfprofile.model.points import Floats, Points, Predictions

if TYPE_CHECKING:
    from pfprofile.profile.metadata import WorkloadFacts


class PerformanceModel(Protocol):
    """A fitted throughput (and power) model of one workload on one device type."""

    @property
    def workload(self) -> str:
        """Name of the training job's network and data shape."""

    @property
    def device_name(self) -> str:
        """The device as its driver names it."""

    @property
    def source(self) -> str:
        """measured, synthetic or imported: the profile's, kept visible everywhere."""

    @property
    def digest(self) -> str:
        """SHA-256 of the model, for provenance."""

    @property
    def facts(self) -> WorkloadFacts:
        """Sample unit, samples per epoch, reference batches."""

    @property
    def has_power(self) -> bool:
        """Whether power and energy can be predicted."""

    @property
    def gpus_per_node(self) -> int:
        """GPUs in one node of the machine that was profiled."""

    @property
    def supported_clocks_mhz(self) -> tuple[float, ...]:
        """SM clocks that may be locked, MHz, ascending; empty = clocks cannot be chosen."""

    @property
    def default_clock_mhz(self) -> float | None:
        """The clock of an unlocked GPU, MHz, where known."""

    @property
    def max_local_batch(self) -> int | None:
        """Largest local batch known to fit in memory, samples; None = unknown."""

    @property
    def idle_power_w(self) -> float | None:
        """Idle power of one GPU, W, where it was measured."""

    def predict(self, points: Points, level: float = 0.9) -> Predictions:
        """Time, throughput, power and energy with intervals of the given level.

        Raises:
            InputError: an axis the model cannot speak about (only one value was measured); says what to measure.
        """

    def draws(self, points: Points, n_draws: int, seed: int) -> tuple[Floats, Floats]:
        """Joint samples from the model's uncertainty, for all points at once.

        Returns:
            step_time_s and power_w, each (n_draws, m); one row is one possible truth for this model.
        """

"""Evidence of imaginary runs whose devices report their power."""

from __future__ import annotations

from typing import Any

from tests.support.trials import run

from gpudebug.core.records import DeviceEvidence, Evidence, Spread


def powered(
    mean_w: float | None, scale: tuple[float, float] | None = (150.0, 530.0), index: int = 0
) -> DeviceEvidence:
    share = None if scale is None or mean_w is None else (mean_w - scale[0]) / (scale[1] - scale[0])
    return DeviceEvidence(
        index=index,
        uuid=f"GPU-{index}",
        name="H100",
        power_w=Spread(mean=mean_w, p5=mean_w, p50=mean_w, p95=mean_w) if mean_w is not None else None,
        working=share,
        waiting_w=scale[0] if scale else None,
        working_w=scale[1] if scale else None,
        working_reason=None if scale else "no reading of power",
    )


def busy(utilisation: float, mean_w: float = 300.0, index: int = 0, **more: Any) -> DeviceEvidence:
    """One that reads this utilisation all the time."""
    flat = Spread(mean=utilisation, p5=utilisation, p50=utilisation, p95=utilisation)
    return powered(mean_w, index=index).model_copy(update={"gpu_util": flat, "standard_error": 0.5, **more})


def side(utilisation: float, rate: float | None, *powers: float, **more: Any) -> list[Evidence]:
    """A run for each mean power in W."""
    return [
        run(utilisation + n / 4, rate, devices=(powered(power, **more),)) for n, power in enumerate(powers)
    ]

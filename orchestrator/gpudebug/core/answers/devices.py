"""What several devices of a run come to, figure by figure: least, median, most, and which is apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DeviceValue:
    """A figure of one device, by its index and UUID; `node` is the one that it is on, of several."""

    index: int
    uuid: str
    value: float
    node: str | None = None


@dataclass(frozen=True, kw_only=True)
class FigureAcross:
    """A figure over the devices of a run, in its unit: % of `gpu_util`, `mem_util` and `throttled`, W, MHz,
    MB, degrees Celsius.

    `apart` are the devices that differ from the others by the rule of outliers, the farthest first; none of
    fewer than three. `unknown` counts the devices that lack it. `unused` are devices that no run used: they
    are left out of the rest.
    """

    figure: str
    least: DeviceValue
    median: float
    most: DeviceValue
    apart: tuple[DeviceValue, ...] = ()
    unknown: int = 0
    unused: tuple[DeviceValue, ...] = ()

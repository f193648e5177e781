"""A congestion control of one's own."""

from __future__ import annotations

from typing import Protocol, TypedDict


class Ack(TypedDict):
    """An acknowledgment: times in seconds, sizes in bytes, rates in bits per second."""

    time: float
    """Simulated time."""
    acked: int
    """Bytes newly delivered."""
    lost: int
    """Bytes newly marked as lost."""
    rtt: float | None
    """Round-trip time of the newest segment delivered, if it was sent once only."""
    srtt: float | None
    """Smoothed round-trip time."""
    min_rtt: float | None
    """Smallest round-trip time so far."""
    in_flight: int
    """Bytes in flight after the acknowledgment."""
    delivered: int
    """Bytes delivered since the start."""
    delivery_rate: int | None
    """Delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation)."""
    ce_bytes: int
    """Bytes newly reported to have arrived with Congestion Experienced."""
    cwnd_limited: bool
    """Whether the congestion window limits the sender."""


class Control(Protocol):
    """The control of one connection; a class of one's own need not inherit from it.

    A class may also have three methods and a rate. The method ``on_ack`` gets each acknowledgment. The method
    ``on_round`` gets one in each round trip. The method ``on_loss`` gets a word for each change of the
    congestion state. The attribute ``pacing_rate`` is in bits per second. See docs/own-control.md.
    """

    @property
    def cwnd(self) -> float:
        """The congestion window in bytes."""
        ...


class MakesControl(Protocol):
    """A class or function that makes the control of each connection."""

    def __call__(self, mss: int, initial_window: int, /) -> Control:
        """``mss``: payload bytes of a full segment; ``initial_window``: segments."""
        ...

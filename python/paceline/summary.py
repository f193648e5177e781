"""The figures of a scenario's runs: means over seeds with their confidence intervals."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures of all stations of a run together. Rates and means cover the time after the warm-up."""

    goodput_mbps: float
    """Downloaded payload that the stations acknowledged, Mb/s."""
    upload_mbps: float
    """Uploaded payload that the servers acknowledged, Mb/s."""
    acks_in_per_s: float
    """Pure ACKs that arrived at the uplink buffers, per second."""
    acks_discarded_per_s: float
    """Pure ACKs that the ACK filter discarded, per second."""
    acks_sent_per_s: float
    """Pure ACKs that left the uplink buffers, per second."""
    rtt_mean_ms: float
    """Mean round-trip time from data segment to ACK at the servers, or on a proxy's radio side, ms."""
    rtt_p95_ms: float
    """95th percentile of this round-trip time, ms."""
    retransmission_share: float
    """Share of data segments that are retransmissions."""
    jain_index: float
    """Jain's fairness index of the stations' acknowledged bytes, both directions."""
    downlink_block_bytes: float
    """Mean size of downlink transport blocks, bytes."""
    downlink_prb_share: float
    """Share of the downlink PRBs that were used."""
    uplink_prb_share: float
    """Share of the uplink PRBs that were used."""
    uplink_grant_share: float
    """Uplink grants as a share of the most that the configured grants per slot allow."""
    harq_retransmission_share: float
    """Share of transport block transmissions that are HARQ retransmissions, both directions."""
    scheduling_requests_per_s: float
    """Scheduling requests per second."""
    sr_wait_mean_ms: float
    """Mean time from data in an empty uplink buffer to the block that the scheduling request led
    to, ms."""
    random_accesses_per_s: float
    """Random access procedures started, per second."""
    random_access_mean_ms: float
    """Mean time from the start of a random access to contention resolution, ms."""
    preamble_collision_share: float
    """Share of preambles that collided."""
    uplink_block_limited_share: float
    """Share of uplink grants that were limited by the number of free PRBs."""
    uplink_power_limited_share: float
    """Share of uplink grants that were limited by the stations' transmit power."""
    stations_without_service: float
    """Stations with simulated traffic and no acknowledged payload: out of coverage, or not scheduled."""
    downlink_queue_drops_per_s: float
    """Packets dropped by the eNB's full downlink buffers, or by a link's downlink queue, per second."""
    radio_losses_per_s: float
    """Packets lost by HARQ, RLC reassembly, radio-link failures or a link, per second, both directions."""
    pdcp_discards_per_s: float
    """Packets dropped by PDCP's discard timer, per second, both directions."""
    uplink_queue_drops_per_s: float
    """Packets dropped by the uplink queue of a link, per second; 0 for a cell."""
    link_capacity_mbps: float
    """Capacity of a link's downlinks, Mb/s, headers included; 0 for a cell."""
    link_sent_mbps: float
    """Rate that a link's downlinks sent, Mb/s, headers and lost packets included; 0 for a cell."""
    link_delay_mean_ms: float
    """Mean time of a packet from its arrival at a link's downlink queue to its last byte sent, ms; 0 for a
    cell."""
    link_delay_p95_ms: float
    """95th percentile of this time, ms."""
    udp_loss_share: float
    """Share of UDP datagrams that did not arrive by the end of the run."""
    udp_delay_mean_ms: float
    """Mean one-way delay of UDP datagrams, ms."""
    handshake_share: float
    """Share of the connections' lifetimes, over the whole run, in which the handshake was not complete."""
    application_share: float
    """Share in which all data that the application had written was sent."""
    send_buffer_share: float
    """Share in which the send buffer was full."""
    receive_window_share: float
    """Share in which the receiver's window was used up."""
    congestion_window_share: float
    """Share in which the congestion window was used up."""
    pacing_share: float
    """Share in which pacing delayed the next segment."""
    recovery_share: float
    """Share in which the sender was in fast recovery."""
    timeout_share: float
    """Share in which the sender waited for its retransmission timer, or was in recovery after its expiry."""
    rtt_downlink_queue_share: float
    """Mean time of packets in the eNB's downlink buffer, as a share of the senders' mean round-trip time."""
    rtt_grant_share: float
    """Mean time of packets in the uplink buffers until the first transport block, as such a share."""
    rtt_uplink_queue_share: float
    """Mean other time of packets in the uplink buffers, as such a share."""
    rtt_harq_share: float
    """Mean time of transport blocks in HARQ, both directions, as such a share."""


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Figures of the stations of one ``[[station]]`` table together."""

    goodput_mbps: float
    """Downloaded payload that the stations acknowledged, Mb/s."""
    upload_mbps: float
    """Uploaded payload that the servers acknowledged, Mb/s."""
    goodput_per_station_mbps: float
    """Downloaded payload per station, Mb/s."""
    upload_per_station_mbps: float
    """Uploaded payload per station, Mb/s."""
    rtt_mean_ms: float
    """Mean round-trip time from data segment to ACK, as in the totals, ms."""
    retransmission_share: float
    """Share of data segments that are retransmissions."""
    jain_index: float
    """Jain's fairness index of the stations' acknowledged bytes, both directions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of the lifetimes of connections, by the limit of the sender; they add up to 1."""

    handshake: float
    """The handshake was not complete."""
    application: float
    """All data that the application had written was sent."""
    send_buffer: float
    """The send buffer was full of unacknowledged data."""
    receive_window: float
    """The receiver's window was used up."""
    congestion_window: float
    """The congestion window was used up."""
    pacing: float
    """Pacing delayed the next segment."""
    recovery: float
    """The sender was in fast recovery."""
    timeout: float
    """The sender waited for its retransmission timer, or was in recovery after its expiry."""


@dataclass(frozen=True, slots=True)
class RadioDelays:
    """Mean delays of packets in the radio access, as shares of the mean round-trip time."""

    downlink_queue: float
    """Time of a packet in the eNB's downlink buffer."""
    grant: float
    """Time of a packet in the station's uplink buffer until the first transport block after the buffer was
    empty: scheduling request, grant, random access."""
    uplink_queue: float
    """Other time of a packet in the station's uplink buffer."""
    downlink_harq: float
    """Time of a downlink transport block from its first to its last transmission."""
    uplink_harq: float
    """Time of an uplink transport block from its first to its last transmission."""


@dataclass(frozen=True, slots=True)
class Group:
    """Figures and limits of TCP for the stations of one ``[[station]]`` table, over all runs."""

    group: int
    """Index of the ``[[station]]`` table."""
    name: str
    """Its name: ``station.name``, or one that follows from congestion control or traffic."""
    stations: int
    """Number of stations."""
    flows: int
    """Number of connections over all runs."""
    mean: GroupFigures
    """Means over runs."""
    ci95: GroupFigures | None
    """Half widths of their 95% confidence intervals; None with one run."""
    limits: Limits
    """Shares of the connections' lifetimes, by the limit of the sender."""
    round_trip: RadioDelays
    """Delays in the radio access as shares of the mean round-trip time."""
    verdict: str
    """The largest limit, in words."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of all runs of a scenario."""

    scenario: str
    """Name of the scenario."""
    scheme: str
    """Scheme of the ACK filter."""
    stations: int
    """Number of stations."""
    measured_s: float
    """Length of the measured interval of a run, seconds."""
    mean: Totals
    """Means over seeds."""
    ci95: Totals | None
    """Half widths of the 95% confidence intervals of the means (Student's t); None with one seed."""
    groups: tuple[Group, ...]
    """Groups of stations with connections: why their TCP is not faster."""
    version: str
    """Version of Paceline."""
    commit: str
    """Commit from which it was built."""

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Reads the text of ``summary.json``."""
        value: dict[str, Any] = json.loads(text)
        return cls(
            scenario=value["scenario"],
            scheme=value["scheme"],
            stations=value["stations"],
            measured_s=value["measured_s"],
            mean=_read(Totals, value["mean"]),
            ci95=_read(Totals, value["ci95"]) if value["ci95"] else None,
            groups=tuple(_group(group) for group in value["groups"]),
            version=value["paceline"]["version"],
            commit=value["paceline"]["commit"],
        )


_Figures = TypeVar("_Figures", Totals, GroupFigures, Limits, RadioDelays)


def _read(kind: type[_Figures], value: dict[str, Any]) -> _Figures:
    """The figures of a JSON object; NaN for null."""
    figures = {field.name: value[field.name] for field in fields(kind)}
    return kind(**{name: float("nan") if figure is None else figure for name, figure in figures.items()})


def _group(value: dict[str, Any]) -> Group:
    return Group(
        group=value["group"],
        name=value["name"],
        stations=value["stations"],
        flows=value["flows"],
        mean=_read(GroupFigures, value),
        ci95=_read(GroupFigures, value["ci95"]) if value["ci95"] else None,
        limits=_read(Limits, value["limits"]),
        round_trip=_read(RadioDelays, value["round_trip"]),
        verdict=value["verdict"],
    )

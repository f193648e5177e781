#!/bin/sh
# Prints a SHA-256 of the results of short runs, one line each; those of a cell with the leads of the default
# base station and without (`gnb = "ideal"`). Equal digests show that a change that
# only renames or moves code left every figure as it was:
#
#     scripts/digest.sh target/release/paceline > before
#     (change, build)
#     scripts/digest.sh target/release/paceline | diff before -
#
# The program's commit and the names of groups of stations are not part of the digests.
set -eu
paceline=${1:?usage: $0 PROGRAM}

digest() {
    label=$1
    shift
    figures=$("$paceline" run "$@" --seeds 2 --json)
    figures=$(printf '%s' "$figures" | sed '/"commit"/d; /"name"/d')
    printf '%s  %s\n' "$(printf '%s' "$figures" | sha256sum | cut -c 1-16)" "$label"
}

cell() {
    label=$1
    shift
    digest "$label" "$@"
    digest "$label, ideal" "$@" --set cell.gnb=ideal
}

short="--set run.duration=5s --set run.warmup=1s"
# shellcheck disable=SC2086
{
    cell "uplink-limited, basic" uplink-limited $short --set ack_filter.scheme=basic
    cell "uplink-limited, hybrid-opt, RLC AM" uplink-limited $short --set ack_filter.scheme=hybrid-opt --set cell.rlc=am
    cell "uplink-limited, safe" uplink-limited $short --set ack_filter.scheme=safe
    cell "single-station, BBR" single-station $short --set tcp.congestion_control=bbr
    cell "single-station, accelerator" single-station $short --set core.proxy=accelerator
    digest "ack-filter-paper" ack-filter-paper $short --set ack_filter.scheme='hybrid(6)'
    digest "ack-filter-paper, random access" ack-filter-paper $short --set cell.initial_access=true --set station.count=20
    digest "three cells of seven sites" ack-filter-paper $short --set deployment.model=umi-38901 --set deployment.fading=etu
    cell "parity-cell, Prague" parity-cell $short --set tcp.congestion_control=prague
    digest "parity-fixed, BBRv3" parity-fixed $short --set tcp.congestion_control=bbr3
    digest "parity-loss, Illinois" parity-loss $short --set tcp.congestion_control=illinois
    digest "accelerator-3g, paper" accelerator-3g $short --set core.proxy=accelerator
    digest "accelerator-lte, adaptive" accelerator-lte $short --set core.proxy=accelerator --set accelerator.profile=adaptive
    digest "accelerator-trace, adaptive" accelerator-trace $short --set core.proxy=accelerator
    digest "accelerator-trace, split TCP" accelerator-trace $short --set core.proxy=split-tcp
    digest "accelerator-trace, UDP" accelerator-trace $short --set station.traffic=udp --set "station.udp_rate=5 Mb/s"
}

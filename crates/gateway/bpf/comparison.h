// Measures the retransmissions of servers, for two groups of connections: one whose ACKs are not filtered,
// and one of the same size whose ACKs are (holdout.h). The control plane reads the sums and draws new groups
// every period.

#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "datagram.h"
#include "holdout.h"

#define RTO_MIN_NS 200000000ULL // least retransmission timeout of Linux (TCP_RTO_MIN, 200 ms)
// Bytes below the highest sequence number up to which data count as a retransmission. Chosen: 16 MiB, more
// than a sender has in flight; a larger step back is another connection.
#define MAX_STEP_BACK (1 << 24)

struct progress {
	__u32 end; // highest sequence number of the server's data
	__u32 unused;
	__u64 at_ns; // kernel clock of the last data
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct holdout);
} holdouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct traffic);
} compared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct connection);
	__type(value, struct progress);
} progress SEC(".maps");

// Counts a server's segment of a connection whose ACKs may be filtered.
static __always_inline void compare(const struct segment *segment)
{
	__u32 zero = 0, end = segment->seq + segment->payload, group;
	struct holdout *holdout = bpf_map_lookup_elem(&holdouts, &zero);
	struct progress *last, now = { .end = end };
	struct traffic *traffic;
	__s32 behind;

	if (!holdout || !holdout->share)
		return;
	if (segment->flags & TCP_SYN)
		bpf_map_delete_elem(&progress, &segment->connection);
	// A data offset past the datagram's end makes the payload length wrap round.
	if (!segment->payload || segment->payload > 0xffff || (segment->flags & TCP_SYN))
		return;
	group = group_of(&segment->connection, holdout);
	traffic = bpf_map_lookup_elem(&compared, &group);
	if (!traffic)
		return;
	now.at_ns = bpf_ktime_get_ns();
	last = bpf_map_lookup_elem(&progress, &segment->connection);
	if (!last) {
		bpf_map_update_elem(&progress, &segment->connection, &now, BPF_ANY);
		return;
	}
	behind = (__s32)(last->end - segment->seq);
	if (behind > MAX_STEP_BACK) {
		*last = now;
		return;
	}
	traffic->bytes += segment->payload;
	if (behind > 0) {
		traffic->retransmitted += behind < (__s32)segment->payload ? behind : segment->payload;
		traffic->timeouts += now.at_ns - last->at_ns > RTO_MIN_NS;
	}
	if ((__s32)(end - last->end) > 0)
		last->end = end;
	last->at_ns = now.at_ns;
}

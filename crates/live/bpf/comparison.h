// Connections whose acknowledgments are not filtered, beside as many whose are: what their servers send, and send again.
// Which are which is dealt anew every period by a salt; `Holdout` in the ACK filter deals the same.

#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "datagram.h"

#define SILENCE_NS 200000000ULL // the least retransmission timeout of Linux
#define MOST_BEHIND (1 << 24) // bytes; what is further behind is no repetition

// The layouts below are those of steering.rs.

struct holdout {
	__u32 salt;
	__u32 share; // of 65536, of each group
};

enum group { HELD_OUT, MATCHED, GROUPS };

struct traffic {
	__u64 bytes; // of payload
	__u64 repeated; // of them, below what was the highest number
	__u64 timeouts; // times that something came again after a silence
};

struct progress {
	__u32 end; // highest sequence number
	__u32 unused;
	__u64 at; // kernel clock of the last data
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

static __always_inline __u32 group_of(const struct connection *c, const struct holdout *holdout)
{
	__u32 hash = holdout->salt;

	for (int i = 0; i < 9; i++) {
		__u32 word = i < 4 ? bpf_ntohl(c->server.words[i]) : i < 8 ? bpf_ntohl(c->mobile.words[i - 4]) :
			     (__u32)bpf_ntohs(c->server_port) << 16 | bpf_ntohs(c->mobile_port);

		hash ^= word;
		hash *= 0x9e3779b1;
		hash ^= hash >> 15;
	}
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash >>= 16;
	return hash < holdout->share ? HELD_OUT : hash < 2 * holdout->share ? MATCHED : GROUPS;
}

// A server's segment for a connection whose acknowledgments may be filtered.
static __always_inline void compare(const struct seen *seen)
{
	__u32 zero = 0, end = seen->seq + seen->payload, group;
	struct holdout *holdout = bpf_map_lookup_elem(&holdouts, &zero);
	struct progress *last, now = { .end = end };
	struct traffic *traffic;
	__s32 behind;

	if (!holdout || !holdout->share)
		return;
	if (seen->flags & TCP_SYN)
		bpf_map_delete_elem(&progress, &seen->connection);
	// A data offset past the datagram's end makes the difference of the two wrap round.
	if (!seen->payload || seen->payload > 0xffff || (seen->flags & TCP_SYN))
		return;
	group = group_of(&seen->connection, holdout);
	traffic = bpf_map_lookup_elem(&compared, &group);
	if (!traffic)
		return;
	now.at = bpf_ktime_get_ns();
	last = bpf_map_lookup_elem(&progress, &seen->connection);
	if (!last) {
		bpf_map_update_elem(&progress, &seen->connection, &now, BPF_ANY);
		return;
	}
	behind = (__s32)(last->end - seen->seq);
	if (behind > MOST_BEHIND) {
		*last = now; // of another connection, or of one that was not looked at for long
		return;
	}
	traffic->bytes += seen->payload;
	if (behind > 0) {
		traffic->repeated += behind < (__s32)seen->payload ? behind : seen->payload;
		traffic->timeouts += now.at - last->at > SILENCE_NS;
	}
	if ((__s32)(end - last->end) > 0)
		last->end = end;
	last->at = now.at;
}

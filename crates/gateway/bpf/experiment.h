// The arm of a device in an experiment. Equal to `Assignment::arm` of
// crates/experiment/src/assignment.rs; crates/gateway/tests/experiment.rs compares the two.
//
// The including file provides bpf_ntohl and __always_inline (libbpf's headers, or a host's).

#pragma once

#include "shared.h"

// Whether new connections of the device are left to the kernel.
static __always_inline int is_untouched(const struct address *mobile, const struct experiment *experiment)
{
	int v4 = !mobile->words[0] && !mobile->words[1] && bpf_ntohl(mobile->words[2]) == 0xffff;
	__u32 hash = experiment->seed;

	for (int i = 0; i < 2; i++) {
		hash ^= bpf_ntohl(mobile->words[v4 ? i + 2 : i]);
		hash *= 0x9e3779b1;
		hash ^= hash >> 15;
	}
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	return hash >> 16 >= experiment->share;
}

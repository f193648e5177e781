// The group of a connection in the comparison of filtered and unfiltered ACKs. Equal to `Holdout::group` of
// crates/pep/src/ack_filter/holdout.rs; crates/gateway/tests/holdout.rs compares the two.
//
// The including file provides bpf_ntohl, bpf_ntohs and __always_inline (libbpf's headers, or a host's).

#pragma once

#include "shared.h"

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

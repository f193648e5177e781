// Lowers the maximum segment size that a SYN announces (RFC 9293, section 3.7.1; RFC 6691). The Rust form is
// mss.rs of the crate `net`, for packets that a worker gets.
//
// The TCP checksum is updated by the difference (RFC 1624), unless a device completes it (CHECKSUM_PARTIAL):
// then the field has the sum of the pseudo header. The sum over a segment and its checksum does not change,
// and so neither does the UDP checksum of a tunnel around it.

#pragma once

#include "datagram.h"

#define TCP_HEADER 20
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define ETHERNET_HEADER 14
#define MOST_OPTIONS 40 // bytes of options (RFC 9293, section 3.1)

// Overwrites bytes of the packet, `at` counted from its network header. A network header at byte 14 follows
// an Ethernet header, one at byte 0 is that of an interface without link headers. `was`: the first bytes that
// are overwritten, by which the two are told apart.
#ifndef STORE
static __always_inline void store(struct __sk_buff *skb, __u32 at, const __u8 *was, const __u8 *from, __u32 len)
{
	__u8 there[TCP_HEADER];

	for (__u32 link = ETHERNET_HEADER;; link = 0) {
		if (bpf_skb_load_bytes(skb, link + at, there, sizeof(there)) == 0) {
			__u32 differs = 0;

			for (int i = 0; i < TCP_HEADER; i++)
				differs |= there[i] ^ was[i];
			if (!differs) {
				bpf_skb_store_bytes(skb, link + at, from, len, 0);
				return;
			}
		}
		if (!link)
			return;
	}
}
#define STORE(skb, at, was, from, len) store(skb, at, was, from, len)
#endif

static __always_inline __u16 fold_sum(__u64 sum)
{
	for (int i = 0; i < 4; i++)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

// The sum of a segment's pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1).
static __always_inline __u64 pseudo_sum(const struct segment *segment, __u32 len)
{
	const struct connection *c = &segment->connection;
	__u64 sum = bpf_htonl(len) + (__u64)bpf_htonl(IPPROTO_TCP4);

	// The words of a mapped IPv4 address are no part of it.
	for (int i = segment->version == 4 ? 3 : 0; i < 4; i++)
		sum += (__u64)c->server.words[i] + c->mobile.words[i];
	return sum;
}

// The highest segment size that a connection may announce; 0: any.
static __always_inline __u32 highest_mss(const struct settings *s, const struct segment *segment)
{
	__u32 headers = TCP_HEADER + (segment->version == 4 ? sizeof(struct ipv4) : sizeof(struct ipv6));

	if (s->clamp_mss)
		return s->clamp_mss - (headers - TCP_HEADER - sizeof(struct ipv4));
	headers += segment->overhead;
	return s->clamp_mtu > headers ? s->clamp_mtu - headers : 0;
}

// The header of a SYN while its options are read.
struct syn {
	__u8 header[64];
	__u64 sum; // of the changes (RFC 1624)
	__u32 at, len; // byte offset of the next option; bytes of the header
	__u32 most, changed;
};

// Lowers the segment size if the next option has it; 1 behind the last one.
static long read_option(__u32 index, struct syn *syn)
{
	__u8 *header = syn->header;
	__u32 at = syn->at, most = syn->most;
	__u32 kind = header[at & 63], size = header[(at + 1) & 63];
	__u16 value = header[(at + 2) & 63] << 8 | header[(at + 3) & 63], old;

	if (at + 4 > syn->len || kind == TCP_OPTION_END)
		return 1;
	if (kind == TCP_OPTION_NOP) {
		syn->at = at + 1;
		return 0;
	}
	if (!size || at + size > syn->len)
		return 1;
	if (kind == TCP_OPTION_MSS && size == 4 && value > most) {
		// A value at an odd offset is in two words, with its bytes exchanged.
		old = at & 1 ? value << 8 | value >> 8 : value;
		value = at & 1 ? most << 8 | most >> 8 : most;
		syn->sum += (__u16)~bpf_htons(old) + (__u64)bpf_htons(value);
		header[(at + 2) & 63] = most >> 8;
		header[(at + 3) & 63] = most;
		syn->changed = 1;
	}
	syn->at = at + size;
	return 0;
}

// Lowers the segment size of a SYN to `most`; 1 if the packet was changed.
VERIFIED_ONCE int clamp_mss(struct __sk_buff *skb, struct segment *segment, __u32 most)
{
	struct syn syn = { .most = most, .at = TCP_HEADER };
	__u32 len, complete = 1;
	__u8 was[TCP_HEADER];
	__u16 field;
	__u64 sum;

	if (!most || !segment || LOAD(skb, AT_LINK, segment->tcp_at, syn.header, TCP_HEADER) < 0)
		return 0;
	syn.len = len = (syn.header[12] >> 4) * 4;
	if (len < TCP_HEADER + 4 || len > 60 || LOAD(skb, AT_LINK, segment->tcp_at, syn.header, len) < 0)
		return 0;
	__builtin_memcpy(was, syn.header, sizeof(was));
	__builtin_memcpy(&field, syn.header + 16, 2);
	sum = pseudo_sum(segment, segment->payload + len);
	if (field == fold_sum(sum)) {
		// The sum of the pseudo header may be a right checksum by chance.
		for (int i = 0; i < 60; i += 2)
			sum += *(__u16 *)(syn.header + i);
		complete = !segment->payload && fold_sum(sum) == 0xffff;
	}
	syn.sum = (__u16)~field;
	bpf_loop(MOST_OPTIONS, read_option, &syn, 0);
	if (!syn.changed)
		return 0;
	if (complete) {
		field = ~fold_sum(syn.sum);
		__builtin_memcpy(syn.header + 16, &field, 2);
	}
	STORE(skb, segment->tcp_at, was, syn.header, len);
	return 1;
}

// Parses a packet: an unfragmented TCP datagram without IP options or extension headers, in up to two VLAN
// tags; a packet-too-big message about one (ICMP type 3 code 4, RFC 1191; ICMPv6 type 2, RFC 4443); or
// anything else.

#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_URG 0x20

enum packet_kind { OTHER, SEGMENT, TOO_BIG };

struct ipv4 {
	__u8 version_ihl, traffic_class;
	__be16 len, id, fragment;
	__u8 ttl, protocol;
	__be16 checksum;
	__be32 src, dst;
};

struct ipv6 {
	__be32 first;
	__be16 len;
	__u8 next, hop_limit;
	struct address src, dst;
};

struct tcp {
	__be16 ports[2];
	__be32 seq, ack;
	__u8 offset, flags;
	__be16 window;
};

struct segment {
	struct connection connection;
	__u32 seq, ack; // host byte order
	__u32 payload; // bytes
	__u8 flags;
};

// Copies bytes of the packet, `at` counted from its network header; fails if the packet is shorter.
#define LOAD(skb, at, to, len) bpf_skb_load_bytes_relative(skb, at, to, len, BPF_HDR_START_NET)

static __always_inline void map_ipv4(struct address *address, __be32 v4)
{
	address->words[0] = address->words[1] = 0;
	address->words[2] = bpf_htonl(0xffff);
	address->words[3] = v4;
}

// Fills in a connection from the addresses and ports of a packet; `upwards`: it travels towards the server.
static __always_inline void set_connection(struct connection *c, int upwards, const struct address *src,
				 const struct address *dst, const __be16 *ports)
{
	for (int i = 0; i < 4; i++) {
		c->server.words[i] = upwards ? dst->words[i] : src->words[i];
		c->mobile.words[i] = upwards ? src->words[i] : dst->words[i];
	}
	c->server_port = upwards ? ports[1] : ports[0];
	c->mobile_port = upwards ? ports[0] : ports[1];
}

// Parses a TCP datagram at `at`. `quoted`: it is the quotation inside an ICMP message, of which only the
// addresses and ports are sure to be there.
static __always_inline int read_tcp(struct __sk_buff *skb, __u32 at, int v6, int upwards, int quoted,
				    struct segment *segment)
{
	struct tcp tcp = {};
	struct address src, dst;
	__u32 len;

	if (v6) {
		struct ipv6 ip;

		if (LOAD(skb, at, &ip, sizeof(ip)) < 0 || ip.next != 6)
			return -1;
		src = ip.src;
		dst = ip.dst;
		len = bpf_ntohs(ip.len);
		at += sizeof(ip);
	} else {
		struct ipv4 ip;

		if (LOAD(skb, at, &ip, sizeof(ip)) < 0 || ip.version_ihl != 0x45 || ip.protocol != 6)
			return -1;
		if (ip.fragment & bpf_htons(0x3fff))
			return -1;
		map_ipv4(&src, ip.src);
		map_ipv4(&dst, ip.dst);
		len = bpf_ntohs(ip.len) - sizeof(ip);
		at += sizeof(ip);
	}
	if (LOAD(skb, at, &tcp, quoted ? 8 : sizeof(tcp)) < 0)
		return -1;
	if (!quoted && tcp.offset < 0x50)
		return -1;
	set_connection(&segment->connection, upwards, &src, &dst, tcp.ports);
	segment->seq = bpf_ntohl(tcp.seq);
	segment->ack = bpf_ntohl(tcp.ack);
	segment->flags = tcp.flags;
	segment->payload = len - (__u32)(tcp.offset >> 4) * 4;
	return 0;
}

// Classifies a packet, and fills in its connection and segment. An ICMP message travels against the datagram
// that it quotes.
static __always_inline enum packet_kind classify(struct __sk_buff *skb, int upwards, struct segment *segment)
{
	__u32 at = 0;
	__be16 protocol = skb->protocol;
	__u8 head[8];

	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
		// The kernel has removed the outer tag; this is an inner one.
		if (LOAD(skb, 2, &protocol, 2) < 0)
			return OTHER;
		at = 4;
	}
	if (protocol == bpf_htons(ETH_P_IP)) {
		if (LOAD(skb, at, head, 1) < 0 || head[0] != 0x45 || LOAD(skb, at + 9, head, 1) < 0)
			return OTHER;
		if (head[0] == 6)
			return read_tcp(skb, at, 0, upwards, 0, segment) ? OTHER : SEGMENT;
		if (head[0] != 1 || LOAD(skb, at + 20, head, 2) < 0 || head[0] != 3 || head[1] != 4)
			return OTHER;
		return read_tcp(skb, at + 28, 0, !upwards, 1, segment) ? OTHER : TOO_BIG;
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		if (LOAD(skb, at, head, 1) < 0 || head[0] >> 4 != 6 || LOAD(skb, at + 6, head, 1) < 0)
			return OTHER;
		if (head[0] == 6)
			return read_tcp(skb, at, 1, upwards, 0, segment) ? OTHER : SEGMENT;
		if (head[0] != 58 || LOAD(skb, at + 40, head, 2) < 0 || head[0] != 2 || head[1] != 0)
			return OTHER;
		return read_tcp(skb, at + 48, 1, !upwards, 1, segment) ? OTHER : TOO_BIG;
	}
	return OTHER;
}

// What a packet is, as far as the gateway cares: a whole, plain TCP datagram in up to two VLAN tags, a packet-too-big
// message about one, or something else.

#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_URG 0x20

struct address {
	__be32 words[4]; // IPv4 as ::ffff:a.b.c.d
};

struct connection {
	struct address server;
	struct address mobile;
	__be16 server_port;
	__be16 mobile_port;
};

enum kind { OTHER, SEGMENT, TOO_BIG };

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

struct seen {
	struct connection connection;
	__u32 seq, ack;
	__u32 payload; // bytes
	__u8 flags;
};

// Nothing may be read past the end of what the packet has.
#define LOAD(skb, at, to, len) bpf_skb_load_bytes_relative(skb, at, to, len, BPF_HDR_START_NET)

static __always_inline void mapped(struct address *address, __be32 v4)
{
	address->words[0] = address->words[1] = 0;
	address->words[2] = bpf_htonl(0xffff);
	address->words[3] = v4;
}

static __always_inline void turn(struct connection *c, int upwards, const struct address *src,
				 const struct address *dst, const __be16 *ports)
{
	for (int i = 0; i < 4; i++) {
		c->server.words[i] = upwards ? dst->words[i] : src->words[i];
		c->mobile.words[i] = upwards ? src->words[i] : dst->words[i];
	}
	c->server_port = upwards ? ports[1] : ports[0];
	c->mobile_port = upwards ? ports[0] : ports[1];
}

// A datagram at `at`: TCP, or, with `quoted`, the beginning of one inside an ICMP message, which went the other way.
static __always_inline int read_tcp(struct __sk_buff *skb, __u32 at, int v6, int upwards, int quoted,
				    struct seen *seen)
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
		mapped(&src, ip.src);
		mapped(&dst, ip.dst);
		len = bpf_ntohs(ip.len) - sizeof(ip);
		at += sizeof(ip);
	}
	if (LOAD(skb, at, &tcp, quoted ? 8 : sizeof(tcp)) < 0)
		return -1;
	if (!quoted && tcp.offset < 0x50)
		return -1;
	turn(&seen->connection, upwards, &src, &dst, tcp.ports);
	seen->seq = bpf_ntohl(tcp.seq);
	seen->ack = bpf_ntohl(tcp.ack);
	seen->flags = tcp.flags;
	seen->payload = len - (__u32)(tcp.offset >> 4) * 4;
	return 0;
}

// What the packet is, and in `seen` the connection that it belongs to.
static __always_inline enum kind classify(struct __sk_buff *skb, int upwards, struct seen *seen)
{
	__u32 at = 0;
	__be16 protocol = skb->protocol;
	__u8 head[8];

	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
		// The outer tag is beside the packet; this is an inner one.
		if (LOAD(skb, 2, &protocol, 2) < 0)
			return OTHER;
		at = 4;
	}
	if (protocol == bpf_htons(ETH_P_IP)) {
		if (LOAD(skb, at, head, 1) < 0 || head[0] != 0x45 || LOAD(skb, at + 9, head, 1) < 0)
			return OTHER;
		if (head[0] == 6)
			return read_tcp(skb, at, 0, upwards, 0, seen) ? OTHER : SEGMENT;
		if (head[0] != 1 || LOAD(skb, at + 20, head, 2) < 0 || head[0] != 3 || head[1] != 4)
			return OTHER;
		return read_tcp(skb, at + 28, 0, !upwards, 1, seen) ? OTHER : TOO_BIG;
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		if (LOAD(skb, at + 6, head, 1) < 0)
			return OTHER;
		if (head[0] == 6)
			return read_tcp(skb, at, 1, upwards, 0, seen) ? OTHER : SEGMENT;
		if (head[0] != 58 || LOAD(skb, at + 40, head, 2) < 0 || head[0] != 2 || head[1] != 0)
			return OTHER;
		return read_tcp(skb, at + 48, 1, !upwards, 1, seen) ? OTHER : TOO_BIG;
	}
	return OTHER;
}

// Parses a packet: a TCP datagram, also behind IP options and IPv6 extension headers, in up to two VLAN
// tags, and in a PPPoE session (RFC 2516) or a GTP-U tunnel (TS 29.281); a fragment of one; a packet-too-big
// message about a plain one (ICMP type 3 code 4, RFC 1191; ICMPv6 type 2, RFC 4443); or anything else. The
// Rust form is wire.rs and fragments.rs of the crate `net`, and tunnel.rs of the gateway.

#pragma once

#include <linux/bpf.h>
#ifdef __bpf__ // a test compiles this file for the host
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#endif

#include "shared.h"

#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_PPPOE_SESSION 0x8864
#define PPP_IPV4 0x0021
#define PPP_IPV6 0x0057

#define IPPROTO_HOP_BY_HOP 0
#define IPPROTO_ICMP4 1
#define IPPROTO_TCP4 6
#define IPPROTO_UDP4 17
#define IPPROTO_ROUTING_HEADER 43
#define IPPROTO_FRAGMENT_HEADER 44
#define IPPROTO_ICMP6 58
#define IPPROTO_DESTINATION 60

#define MORE_FRAGMENTS 0x2000 // IPv4: of the field `fragment`
#define FRAGMENT_OFFSET 0x1fff
#define MAX_EXTENSIONS 8 // extension headers that are read; as in headers.rs of the crate `net`

#define GTPU_PORT 2152
#define GTPU_VERSION 0x30 // version 1, protocol type GTP
#define GTPU_G_PDU 255
#define GTPU_OPTIONAL 7 // flags: extension header, sequence number, N-PDU number
#define GTPU_EXTENSION 4
#define MAX_GTPU_EXTENSIONS 4 // extension headers that are read; as MAX_EXTENSIONS in tunnel.rs
// Bytes of UDP's and GTP-U's mandatory headers, of GTP-U's optional fields, and of the shortest extension
// header. The other direction may have an extension header where this one has none; as in tunnel.rs.
#define GTPU_MIN_OVERHEAD (8 + 8 + 4 + 4)

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_URG 0x20

// FIRST: the fragment with the TCP header; LATER: another fragment, without ports.
enum packet_kind { OTHER, SEGMENT, TOO_BIG, FIRST, LATER };

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
	__u32 payload; // bytes; of a fragment all its data
	__u32 identification; // of a fragment's datagram
	__u8 flags;
	__u8 tunnelled; // in a GTP-U tunnel or a PPPoE session
	__u8 version; // of IP
	__u16 tcp_at; // byte offset of the TCP header, from the network header on
	__u16 overhead; // bytes of the MTU that an encapsulation takes
};

// The network header, behind which the transport header is.
struct network {
	struct address src, dst;
	__u32 at; // byte offset of the transport header, or of a fragment's data
	__u32 len; // bytes of the datagram from there on
	__u32 identification;
	__u32 overhead; // bytes of encapsulation ahead of it
	__u8 protocol;
	__u8 is_fragment, is_later; // a fragment; one that is not the first
};

// A function with external linkage is verified once, not again at each call (Linux: "Function by function
// verification"). Pointers that it gets are checked for NULL, and what they point to has no uninitialized
// bytes.
#ifdef __bpf__
#define VERIFIED_ONCE __attribute__((noinline))
#else
#define VERIFIED_ONCE static
#endif

// Where a packet's bytes begin: at a packet socket with the network header, and they may be in the pages of
// the driver beyond the linear part (skb_header_pointer); at a TCX hook with the link header, and they have
// been pulled into the linear part.
enum start { AT_LINK, AT_NETWORK };

// Copies bytes of the packet, `at` counted from its network header; fails if the packet is shorter.
#ifndef LOAD
static __always_inline int load(struct __sk_buff *skb, enum start start, __u32 at, void *to, __u32 len)
{
	if (start == AT_NETWORK)
		return bpf_skb_load_bytes(skb, at, to, len);
	return bpf_skb_load_bytes_relative(skb, at, to, len, BPF_HDR_START_NET);
}
#define LOAD(skb, start, at, to, len) load(skb, start, at, to, len)
#endif

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

VERIFIED_ONCE int read_ipv4(struct __sk_buff *skb, enum start start, __u32 at, struct network *network)
{
	struct ipv4 ip;
	__u32 header;
	__u16 fragment;

	if (!network || LOAD(skb, start, at, &ip, sizeof(ip)) < 0)
		return -1;
	header = (ip.version_ihl & 15) * 4;
	if (ip.version_ihl >> 4 != 4 || header < sizeof(ip) || bpf_ntohs(ip.len) < header)
		return -1;
	map_ipv4(&network->src, ip.src);
	map_ipv4(&network->dst, ip.dst);
	fragment = bpf_ntohs(ip.fragment);
	network->at = at + header;
	network->len = bpf_ntohs(ip.len) - header;
	network->identification = bpf_ntohs(ip.id);
	network->protocol = ip.protocol;
	network->is_fragment = (fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET)) != 0;
	network->is_later = (fragment & FRAGMENT_OFFSET) != 0;
	return 0;
}

VERIFIED_ONCE int read_ipv6(struct __sk_buff *skb, enum start start, __u32 at, struct network *network)
{
	__u32 end, next;
	struct ipv6 ip;
	__u8 head[8];

	if (!network || LOAD(skb, start, at, &ip, sizeof(ip)) < 0 || bpf_ntohl(ip.first) >> 28 != 6)
		return -1;
	network->src = ip.src;
	network->dst = ip.dst;
	network->identification = 0;
	network->protocol = ip.next;
	network->is_fragment = network->is_later = 0;
	at += sizeof(ip);
	end = at + bpf_ntohs(ip.len);
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (network->protocol != IPPROTO_HOP_BY_HOP && network->protocol != IPPROTO_ROUTING_HEADER &&
		    network->protocol != IPPROTO_DESTINATION && network->protocol != IPPROTO_FRAGMENT_HEADER)
			break;
		if (LOAD(skb, start, at, head, sizeof(head)) < 0)
			return -1;
		next = at + 8;
		if (network->protocol == IPPROTO_FRAGMENT_HEADER) {
			network->is_later = head[2] || head[3] & 0xf8;
			network->is_fragment = network->is_later || head[3] & 1;
			network->identification = (__u32)head[4] << 24 | head[5] << 16 | head[6] << 8 | head[7];
		} else {
			next += head[1] * 8;
		}
		network->protocol = head[0];
		at = next;
		if (network->is_later)
			break; // data follow, no header
	}
	network->at = at;
	network->len = end - at;
	return end < at ? -1 : 0;
}

// Fills in a segment from the TCP header behind a network header. `quoted`: it is the quotation inside an
// ICMP message, of which only the ports and the sequence number are sure to be there.
static __always_inline int read_tcp(struct __sk_buff *skb, enum start start, const struct network *network, int upwards, int quoted,
				    struct segment *segment)
{
	struct tcp tcp = {};
	__u32 wanted = quoted ? 8 : sizeof(tcp);

	if (LOAD(skb, start, network->at, &tcp, wanted) < 0)
		return -1;
	if (!quoted && tcp.offset < 0x50)
		return -1;
	set_connection(&segment->connection, upwards, &network->src, &network->dst, tcp.ports);
	segment->seq = bpf_ntohl(tcp.seq);
	segment->ack = bpf_ntohl(tcp.ack);
	segment->flags = tcp.flags;
	segment->tcp_at = network->at;
	segment->overhead = network->overhead;
	segment->payload = network->len - (__u32)(tcp.offset >> 4) * 4;
	return 0;
}

// Fills in the connection of a fragment: the addresses, and the ports if it is the first one.
static __always_inline enum packet_kind read_fragment(struct __sk_buff *skb, enum start start, const struct network *network,
						      int upwards, struct segment *segment)
{
	__be16 ports[2] = {};

	if (!network->is_later && LOAD(skb, start, network->at, ports, sizeof(ports)) < 0)
		return OTHER;
	set_connection(&segment->connection, upwards, &network->src, &network->dst, ports);
	segment->identification = network->identification;
	segment->payload = network->len;
	return network->is_later ? LATER : FIRST;
}

// The byte offset of the datagram in a G-PDU whose UDP header is at `at`; 0 if it is none, or if the UDP
// datagram has another length: it may be several of them that the kernel has merged (GRO).
VERIFIED_ONCE __u32 inside_gtpu(struct __sk_buff *skb, enum start start, __u32 at)
{
	__u8 head[16], next, len;

	if (LOAD(skb, start, at, head, sizeof(head)) < 0 || (head[2] << 8 | head[3]) != GTPU_PORT ||
	    (head[8] & 0xf0) != GTPU_VERSION || head[9] != GTPU_G_PDU ||
	    (head[4] << 8 | head[5]) != (head[10] << 8 | head[11]) + (int)sizeof(head))
		return 0;
	at += sizeof(head);
	if (!(head[8] & GTPU_OPTIONAL))
		return at;
	if (LOAD(skb, start, at + 3, &next, 1) < 0)
		return 0;
	at += 4;
	if (!(head[8] & GTPU_EXTENSION))
		return at;
	for (int i = 0; i < MAX_GTPU_EXTENSIONS && next; i++) {
		if (LOAD(skb, start, at, &len, 1) < 0 || !len)
			return 0;
		at += 4 * (__u32)len;
		if (LOAD(skb, start, at - 1, &next, 1) < 0)
			return 0;
	}
	return next ? 0 : at;
}

// Reads the network header of this EtherType, and that inside a tunnel. `at` becomes its byte offset.
static __always_inline int read_network(struct __sk_buff *skb, enum start start, __be16 protocol, __u32 *at, struct network *network,
					__u8 *tunnelled)
{
	__u32 inner;
	__u8 first;

	if (protocol == bpf_htons(ETH_P_IP) ? read_ipv4(skb, start, *at, network) :
					      protocol != bpf_htons(ETH_P_IPV6) || read_ipv6(skb, start, *at, network))
		return -1;
	network->overhead = *at;
	if (network->protocol != IPPROTO_UDP4 || network->is_fragment || *tunnelled)
		return 0;
	// Outer options and extension headers are not understood by the workers.
	if (network->at != *at + (protocol == bpf_htons(ETH_P_IP) ? sizeof(struct ipv4) : sizeof(struct ipv6)))
		return 0;
	inner = inside_gtpu(skb, start, network->at);
	if (!inner)
		return 0;
	*tunnelled = 1;
	*at = inner;
	network->overhead = network->at + GTPU_MIN_OVERHEAD;
	if (network->overhead < inner)
		network->overhead = inner;
	if (LOAD(skb, start, inner, &first, 1) < 0)
		return -1;
	return first >> 4 == 4 ? read_ipv4(skb, start, inner, network) : read_ipv6(skb, start, inner, network);
}

// Classifies a packet, and fills in its connection and segment. An ICMP message travels against the datagram
// that it quotes.
VERIFIED_ONCE int classify(struct __sk_buff *skb, enum start start, int upwards, struct segment *segment)
{
	__u32 at = 0;
	__be16 protocol = skb->protocol;
	struct network network = {};
	int quoted = 0;
	__u8 head[2];

	if (!segment)
		return OTHER;
	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
		// The kernel has removed the outer tag; this is an inner one.
		if (LOAD(skb, start, 2, &protocol, 2) < 0)
			return OTHER;
		at = 4;
	}
	if (protocol == bpf_htons(ETH_P_PPPOE_SESSION)) {
		__u8 pppoe[8];

		if (LOAD(skb, start, at, pppoe, sizeof(pppoe)) < 0 || pppoe[0] != 0x11 || pppoe[1] || pppoe[6])
			return OTHER;
		protocol = pppoe[7] == PPP_IPV4 ? bpf_htons(ETH_P_IP) : pppoe[7] == PPP_IPV6 ? bpf_htons(ETH_P_IPV6) : 0;
		at += sizeof(pppoe);
		segment->tunnelled = 1;
	}
	if (read_network(skb, start, protocol, &at, &network, &segment->tunnelled))
		return OTHER;
	if (LOAD(skb, start, at, head, 1) < 0)
		return OTHER;
	segment->version = head[0] >> 4;
	if (segment->version == 4) {
		if (network.protocol == IPPROTO_ICMP4 && network.at == at + sizeof(struct ipv4) && !network.is_fragment) {
			if (LOAD(skb, start, network.at, head, 2) < 0 || head[0] != 3 || head[1] != 4)
				return OTHER;
			quoted = 1;
			if (read_ipv4(skb, start, network.at + 8, &network))
				return OTHER;
		}
	} else {
		if (network.protocol == IPPROTO_ICMP6 && network.at == at + sizeof(struct ipv6)) {
			if (LOAD(skb, start, network.at, head, 2) < 0 || head[0] != 2 || head[1] != 0)
				return OTHER;
			quoted = 1;
			if (read_ipv6(skb, start, network.at + 8, &network))
				return OTHER;
		}
	}
	if (network.protocol != IPPROTO_TCP4)
		return OTHER;
	if (quoted)
		return network.is_later || read_tcp(skb, start, &network, !upwards, 1, segment) ? OTHER : TOO_BIG;
	if (network.is_fragment)
		return read_fragment(skb, start, &network, upwards, segment);
	return read_tcp(skb, start, &network, upwards, 0, segment) ? OTHER : SEGMENT;
}

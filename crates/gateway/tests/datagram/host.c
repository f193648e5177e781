// Runs bpf/datagram.h on the host: reads records of a length and of EtherType and direction (each a __u32 in
// host byte order, the second one of two halves) and the packet's bytes from standard input, writes kind,
// ports of server and device, sequence number, payload bytes, identification, and whether it is in a tunnel,
// of each as a line. Compiled by host.rs.

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define bpf_ntohl ntohl
#define bpf_ntohs ntohs
#define bpf_htonl htonl
#define bpf_htons htons
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static unsigned char datagram[1 << 16];
static unsigned int datagram_len;

// As bpf_skb_load_bytes: fails beyond the end of the packet.
static int load(unsigned int at, void *to, unsigned int len)
{
	if (at > datagram_len || len > datagram_len - at)
		return -1;
	memcpy(to, datagram + at, len);
	return 0;
}

#define LOAD(skb, start, at, to, len) load(at, to, len)
#include "datagram.h"

int main(void)
{
	__u32 head[2];

	while (fread(head, sizeof(head), 1, stdin) == 1) {
		struct __sk_buff skb = {};
		struct segment segment = {};
		enum packet_kind kind;

		datagram_len = head[0];
		if (datagram_len > sizeof(datagram) || fread(datagram, 1, datagram_len, stdin) != datagram_len)
			return 1;
		if (head[1] >> 16)
			skb.protocol = htons(head[1] >> 16);
		else
			skb.protocol = htons(datagram[0] >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6);
		kind = classify(&skb, AT_NETWORK, head[1] & 1, &segment);
		printf("%d %u %u %u %u %u %u\n", kind, ntohs(segment.connection.server_port),
		       ntohs(segment.connection.mobile_port), segment.seq, segment.payload, segment.identification, segment.tunnelled);
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}

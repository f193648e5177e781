// Runs bpf/datagram.h on the host: reads records of a length and a direction (__u32 in host byte order) and
// the datagram's bytes from standard input, writes kind, ports of server and device, sequence number, payload
// bytes and identification of each as a line. Compiled by datagram.rs.

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

// As bpf_skb_load_bytes_relative: fails beyond the end of the packet.
static int load(unsigned int at, void *to, unsigned int len)
{
	if (at > datagram_len || len > datagram_len - at)
		return -1;
	memcpy(to, datagram + at, len);
	return 0;
}

#define LOAD(skb, at, to, len) load(at, to, len)
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
		skb.protocol = htons(datagram[0] >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6);
		kind = classify(&skb, head[1], &segment);
		printf("%d %u %u %u %u %u\n", kind, ntohs(segment.connection.server_port),
		       ntohs(segment.connection.mobile_port), segment.seq, segment.payload, segment.identification);
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}

// Runs bpf/clamp.h on the host: reads records of a length and a highest segment size (__u32 in host byte
// order) and the datagram's bytes from standard input, writes the datagram with the size lowered. Compiled by
// clamp.rs.

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
#define STORE(skb, at, was, from, len) ((void)was, memcpy(datagram + at, from, len))
#define bpf_loop(most, read, context, flags) \
	for (unsigned int n = 0; n < (most) && !read(n, context); n++)
#include "clamp.h"

int main(void)
{
	__u32 head[2];

	while (fread(head, sizeof(head), 1, stdin) == 1) {
		struct __sk_buff skb = {};
		struct segment segment = {};
		struct settings settings = { .clamp_mss = head[1] };

		datagram_len = head[0];
		if (datagram_len > sizeof(datagram) || fread(datagram, 1, datagram_len, stdin) != datagram_len)
			return 1;
		skb.protocol = htons(datagram[0] >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6);
		if (classify(&skb, AT_NETWORK, 0, &segment) == SEGMENT && (segment.flags & TCP_SYN))
			clamp_mss(&skb, &segment, highest_mss(&settings, &segment));
		fwrite(datagram, 1, datagram_len, stdout);
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}

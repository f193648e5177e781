// Map layouts and numbers that the ACK policer's programs share with Rust; the build script translates them.

#pragma once

#include <linux/types.h>

// Reasons, by the numbers of pep's `Reason`.
enum reason {
	NOT_ACK,
	DROPPED,
	WITHIN_LIMIT,
	EXEMPT,
	NOT_PLAIN_IP,
	OPTIONS,
	SACK,
	IP_ECN,
	ECN_ECHO,
	MID_STREAM,
	HANDSHAKE,
	CLOSING,
	OLD_ACK,
	DUPLICATE,
	WINDOW,
	PROBE,
	FIRST_ADVANCE,
	RECOVERY,
	FIRST_SEGMENTS,
	SPARSE,
	THINNED_UPSTREAM,
	MAY_BE_LAST,
	SEGMENT_FLOOR,
	TIME_FLOOR,
	REASONS,
};

// Added to the reason that a program returns in a test run.
#define TEST_REASON 100
// Offsets in struct __sk_buff (linux/bpf.h), for test runs.
#define SK_BUFF_SIZE 192
#define SK_BUFF_TSTAMP 152
#define SK_BUFF_GSO_SIZE 176

enum mode { MODE_SAFE, MODE_PUBLISHED };

enum limit { LIMIT_RATE, LIMIT_SHARE, LIMIT_PER_RTT };

// Policy of one port; written by the loader, may change while the programs run.
struct policy {
	__u64 bytes_per_s; // LIMIT_RATE: committed information rate
	__u64 burst;	   // LIMIT_RATE: committed burst size, bytes
	__u32 share;	   // LIMIT_SHARE: dropped ACKs, in parts of 65,536
	__u32 per_rtt;	   // LIMIT_PER_RTT: kept ACKs in a round trip
	__u32 max_segments;
	__u32 exempt; // number of exempt prefixes
	__u8 mode;
	__u8 limit;
	__u8 per_flow;
	__u8 gtp;	// look into GTP-U
	__u8 ip_link;	// frames begin with an IP header
	__u8 test_clock; // the time comes from skb->tstamp, for tests
	__u8 dry_run; // decide and count, but drop nothing
	__u8 unused;
};

// Exempt prefixes of a policer. Chosen: the list of a site.
#define MAX_PREFIXES 1024

// Key of the exempt prefixes (BPF_MAP_TYPE_LPM_TRIE): length in bits, then version and address, which it
// covers; IPv4 as IPv4-mapped IPv6.
struct prefix {
	__u32 len;
	__u32 version;
	__u8 address[16];
};

// Connection: addresses and ports of the policed direction.
struct key {
	__u8 src[16];
	__u8 dst[16];
	__u16 src_port;
	__u16 dst_port;
	__u16 vlan_outer;
	__u16 vlan_inner;
	__u32 session;
	__u32 version;
};

// End of a GTP-U tunnel: outer destination and TEID; all zero outside GTP-U.
struct tunnel {
	__u8 end[16];
	__u32 teid;
};

struct limiter {
	__u64 full_at;
	__u32 due;
	__u32 unused;
};

// As pep's `Flow`.
struct flow {
	__u64 round_at;
	__u64 syn_at;
	__u64 syn_ack_at;
	__u64 sender_rtt;
	__u64 receiver_rtt;
	__u64 ack_at;
	__u64 kept_at;
	__u64 off_until;
	__u32 ack;
	__u32 kept_ack;
	__u32 kept_edge;
	__u32 kept_tsval;
	__u32 snd_nxt;
	__u32 data_end;
	__u32 segment;
	__u32 run;
	__u32 mean_advance;
	__u32 acked;
	__u32 window_bytes;
	__u32 sample;
	__u32 sample_ack;
	__u32 sample_tsval;
	__u32 round_bytes;
	__u32 grown_bytes;
	__u32 flat_rounds;
	__u16 window;
	__u8 phase;
	__u8 shift;
	__u8 in_recovery;
	__u8 pushed;
	__u8 sampling;
	__u8 seen;
	__u32 unused;
};

// One connection in the table.
struct entry {
	struct flow flow;
	struct limiter limiter;
	struct tunnel policed; // of the policed direction
	struct tunnel data;    // of the data direction
	__u32 reasons[24]; // pure ACKs by decision
};

// Counters of a port, per CPU.
struct counters {
	__u64 packets; // in the policed direction
	__u64 data_packets;
	__u64 acks;
	__u64 reasons[24];
};

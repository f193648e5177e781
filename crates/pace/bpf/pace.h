// Map layouts that the paced congestion controls share with Rust; the build script translates them.

#pragma once

#include <linux/types.h>

// Slots of a pattern at most: the bits of settings.open.
#define MAX_SLOTS 64

// Changed by `paceline pace set`.
struct settings {
	__u8 name[16];	       // name of the congestion control
	__u64 process_started; // start of the process that holds it, in clock ticks after boot
	__u64 rate;	       // a fixed rate of payload in bytes per second; 0: the mean rate of Linux
	__u64 slot_ns;
	__u64 slots; // number of slots of the pattern; 0: no pattern
	__u64 open;  // a bit for each slot in which packets may leave
	__u64 phase_ns; // start of the pattern at this host, CLOCK_REALTIME modulo the period
	__u32 process;
	__u32 flows_map; // identifier of the map
	__u32 hint_map;
	__u8 gate;  // whether the phase is known
	__u8 clean; // congestion controls get the least round-trip time of two periods
	__u8 learn; // ACKs are reported to the loader, which learns the period
	__u8 control; // 0 illinois, 1 cubic, 2 reno
};

// Written by the loader while it runs.
struct hint {
	__u64 realtime_ns; // CLOCK_REALTIME minus CLOCK_MONOTONIC
	__u64 period_ns;   // the learned period; 0: none
};

// Connection; an IPv4 address is in the first four bytes.
struct key {
	__u8 local[16];
	__u8 remote[16];
	__u16 family;
	__u16 local_port;
	__u16 remote_port;
	__u16 unused;
};

struct flow {
	__u64 bytes_acked;
	__u64 bytes_sent;
	__u64 rate; // payload, bytes per second
	__u64 updated_ns; // CLOCK_MONOTONIC
	__u32 retransmitted;
	__u32 cwnd;
	__u32 mss;
	__u32 srtt_us;
	__u32 rtt_us;
	__u32 clean_rtt_us;
};

struct acked {
	__u64 at_ns;
	__u64 rtt_us;
};

// Map layouts and numbers that the kernel programs share with the gateway's Rust code.
//
// The build script translates this header into Rust constants and types (src/datapath/layout.rs), so that
// each number is written once. The translation understands #define of a number, enum, and struct with members
// of the types __u8, __u16, __u32, __u64, __be16 and __be32, arrays of __u8 and __be32, and structs defined
// above. Padding has to be written out. Rust sees big-endian members as bytes in network order.

#pragma once

#include <linux/types.h>

// Workers of a gateway. Chosen: more than a machine has processors to spare for it.
#define MAX_WORKERS 64
// Entries of the policy map. One of them may be the rule for all of IPv4.
#define MAX_PREFIXES 65536

// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).
struct address {
	__be32 words[4];
};

struct connection {
	struct address server;
	struct address mobile;
	__be16 server_port;
	__be16 mobile_port;
};

// Key of the policy map (BPF_MAP_TYPE_LPM_TRIE): length in bits and address.
struct prefix {
	__u32 len;
	struct address address;
};

// Value of the policy map. After a reload the workers decide for each connection (POLICY_ACCELERATE);
// POLICY_MAY_FILTER says that they may filter it, so that the comparison counts it as well.
enum policy { POLICY_ACCELERATE, POLICY_FILTER, POLICY_RELAY, POLICY_LEAVE, POLICY_MAY_FILTER };

struct settings {
	__u32 server_ifindex;
	__u32 mobile_ifindex;
	__u32 workers;
	__u32 seed; // of the hash that assigns devices to workers
	__u64 heartbeat_timeout_ns; // a worker whose heartbeat is older gets no packets
	__u8 bridge[6]; // the bridge's own Ethernet address: frames to it are for this machine
	__u8 routed; // 1: this machine routes between the interfaces, 0: they are ports of a bridge
	__u8 unused;
	__u32 redirect_limit; // bytes of the longest frame that may be redirected from port to port; 0: none may
	// The highest segment size that SYNs may announce over IPv4, or the MTU from which it follows; 0: unknown.
	__u16 clamp_mss;
	__u16 clamp_mtu;
	__u32 entry_ifindex; // routed mode: the device by which the gateway's packets enter the kernel
	__u32 unused_too;
};

// Key of the map of Ethernet addresses that the bridge knows. Its value is the index of their port, or
// THIS_MACHINE.
#define THIS_MACHINE 0
struct station {
	__u8 address[6];
	__u8 unused[2];
};

struct heartbeat {
	__u64 at_ns; // kernel clock of the last heartbeat; 0: the worker takes no packets
	__u32 overloaded; // 1: new connections stay in the kernel
	__u32 unused;
};

// State of a connection that the kernel forwards: all of it, or only the client's upload. SYN_DOWN, SYN_UP
// and ANSWERED record the handshake of a new connection that was not given to a worker: a SYN from the
// servers or from the devices, and the SYN-ACK.
enum kernel_flow_state { WHOLE = 1, UPLOAD = 2, SYN_DOWN = 4, SYN_UP = 8, ANSWERED = 16 };

struct kernel_flow {
	__u32 state;
	__u32 handshake_ack; // acknowledgment number of the handshake's third segment, if ANSWERED
};

// Counters of packets by decision.
enum counter {
	TAKEN,
	LEFT_BY_POLICY,
	LEFT_BY_CONNECTION,
	LEFT_WITHOUT_HEARTBEAT,
	LEFT_BY_OVERLOAD,
	LEFT_BY_EXPERIMENT,
	REDIRECTED,
	ACKS_LEFT,
	COUNTERS,
};

// The choice of the devices whose new connections are accelerated, in an experiment.
struct experiment {
	__u32 seed;
	__u32 share; // of 65536; all without an experiment, none after one that found harm
};

// The choice of the connections whose ACKs are not filtered, for comparison.
struct holdout {
	__u32 salt;
	__u32 share; // of 65536, the size of each group
};

// Groups of compared connections: not filtered, filtered. Connections in neither have the number GROUPS.
enum group { HELD_OUT, MATCHED, GROUPS };

// Data that servers sent to the connections of a group.
struct traffic {
	__u64 bytes; // of payload
	__u64 retransmitted; // payload bytes below the highest sequence number seen before
	__u64 timeouts; // retransmissions after a silence of RTO_MIN_NS
};

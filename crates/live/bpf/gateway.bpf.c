// What the gateway takes from the kernel, decided once for each packet.
//
// A packet that arrives on a port is first shown to the gateway's sockets: the fanout program chooses the worker and
// decides, the socket filter obeys. After that comes the ingress hook, which drops in the kernel what a worker has got.
// All three run for one packet after the other on one CPU, so that the decision waits in a per-CPU slot and no packet
// is forwarded twice or not at all. Without sockets nobody decides, and everything goes on in the kernel.
//
// Left to the kernel: everything but whole, plain TCP datagrams from host to host; what is addressed to this machine;
// prefixes that the operator leaves alone; connections that the machine does not accelerate; and all of it while a
// worker's heartbeat is missing. Packet-too-big messages are shown to the worker and go on in the kernel.
//
// An upload of an accelerated connection, which is not the worker's while it lasts, goes from port to port from here: past
// the bridge's rules, as all else of its connection, and at less cost than by the bridge.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "comparison.h"
#include "datagram.h"

#define PACKET_HOST 0
#define PACKET_OTHERHOST 3
#define MAX_WORKERS 64

// The layouts below are those of steering.rs.

struct settings {
	__u32 server_ifindex;
	__u32 mobile_ifindex;
	__u32 workers;
	__u32 seed;
	__u64 stale_ns;
	__u8 bridge[6]; // address of the bridge, to which this machine may listen
	__u8 routed;
	__u8 unused;
	__u32 across; // longest frame that either port carries, 0: the bridge has to forward
	__u32 unused2;
};

struct pulse {
	__u64 at; // kernel clock of the last turn, 0 for a worker that takes nothing
	__u32 overloaded;
	__u32 unused;
};

struct prefix {
	__u32 len;
	struct address address;
};

enum verdict { PASS, ACROSS, COPY, TAKE };

struct decision {
	__u32 verdict;
	__u32 ifindex;
	__u32 len;
	__u32 unused;
};

// What of a connection is left to the kernel: all of it, or the upload alone. And what went past the worker of a new one's
// handshake: a SYN from the servers or from the devices, and the other end's answer.
enum what { WHOLE = 1, UPLOAD = 2, SYN_DOWN = 4, SYN_UP = 8, ANSWERED = 16 };

struct left {
	__u32 what;
	__u32 confirmation; // acknowledgment number of the handshake's third segment, if it was answered
};

// After a reload the workers decide (steering.rs); connections that they may filter are compared all the same.
enum policy { ACCELERATE, FILTER, PACE, LEAVE, MAY_FILTER };

enum counter { TAKEN, LEFT_BY_POLICY, LEFT_BY_CONNECTION, LEFT_WITHOUT_PULSE, LEFT_BY_OVERLOAD, SENT_ACROSS, COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_WORKERS);
	__type(key, __u32);
	__type(value, struct pulse);
} pulses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decision);
} decisions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u32);
} policies SEC(".maps");

// A router's own addresses.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct address);
	__type(value, __u32);
} local SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144);
	__type(key, struct connection);
	__type(value, struct left);
} left_alone SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter)
		*counter += 1;
}

// To another host, and neither to many nor to this machine.
static __always_inline int is_for_another(struct __sk_buff *skb, const struct settings *s)
{
	__u8 to[6];

	if (s->routed)
		return skb->pkt_type == PACKET_HOST;
	if (skb->pkt_type != PACKET_OTHERHOST)
		return 0;
	if (bpf_skb_load_bytes_relative(skb, 0, to, 6, BPF_HDR_START_MAC) < 0)
		return 0;
	for (int i = 0; i < 6; i++)
		if (to[i] != s->bridge[i])
			return 1;
	return 0;
}

// All connections of a device (IPv6: a /64) go to one worker, which has its rate.
static __always_inline __u32 hash_of(const struct address *mobile, __u32 seed)
{
	int v4 = !mobile->words[0] && !mobile->words[1] && mobile->words[2] == bpf_htonl(0xffff);
	__u32 hash = seed;

	for (int i = 0; i < 2; i++) {
		hash ^= mobile->words[v4 ? i + 2 : i];
		hash *= 0x9e3779b1;
		hash ^= hash >> 15;
	}
	hash *= 0x85ebca6b;
	return hash ^ hash >> 13;
}

// The client's data, and the server's acknowledgments of them. What begins, ends or is urgent is none of that.
static __always_inline int is_upload(const struct seen *seen, int upwards)
{
	return !(seen->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_URG)) && (upwards || !seen->payload);
}

// While a worker takes in no new connections, a SYN goes past it. Anybody can send a SYN of a connection that the worker has,
// for which it may owe something: the connection is a new one, and the kernel's, when both ends have agreed on it.
static __always_inline void let_past(const struct connection *connection, int upwards)
{
	struct left *left = bpf_map_lookup_elem(&left_alone, connection);
	struct left syn = { .what = upwards ? SYN_UP : SYN_DOWN };

	if (left)
		left->what |= syn.what;
	else
		bpf_map_update_elem(&left_alone, connection, &syn, BPF_ANY);
}

// What of the packet's connection the kernel has, if this is of it: WHOLE, UPLOAD, or nothing.
static __always_inline enum what left_alone_of(const struct seen *seen, int upwards)
{
	struct left *left = bpf_map_lookup_elem(&left_alone, &seen->connection);

	if (!left)
		return 0;
	if ((seen->flags & TCP_SYN) && (left->what & (upwards ? SYN_DOWN : SYN_UP))) {
		left->confirmation = seen->seq + 1;
		left->what |= ANSWERED;
		return WHOLE;
	}
	if ((left->what & ANSWERED) && (left->what & (upwards ? SYN_UP : SYN_DOWN)) &&
	    (seen->flags & TCP_ACK) && seen->ack == left->confirmation)
		left->what = WHOLE;
	if (left->what & WHOLE)
		return WHOLE;
	return (left->what & UPLOAD) && is_upload(seen, upwards) ? UPLOAD : 0;
}

static __always_inline enum verdict decide(struct __sk_buff *skb, __u32 *worker)
{
	__u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct prefix prefix = { .len = 128 };
	struct pulse *pulse;
	struct address to;
	struct seen seen;
	enum kind kind;
	enum what what;
	__u32 *policy;
	int upwards;

	if (!s || !s->workers || !is_for_another(skb, s))
		return PASS;
	upwards = skb->ifindex == s->mobile_ifindex;
	__builtin_memset(&seen, 0, sizeof(seen));
	kind = classify(skb, upwards, &seen);
	if (kind == OTHER)
		return PASS;
	*worker = hash_of(&seen.connection.mobile, s->seed) % s->workers;
	pulse = bpf_map_lookup_elem(&pulses, worker);
	if (!pulse || pulse->at + s->stale_ns < bpf_ktime_get_ns()) {
		count(LEFT_WITHOUT_PULSE);
		return PASS;
	}
	if (kind == TOO_BIG)
		return COPY;
	to = upwards ? seen.connection.server : seen.connection.mobile;
	if (s->routed && bpf_map_lookup_elem(&local, &to))
		return PASS;
	prefix.address = seen.connection.mobile;
	policy = bpf_map_lookup_elem(&policies, &prefix);
	if (policy && (*policy == FILTER || *policy == MAY_FILTER) && !upwards)
		compare(&seen);
	// A filter acts on ACKs: what comes down is not its business.
	if (policy && (*policy == LEAVE || (*policy == FILTER && !upwards))) {
		count(LEFT_BY_POLICY);
		return PASS;
	}
	if ((seen.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		if (pulse->overloaded) {
			let_past(&seen.connection, upwards);
			count(LEFT_BY_OVERLOAD);
			return PASS;
		}
		bpf_map_delete_elem(&left_alone, &seen.connection); // a new one
	} else if ((what = left_alone_of(&seen, upwards))) {
		if (what == UPLOAD && s->across)
			return ACROSS;
		count(LEFT_BY_CONNECTION);
		return PASS;
	}
	count(TAKEN);
	return TAKE;
}

SEC("socket")
int gateway_fanout(struct __sk_buff *skb)
{
	__u32 zero = 0, worker = 0;
	struct decision *decision = bpf_map_lookup_elem(&decisions, &zero);

	if (!decision)
		return 0;
	decision->ifindex = skb->ifindex;
	decision->verdict = decide(skb, &worker);
	return worker;
}

SEC("socket")
int gateway_filter(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct decision *decision = bpf_map_lookup_elem(&decisions, &zero);

	if (!decision || decision->verdict == PASS || decision->ifindex != skb->ifindex)
		return 0;
	decision->len = skb->len;
	return decision->verdict == ACROSS ? 0 : -1;
}

// By the other port, if the bridge would send it: it drops what is too long for a port.
static __always_inline int send_across(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);

	if (!s || (skb->len > s->across && !skb->gso_size)) {
		count(LEFT_BY_CONNECTION);
		return TC_ACT_UNSPEC;
	}
	count(SENT_ACROSS);
	return bpf_redirect(skb->ifindex == s->mobile_ifindex ? s->server_ifindex : s->mobile_ifindex, 0);
}

SEC("tcx/ingress")
int gateway_ingress(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct decision *decision = bpf_map_lookup_elem(&decisions, &zero);
	enum verdict verdict;

	if (!decision)
		return TC_ACT_UNSPEC;
	verdict = decision->ifindex == skb->ifindex && decision->len == skb->len ? decision->verdict : PASS;
	decision->verdict = PASS;
	if (verdict == ACROSS)
		return send_across(skb);
	return verdict == TAKE ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Apache-2.0";

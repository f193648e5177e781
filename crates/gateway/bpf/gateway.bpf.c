// The kernel programs of the gateway: which packets its workers get.
//
// Three programs run for each packet that arrives on an interface, in this order, on one CPU and without
// interruption: 1. gateway_fanout, on the workers' packet sockets (PACKET_FANOUT_EBPF), chooses the worker
// and the verdict, and stores the verdict in a per-CPU slot; 2. gateway_filter, on the chosen socket, lets
// the packet in or not; 3. gateway_ingress, at the interface's TCX hook, drops the kernel's copy of a packet
// that a worker has got. So no packet is forwarded twice or lost between the two. Without sockets there is no
// verdict, and the kernel forwards.
//
// These packets stay in the kernel: everything but TCP between other hosts; packets to this machine; prefixes
// with the action `leave`; on a bridge, packets to a host behind the same port, and all packets while a port
// does not forward; connections that the accelerator does not handle; and all packets of a worker
// without a heartbeat. Packet-too-big messages go to the worker and to the kernel.
//
// Of a fragmented datagram only the first fragment has the ports. The other ones follow its verdict if they
// arrive after it, and stay in the kernel otherwise.
//
// The upload of an accelerated connection without downlink data does not pass the worker: gateway_ingress
// redirects it from port to port, which costs less than the bridge. Like the rest of the connection, the
// upload does not pass the bridge's filters.
//
// With mss_clamp, gateway_ingress lowers the segment size of the SYNs that stay in the kernel; a worker does
// so with its own.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "clamp.h"
#include "comparison.h"
#include "datagram.h"
#include "experiment.h"

_Static_assert(MAX_EXTENSIONS == NET_MAX_EXTENSIONS && MAX_GTPU_EXTENSIONS == NET_GTPU_MAX_EXTENSIONS, "");

// skb->pkt_type (linux/if_packet.h): sent to this machine's Ethernet address, or to another one.
#define PACKET_HOST 0
#define PACKET_OTHERHOST 3

// More bytes than the headers of a SYN have, with all encapsulations.
#define MOST_HEADERS 512

// PASS: to the kernel; REDIRECT: to the other port; COPY: to the worker and the kernel; TAKE: to the worker.
enum verdict { PASS, REDIRECT, COPY, TAKE };

// Interface and length identify the packet that the verdict is for.
struct decision {
	__u32 verdict;
	__u32 ifindex;
	__u32 len;
	__u32 syn; // a SYN whose segment size may be lowered
};

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
	__type(value, struct heartbeat);
} heartbeats SEC(".maps");

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
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u32);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct experiment);
} experiments SEC(".maps");

// Ethernet addresses that the bridge knows, as in its forwarding database.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct station);
	__type(value, __u32);
} stations SEC(".maps");

// 1: a port of the bridge does not forward.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} halted SEC(".maps");

// This machine's own addresses, in routed mode.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct address);
	__type(value, __u32);
} local SEC(".maps");

// Connections that the kernel forwards. The least recently used are forgotten, and come to a worker again.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144);
	__type(key, struct connection);
	__type(value, struct kernel_flow);
} kernel_flows SEC(".maps");

// Direction, addresses and identification of fragmented datagrams whose first fragment was given to a worker.
struct datagram {
	struct connection connection; // without ports
	__u32 identification;
	__u32 upwards;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct datagram);
	__type(value, __u32);
} taken_datagrams SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter)
		*counter += 1;
}

// Whether the packet is unicast to another host, and, on a bridge, to one that is not known to be behind the
// same port.
static __always_inline int is_for_another(struct __sk_buff *skb, const struct settings *s)
{
	struct station to = {};
	__u32 zero = 0, *port, *halt;

	if (s->routed)
		return skb->pkt_type == PACKET_HOST;
	if (skb->pkt_type != PACKET_OTHERHOST)
		return 0;
	halt = bpf_map_lookup_elem(&halted, &zero);
	if (!halt || *halt)
		return 0;
	if (bpf_skb_load_bytes_relative(skb, 0, to.address, 6, BPF_HDR_START_MAC) < 0)
		return 0;
	port = bpf_map_lookup_elem(&stations, &to);
	if (port && (*port == THIS_MACHINE || *port == skb->ifindex))
		return 0;
	for (int i = 0; i < 6; i++)
		if (to.address[i] != s->bridge[i])
			return 1;
	return 0;
}

// The hash of a device: its IPv4 address, or its IPv6 /64. All its connections go to one worker, since they
// share one rate control.
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

// Whether a segment belongs to an upload: data of the client, or an acknowledgment by the server. Segments
// that open or close the connection and urgent data are excluded.
static __always_inline int is_upload(const struct segment *segment, int upwards)
{
	return !(segment->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_URG)) && (upwards || !segment->payload);
}

// Records a SYN that the worker does not get because it takes no new connections. The worker may still have
// an older connection under these addresses and ports, and anybody can send a SYN: the connection is left to
// the kernel only after both ends have completed the handshake.
static __always_inline void record_syn(const struct connection *connection, int upwards)
{
	struct kernel_flow *flow = bpf_map_lookup_elem(&kernel_flows, connection);
	struct kernel_flow new = { .state = upwards ? SYN_UP : SYN_DOWN };

	if (flow)
		flow->state |= new.state;
	else
		bpf_map_update_elem(&kernel_flows, connection, &new, BPF_ANY);
}

// Whether the kernel forwards this segment: WHOLE (its connection is the kernel's), UPLOAD (the upload is),
// or 0.
static __always_inline __u32 forwarded_by_kernel(const struct segment *segment, int upwards)
{
	struct kernel_flow *flow = bpf_map_lookup_elem(&kernel_flows, &segment->connection);

	if (!flow)
		return 0;
	if ((segment->flags & TCP_SYN) && (flow->state & (upwards ? SYN_DOWN : SYN_UP))) {
		flow->handshake_ack = segment->seq + 1;
		flow->state |= ANSWERED;
		return WHOLE;
	}
	if ((flow->state & ANSWERED) && (flow->state & (upwards ? SYN_UP : SYN_DOWN)) &&
	    (segment->flags & TCP_ACK) && segment->ack == flow->handshake_ack)
		flow->state = WHOLE;
	if (flow->state & WHOLE)
		return WHOLE;
	return (flow->state & UPLOAD) && is_upload(segment, upwards) ? UPLOAD : 0;
}

// Decides on a fragment by the verdict on its datagram: `taken` for the first one, the recorded one for the
// others.
static __always_inline enum verdict decide_fragment(const struct segment *segment, enum packet_kind kind,
						    int upwards, int taken)
{
	struct datagram datagram = {
		.connection = segment->connection,
		.identification = segment->identification,
		.upwards = upwards,
	};
	__u32 value = 1;

	datagram.connection.server_port = datagram.connection.mobile_port = 0;
	if (kind == LATER)
		taken = bpf_map_lookup_elem(&taken_datagrams, &datagram) != 0;
	else if (taken)
		taken = !bpf_map_update_elem(&taken_datagrams, &datagram, &value, BPF_ANY);
	else
		bpf_map_delete_elem(&taken_datagrams, &datagram);
	if (!taken)
		return PASS;
	count(TAKEN);
	return TAKE;
}

// Whether the experiment leaves the new connections of this device to the kernel. A device whose ACKs are
// filtered takes no part.
static __always_inline int is_left_by_experiment(const struct address *mobile, const __u32 *policy)
{
	__u32 zero = 0;
	struct experiment *experiment = bpf_map_lookup_elem(&experiments, &zero);

	if (!experiment || (policy && *policy == POLICY_FILTER))
		return 0;
	return is_untouched(mobile, experiment);
}

static __always_inline enum verdict decide(struct __sk_buff *skb, __u32 *worker, __u32 *syn)
{
	__u32 zero = 0, forwarded;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct prefix prefix = { .len = 128 };
	struct heartbeat *heartbeat;
	struct address destination;
	struct segment segment;
	enum packet_kind kind;
	__u32 *policy;
	int upwards;

	if (!s || !s->workers || !is_for_another(skb, s))
		return PASS;
	upwards = skb->ifindex == s->mobile_ifindex;
	__builtin_memset(&segment, 0, sizeof(segment));
	kind = classify(skb, AT_NETWORK, upwards, &segment);
	*syn = kind == SEGMENT && (segment.flags & TCP_SYN) && (s->clamp_mss || s->clamp_mtu);
	// The packets that routed mode sends have no encapsulation.
	if (kind == OTHER || (s->routed && segment.tunnelled))
		return PASS;
	*worker = hash_of(&segment.connection.mobile, s->seed) % s->workers;
	heartbeat = bpf_map_lookup_elem(&heartbeats, worker);
	if (!heartbeat || heartbeat->at_ns + s->heartbeat_timeout_ns < bpf_ktime_get_ns()) {
		count(LEFT_WITHOUT_HEARTBEAT);
		return PASS;
	}
	if (kind == TOO_BIG)
		return COPY;
	destination = upwards ? segment.connection.server : segment.connection.mobile;
	if (s->routed && bpf_map_lookup_elem(&local, &destination))
		return PASS;
	prefix.address = segment.connection.mobile;
	policy = bpf_map_lookup_elem(&policies, &prefix);
	if (kind == LATER)
		return decide_fragment(&segment, kind, upwards, 0);
	// The ACK filter takes no fragments.
	if (kind == FIRST && policy && (*policy == POLICY_LEAVE || *policy == POLICY_FILTER))
		return decide_fragment(&segment, kind, upwards, 0);
	if (kind == FIRST)
		return decide_fragment(&segment, kind, upwards, !forwarded_by_kernel(&segment, upwards));
	if (policy && (*policy == POLICY_FILTER || *policy == POLICY_MAY_FILTER) && !upwards)
		compare(&segment);
	// A filter acts on ACKs alone: downlink packets stay in the kernel.
	if (policy && (*policy == POLICY_LEAVE || (*policy == POLICY_FILTER && !upwards))) {
		count(LEFT_BY_POLICY);
		return PASS;
	}
	if ((segment.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		if (heartbeat->overloaded) {
			record_syn(&segment.connection, upwards);
			count(LEFT_BY_OVERLOAD);
			return PASS;
		}
		if (is_left_by_experiment(&segment.connection.mobile, policy)) {
			record_syn(&segment.connection, upwards);
			count(LEFT_BY_EXPERIMENT);
			return PASS;
		}
		bpf_map_delete_elem(&kernel_flows, &segment.connection); // a SYN opens a new connection
	} else if ((forwarded = forwarded_by_kernel(&segment, upwards))) {
		if (forwarded == UPLOAD && s->redirect_limit)
			return REDIRECT;
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
	decision->syn = 0;
	decision->verdict = decide(skb, &worker, &decision->syn);
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
	return decision->verdict == REDIRECT ? 0 : -1;
}

// Redirects a frame to the other port. A frame that is too long for a port goes to the bridge, which drops
// it.
static __always_inline int redirect(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);

	if (!s || (skb->len > s->redirect_limit && !skb->gso_size)) {
		count(LEFT_BY_CONNECTION);
		return TC_ACT_UNSPEC;
	}
	count(REDIRECTED);
	return bpf_redirect(skb->ifindex == s->mobile_ifindex ? s->server_ifindex : s->mobile_ifindex, 0);
}

// Lowers the segment size of a SYN that the kernel forwards.
static __always_inline void clamp_syn(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct segment segment;

	__builtin_memset(&segment, 0, sizeof(segment));
	if (!s || bpf_skb_pull_data(skb, skb->len < MOST_HEADERS ? skb->len : MOST_HEADERS) ||
	    classify(skb, AT_LINK, 0, &segment) != SEGMENT || !(segment.flags & TCP_SYN))
		return;
	clamp_mss(skb, &segment, highest_mss(s, &segment));
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
	if (verdict == PASS && decision->syn && decision->ifindex == skb->ifindex)
		clamp_syn(skb);
	decision->syn = 0;
	if (verdict == REDIRECT)
		return redirect(skb);
	return verdict == TAKE ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

// Counts the acknowledgments of the gateway that leave, behind the firewall of this machine (routed mode).
SEC("tcx/egress")
int gateway_egress(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct segment segment;

	if (!s || skb->ingress_ifindex != s->entry_ifindex)
		return TC_ACT_UNSPEC;
	__builtin_memset(&segment, 0, sizeof(segment));
	if (classify(skb, AT_LINK, 1, &segment) == SEGMENT && !segment.payload &&
	    (segment.flags & (TCP_SYN | TCP_RST | TCP_FIN | TCP_ACK)) == TCP_ACK)
		count(ACKS_LEFT);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Apache-2.0";

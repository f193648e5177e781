/* ACK policer at tc: crates/pep/src/ack_policer in C, function by function. Rules have the numbers of
 * docs/police.md, constants come from the Rust files (build/constants.rs). The programs read packets and drop
 * pure ACKs; they write no packet. */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "police.h"

_Static_assert(SK_BUFF_SIZE == sizeof(struct __sk_buff), "");
_Static_assert(SK_BUFF_TSTAMP == __builtin_offsetof(struct __sk_buff, tstamp), "");
_Static_assert(SK_BUFF_GSO_SIZE == __builtin_offsetof(struct __sk_buff, gso_size), "");
_Static_assert(REASONS == 24, "the counters have one place for each reason");

#define FIN 0x001
#define SYN 0x002
#define RST 0x004
#define PSH 0x008
#define ACK 0x010
#define ECE 0x040
#define CWR 0x080
#define AE 0x100

enum phase { UNKNOWN, SYN_POLICED, SYN_DATA, SYN_ACK, OPEN, BARRED, CLOSED };

#define TABLE_OF_ONE 1

/* Actions of TCX, by linux/bpf.h of 6.6; the next program decides, or the packet is dropped. */
#define TCX_NEXT -1
#define TCX_DROP 2

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_OF_ONE);
	__type(key, __u32);
	__type(value, struct policy);
} paceline_police SEC(".maps"); /* the loader finds policers by this name */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_FLOWS);
	__type(key, struct key);
	__type(value, struct entry);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_OF_ONE);
	__type(key, __u32);
	__type(value, struct limiter);
} aggregate SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TABLE_OF_ONE);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, MAX_PREFIXES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u8);
} exempt SEC(".maps");

/* A new connection, filled per CPU because it is larger than the stack should hold. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TABLE_OF_ONE);
	__type(key, __u32);
	__type(value, struct entry);
} blank SEC(".maps");

#include "police_frame.h"

/* ---- limiter.rs ---- */

static __always_inline int is_over(struct limiter *limiter, const struct policy *policy, __u64 now, __u32 bytes,
				__u64 kept_at, __u64 rtt)
{
	if (policy->limit == LIMIT_RATE) {
		__u64 rate = policy->bytes_per_s ? policy->bytes_per_s : 1;
		__u64 cost = (__u64)bytes * NS_PER_S / rate;
		__u64 depth = policy->burst * NS_PER_S / rate; /* the loader bounds the burst */
		__u64 full_at = limiter->full_at > now ? limiter->full_at : now;
		if (full_at - now + cost > depth)
			return 1;
		limiter->full_at = full_at + cost;
		return 0;
	}
	if (policy->limit == LIMIT_SHARE) {
		__u32 due = limiter->due + (policy->share < ONE ? policy->share : ONE);
		limiter->due = due < MAX_DEBT ? due : MAX_DEBT;
		return limiter->due >= ONE;
	}
	__u64 count = policy->per_rtt ? policy->per_rtt : 1;
	__u64 gap = rtt ? rtt / count : UNKNOWN_RTT_GAP_NS;
	__u64 since = now > kept_at ? now - kept_at : 0;
	return since < gap;
}

static __always_inline void on_drop(struct limiter *limiter, const struct policy *policy)
{
	if (policy->limit == LIMIT_SHARE)
		limiter->due = limiter->due > ONE ? limiter->due - ONE : 0;
}

/* ---- flow.rs ---- */

static __always_inline __s32 distance(__u32 a, __u32 b)
{
	return (__s32)(a - b);
}

static __always_inline __u64 elapsed(__u64 now, __u64 earlier)
{
	return now > earlier ? now - earlier : 1;
}

static __always_inline __u64 round_trip(const struct flow *flow)
{
	return flow->sender_rtt && flow->receiver_rtt ? flow->sender_rtt + flow->receiver_rtt : 0;
}

static __always_inline int in_slow_start(const struct flow *flow)
{
	return flow->flat_rounds < FLAT_ROUNDS;
}

static __always_inline void count_round(struct flow *flow, __u64 now, __u32 advance)
{
	__u32 sum = flow->round_bytes + advance;
	flow->round_bytes = sum < advance ? 0xffffffff : sum;
	if (now - flow->round_at < round_trip(flow))
		return;
	__u32 grown = flow->grown_bytes + (flow->grown_bytes >> 2);
	if (grown < flow->grown_bytes)
		grown = 0xffffffff;
	if (flow->round_bytes >= grown) {
		flow->grown_bytes = flow->round_bytes;
		if (in_slow_start(flow))
			flow->flat_rounds = 0;
	} else if (in_slow_start(flow)) {
		flow->flat_rounds++;
	}
	flow->round_bytes = 0;
	flow->round_at = now;
}

static __always_inline void recover(struct flow *flow, __u64 now)
{
	flow->flat_rounds = FLAT_ROUNDS;
	__u64 rtt = round_trip(flow);
	flow->off_until = now + (rtt > MIN_RECOVERY_NS ? rtt : MIN_RECOVERY_NS);
	flow->window_bytes = 0;
	flow->sampling = 0;
	flow->acked = 0;
}

static __always_inline void sample_window(struct flow *flow, const struct segment *data)
{
	if (!flow->sampling)
		return;
	if (!(data->marks & MARK_TIMESTAMPS)) {
		flow->sampling = 0;
		flow->window_bytes = 0;
		return;
	}
	if (distance(data->tsecr, flow->sample_tsval) >= 0) {
		flow->window_bytes = flow->sample;
		flow->sampling = 0;
		return;
	}
	__s32 outstanding = distance(flow->data_end, flow->sample_ack);
	if (outstanding > 0 && (__u32)outstanding > flow->sample)
		flow->sample = outstanding;
}

static __always_inline void on_kept(struct flow *flow, __u64 now, const struct segment *kept)
{
	int is_first = !flow->kept_at;
	if (is_first || distance(kept->ack, flow->kept_ack) >= 0) {
		flow->kept_ack = kept->ack;
		flow->kept_edge = kept->ack + ((__u32)kept->window << (flow->shift & 15));
	}
	flow->kept_at = now;
	if (!(kept->marks & MARK_TIMESTAMPS))
		return;
	int is_later = is_first || distance(kept->tsval, flow->kept_tsval) > 0;
	if (!flow->sampling && is_later) {
		flow->sampling = 1;
		flow->sample = 0;
		flow->sample_ack = kept->ack;
		flow->sample_tsval = kept->tsval;
	}
	if (is_later)
		flow->kept_tsval = kept->tsval;
}

static __always_inline void close_flow(struct flow *flow)
{
	if (flow->phase != UNKNOWN)
		flow->phase = CLOSED;
}

static __always_inline void on_syn(struct flow *flow, __u64 now, const struct segment *syn, __u8 direction)
{
	if (!(syn->flags & ACK)) {
		__builtin_memset(flow, 0, sizeof(*flow));
		flow->phase = direction;
		flow->syn_at = now;
	} else {
		__u8 expected = direction == SYN_DATA ? SYN_POLICED : SYN_DATA;
		if (flow->phase != expected)
			return;
		__u64 rtt = elapsed(now, flow->syn_at);
		if (direction == SYN_DATA)
			flow->sender_rtt = rtt;
		else
			flow->receiver_rtt = rtt;
		flow->syn_ack_at = now;
		int barred = (syn->flags & (AE | CWR)) || (syn->marks & (MARK_FORBIDS | MARK_SPECIAL));
		flow->phase = barred ? BARRED : SYN_ACK;
	}
	if (direction == SYN_DATA) {
		flow->data_end = syn->seq + 1;
		if ((syn->flags & ACK) && !(syn->marks & MARK_SCALE))
			flow->shift = 0;
	} else {
		flow->snd_nxt = syn->seq + 1;
		flow->shift = syn->shift;
	}
}

static __always_inline void on_retransmission(struct flow *flow, __u64 now, __u32 end)
{
	if ((flow->seen & SEEN_ACK) && distance(end, flow->ack) <= 0 && distance(end, flow->kept_ack) > 0)
		flow->seen |= SEEN_MISSED;
	recover(flow, now);
}

static __always_inline void on_data_direction(struct flow *flow, __u64 now, const struct segment *segment)
{
	if (segment->flags & SYN) {
		on_syn(flow, now, segment, SYN_DATA);
		return;
	}
	if (segment->flags & (FIN | RST))
		close_flow(flow);
	if (flow->phase == SYN_ACK && flow->syn_ack_at && !flow->sender_rtt) {
		flow->sender_rtt = elapsed(now, flow->syn_ack_at);
		flow->phase = OPEN;
	}
	if (!segment->payload || flow->phase != OPEN)
		return;
	__u32 end = segment->seq + segment->payload;
	if (distance(end, flow->data_end) <= 0) {
		on_retransmission(flow, now, end);
		return;
	}
	flow->data_end = end;
	flow->seen |= SEEN_DATA;
	if (segment->segment > flow->segment)
		flow->segment = segment->segment;
	int push = segment->flags & PSH;
	if (push)
		flow->seen |= SEEN_PUSH;
	flow->pushed = push || segment->payload % (flow->segment ? flow->segment : 1);
	sample_window(flow, segment);
}

/* ---- judge.rs ---- */

static __always_inline int is_pure_ack(const struct segment *segment)
{
	return !segment->payload && (segment->flags & ACK) && !(segment->flags & (SYN | FIN | RST));
}

static __always_inline int headers(const struct segment *ack)
{
	if (ack->marks & MARK_SPECIAL)
		return NOT_PLAIN_IP;
	if (ack->marks & MARK_SACK)
		return SACK;
	if (ack->marks & MARK_OPTIONS)
		return OPTIONS;
	if (ack->marks & MARK_IP_ECN)
		return IP_ECN;
	if (ack->flags & (ECE | CWR))
		return ECN_ECHO;
	if (ack->flags != ACK)
		return OPTIONS;
	return DROPPED;
}

static __always_inline __u32 at_most_64k(__u32 bytes)
{
	return bytes < 65535 ? bytes : 65535;
}

static __always_inline int state(const struct flow *flow, __u64 now, const struct segment *ack)
{
	if (flow->phase == BARRED)
		return HANDSHAKE;
	if (flow->phase == CLOSED)
		return CLOSING;
	if (flow->phase != OPEN)
		return MID_STREAM;
	if (!(flow->seen & SEEN_ACK))
		return FIRST_SEGMENTS;
	__s32 advance = distance(ack->ack, flow->ack);
	if (advance < 0)
		return OLD_ACK;
	if (!advance)
		return ack->window == flow->window ? DUPLICATE : WINDOW;
	__u64 before = (__u64)flow->window << (flow->shift & 15);
	__u64 after = ((__u64)ack->window << (flow->shift & 15)) + (__u32)advance;
	if (!ack->window || !flow->window || after < before)
		return WINDOW;
	if (ack->seq != flow->snd_nxt)
		return PROBE;
	if (flow->in_recovery)
		return FIRST_ADVANCE;
	if (now < flow->off_until)
		return RECOVERY;
	if (flow->acked < SEGMENTS_BEFORE_DROPS * at_most_64k(flow->segment))
		return FIRST_SEGMENTS;
	if (flow->run < SPARSE_RUN || now - flow->ack_at > SPARSE_GAP_NS)
		return SPARSE;
	if (flow->mean_advance > THINNED_SEGMENTS * at_most_64k(flow->segment))
		return THINNED_UPSTREAM;
	return DROPPED;
}

static __always_inline int floors(const struct flow *flow, const struct policy *policy, __u64 now,
				  const struct segment *ack)
{
	__u32 segment = at_most_64k(flow->segment ? flow->segment : 1);
	__s32 passed = distance(flow->data_end, ack->ack);
	if (passed < 0 || !(flow->seen & SEEN_DATA))
		return MAY_BE_LAST;
	__s32 gap = distance(flow->data_end, flow->kept_ack);
	__u32 unacknowledged = gap > 0 ? gap : 0;
	__u32 window = flow->window_bytes > unacknowledged ? flow->window_bytes : unacknowledged;
	__s32 edge = distance(flow->kept_edge, flow->data_end);
	__u32 allowed = edge > 0 ? edge : 0, coming = window - unacknowledged;
	if (coming > allowed)
		coming = allowed;
	int goes_on = !flow->pushed && (flow->seen & (SEEN_PUSH | SEEN_MISSED)) == SEEN_PUSH;
	int certain = (__u32)passed >= CERTAIN_SEGMENTS * segment ||
		      (goes_on && coming >= window / 2 && coming >= 2 * CERTAIN_SEGMENTS * segment);
	if (!certain)
		return MAY_BE_LAST;
	__s32 newly = distance(ack->ack, flow->kept_ack);
	__u64 most = (__u64)policy->max_segments * segment;
	if (most > window / ACKS_PER_RTT)
		most = window / ACKS_PER_RTT;
	if (most > flow->acked / SEGMENTS_PER_GAP)
		most = flow->acked / SEGMENTS_PER_GAP;
	if (newly < 0 || (__u32)newly > most)
		return SEGMENT_FLOOR;
	__u64 rtt = round_trip(flow);
	__u64 longest = rtt ? rtt / ACKS_PER_RTT : UNKNOWN_RTT_GAP_NS;
	if (longest < MIN_GAP_NS)
		longest = MIN_GAP_NS;
	if (in_slow_start(flow))
		longest = SLOW_START_GAP_NS;
	if (now - flow->kept_at > longest)
		return TIME_FLOOR;
	return DROPPED;
}

static __always_inline void on_acknowledgment(struct flow *flow, __u64 now, const struct segment *segment,
					      int is_ack)
{
	__u64 gap = now - flow->ack_at;
	if (!flow->ack_at || gap > SPARSE_GAP_NS)
		flow->run = 0;
	else if (flow->run != 0xffffffff)
		flow->run++;
	flow->ack_at = now;
	__s32 advance = distance(segment->ack, flow->ack);
	if ((flow->seen & SEEN_ACK) && advance > 0) {
		__u32 sum = flow->acked + (__u32)advance;
		flow->acked = sum < flow->acked ? 0xffffffff : sum;
		flow->in_recovery = 0;
		count_round(flow, now, advance);
		if (is_ack)
			flow->mean_advance = flow->mean_advance - (flow->mean_advance >> MEAN_SHIFT) +
					     ((__u32)advance >> MEAN_SHIFT);
	}
	int duplicate = is_ack && (flow->seen & SEEN_ACK) && !advance && segment->window == flow->window;
	if (duplicate || (segment->marks & MARK_SACK)) {
		flow->in_recovery = 1;
		recover(flow, now);
	}
	if (segment->flags & ECE)
		recover(flow, now);
	if (!(flow->seen & SEEN_ACK) || advance >= 0) {
		flow->ack = segment->ack;
		flow->window = segment->window;
	}
	flow->seen |= SEEN_ACK;
}

static __always_inline void record(struct flow *flow, __u64 now, const struct segment *segment, int is_ack,
				   int dropped)
{
	if (segment->flags & SYN) {
		on_syn(flow, now, segment, SYN_POLICED);
		return;
	}
	if (segment->flags & (FIN | RST))
		close_flow(flow);
	if (!(segment->flags & ACK))
		return;
	if (flow->phase == SYN_ACK) {
		if (!flow->receiver_rtt)
			flow->receiver_rtt = elapsed(now, flow->syn_ack_at);
		if (flow->sender_rtt)
			flow->phase = OPEN;
	}
	if (segment->payload) {
		__u32 end = segment->seq + segment->payload;
		if (distance(end, flow->snd_nxt) > 0)
			flow->snd_nxt = end;
	}
	on_acknowledgment(flow, now, segment, is_ack);
	if (dropped)
		return;
	on_kept(flow, now, segment);
}

static __always_inline int judge(struct flow *flow, struct limiter *limiter, const struct policy *policy,
				 __u64 now, const struct segment *segment)
{
	int is_ack = is_pure_ack(segment);
	if (policy->mode == MODE_PUBLISHED) {
		if (!is_ack)
			return NOT_ACK;
		if (is_over(limiter, policy, now, segment->len, flow->kept_at, round_trip(flow))) {
			on_drop(limiter, policy);
			return DROPPED;
		}
		flow->kept_at = now;
		return WITHIN_LIMIT;
	}
	int reason = NOT_ACK;
	if (is_ack) {
		reason = headers(segment);
		if (reason == DROPPED)
			reason = state(flow, now, segment);
		if (reason == DROPPED)
			reason = floors(flow, policy, now, segment);
		if (!is_over(limiter, policy, now, segment->len, flow->kept_at, round_trip(flow)))
			reason = WITHIN_LIMIT;
		else if (reason == DROPPED)
			on_drop(limiter, policy);
	}
	record(flow, now, segment, is_ack, reason == DROPPED);
	return reason;
}

/* ---- tunnels.rs ---- */

static __always_inline int is_same(const struct tunnel *a, const struct tunnel *b)
{
	const __u32 *left = (const __u32 *)a->end, *right = (const __u32 *)b->end;
	return a->teid == b->teid && left[0] == right[0] && left[1] == right[1] && left[2] == right[2] &&
	       left[3] == right[3];
}

/* Whether a SYN-ACK in a direction acknowledges the SYN of the other one. */
static __always_inline int is_awaited(const struct flow *flow, __u8 direction, __u32 ack)
{
	if (direction == SYN_DATA)
		return flow->phase == SYN_POLICED && ack == flow->snd_nxt;
	return flow->phase == SYN_DATA && ack == flow->data_end;
}

static __always_inline int admit(struct entry *entry, __u8 direction, const struct frame *frame)
{
	const struct segment *segment = &frame->segment;
	struct tunnel *own = direction == SYN_DATA ? &entry->data : &entry->policed;
	struct tunnel *other = direction == SYN_DATA ? &entry->policed : &entry->data;
	if ((segment->flags & SYN) && !(segment->flags & ACK)) {
		*own = frame->tunnel;
		__builtin_memset(other, 0, sizeof(*other));
		return 1;
	}
	if (!own->teid && !other->teid && !frame->tunnel.teid)
		return 1;
	if (!own->teid && other->teid && frame->tunnel.teid && (segment->flags & SYN) &&
	    is_awaited(&entry->flow, direction, segment->ack)) {
		*own = frame->tunnel;
		return 1;
	}
	return is_same(own, &frame->tunnel) && !own->teid == !other->teid;
}

static __always_inline void follow(struct entry *entry, const struct frame *frame)
{
	if (is_same(&entry->policed, &frame->tunnel))
		return;
	entry->policed = frame->tunnel;
	__builtin_memset(&entry->flow, 0, sizeof(entry->flow));
	__builtin_memset(&entry->limiter, 0, sizeof(entry->limiter));
}

/* ---- frame_policer.rs ---- */

static __always_inline struct entry *new_entry(const struct key *key)
{
	__u32 zero = 0;
	struct entry *fresh = bpf_map_lookup_elem(&blank, &zero);
	if (!fresh)
		return 0;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	bpf_map_update_elem(&flows, key, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

static __always_inline __u64 clock(struct __sk_buff *skb, const struct policy *policy)
{
	return policy->test_clock ? skb->tstamp : bpf_ktime_get_ns();
}

static __always_inline int is_exempt(const struct key *key)
{
	struct prefix prefix = { .len = 32 + 128, .version = key->version };
	__builtin_memcpy(prefix.address, key->src, 16);
	if (bpf_map_lookup_elem(&exempt, &prefix))
		return 1;
	__builtin_memcpy(prefix.address, key->dst, 16);
	return bpf_map_lookup_elem(&exempt, &prefix) != 0;
}

/* The decision on a segment in the policed direction. */
static __always_inline int decide(const struct policy *policy, __u64 now, struct frame *frame,
				  struct entry **found)
{
	__u32 zero = 0;
	struct entry *entry = bpf_map_lookup_elem(&flows, &frame->key);
	int needs_entry = (frame->segment.flags & SYN) || (policy->mode == MODE_PUBLISHED && policy->per_flow);
	if (!entry && needs_entry)
		entry = new_entry(&frame->key);
	if (entry && policy->mode == MODE_PUBLISHED)
		follow(entry, frame);
	else if (entry && !admit(entry, SYN_POLICED, frame))
		entry = 0;
	*found = entry;
	struct limiter *all = bpf_map_lookup_elem(&aggregate, &zero);
	if (!all)
		return NOT_ACK;
	if (entry)
		return judge(&entry->flow, policy->per_flow ? &entry->limiter : all, policy, now,
			     &frame->segment);
	if (policy->mode == MODE_PUBLISHED && !policy->per_flow) {
		struct flow unknown = {};
		return judge(&unknown, all, policy, now, &frame->segment);
	}
	return is_pure_ack(&frame->segment) ? MID_STREAM : NOT_ACK;
}

SEC("tc")
int police(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct policy *policy = bpf_map_lookup_elem(&paceline_police, &zero);
	struct counters *count = bpf_map_lookup_elem(&counters, &zero);
	if (!policy || !count)
		return TCX_NEXT;
	count->packets++;
	struct frame frame = {};
	if (read_frame(skb, policy, &frame))
		return TCX_NEXT;
	struct entry *entry = 0;
	int reason = EXEMPT;
	if (!policy->exempt || !is_exempt(&frame.key))
		reason = decide(policy, clock(skb, policy), &frame, &entry);
	if (policy->test_clock)
		return TEST_REASON + reason;
	if (!is_pure_ack(&frame.segment))
		return TCX_NEXT;
	count->acks++;
	if (reason >= 0 && reason < REASONS) {
		count->reasons[reason]++;
		if (entry)
			entry->reasons[reason]++;
	}
	return reason == DROPPED && !policy->dry_run ? TCX_DROP : TCX_NEXT;
}

SEC("tc")
int observe(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct policy *policy = bpf_map_lookup_elem(&paceline_police, &zero);
	struct counters *count = bpf_map_lookup_elem(&counters, &zero);
	if (!policy || !count)
		return TCX_NEXT;
	count->data_packets++;
	if (policy->mode == MODE_PUBLISHED)
		return TCX_NEXT;
	struct frame frame = {};
	if (read_frame(skb, policy, &frame))
		return TCX_NEXT;
	reverse(&frame.key);
	struct entry *entry = bpf_map_lookup_elem(&flows, &frame.key);
	if (!entry && (frame.segment.flags & SYN))
		entry = new_entry(&frame.key);
	if (entry && admit(entry, SYN_DATA, &frame))
		on_data_direction(&entry->flow, clock(skb, policy), &frame.segment);
	return TCX_NEXT;
}

char LICENSE[] SEC("license") = "GPL";

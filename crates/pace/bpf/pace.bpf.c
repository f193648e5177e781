// Congestion controls for Linux whose segments are spaced for a TDD cell: Illinois, CUBIC and Reno.
//
// The window grows in cong_avoid. The pacing rate is set in min_tso_segs, which the kernel calls before each
// transmission: a rate set elsewhere is overwritten by the kernel's own. Without a pattern the mean rate is
// that of Linux (tcp_update_pacing_rate: twice the window per round trip in slow start, 1.2 times later).
// With a pattern whose phase is known, packets leave in the slots before downlink slots: the wait after each
// transmission is the time that the rate needs on a clock which runs in these slots only.
//
// PARTS and BINS come from net::pacing::CleanDelay, ILLINOIS_... from the crate tcp (build/constants.rs).
//
// CUBIC and Reno grow by the kernel's functions. Illinois (Liu, Basar, Srikant 2008) is computed here, with
// the shifts of Linux. BBR has no place here: its rate is its own.

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "pace.h"
#include "pace_tcp.h"

// GPL functions of the kernel are called.
char LICENSE[] SEC("license") = "GPL";

#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS 1000000ULL
// Interval in which a flow's statistics are copied.
#define REPORT_NS (100 * NS_PER_MS)
// A connection of a fixed rate makes up for at most this much time in which it sent too little. Chosen: a
// virtual machine can stand still for tens of milliseconds. It sends half a percent more for every
// millisecond that it is behind, so at most a quarter above its rate.
#define BEHIND_NS (50 * NS_PER_MS)
#define CATCH_UP_NS (200 * NS_PER_MS)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} pace_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hint);
} pace_hint SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct key);
	__type(value, struct flow);
} pace_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} pace_acks SEC(".maps");

struct state {
	struct flow flow;
	__u64 reported_ns;
	// Fixed rate: when the `due_bytes` sent so far would all have left at that rate.
	__u64 due_ns;
	__u64 due_bytes;
	// Least round-trip times by part of a period.
	__u64 part_ns;
	__u64 newest;
	__u32 least[BINS];
	// Illinois: sums of the present round trip, extremes of all.
	__u64 rtt_sum;
	__u32 rtt_count;
	__u32 rtt_base;
	__u32 rtt_max;
	__u32 round_end;
	__u32 acked;
	__u32 alpha;
	__u32 beta;
	__u32 low_rounds;
	__u32 was_above;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} pace_states SEC(".maps");

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct settings *settings(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&pace_settings, &only);
}

static __always_inline struct hint *hint(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&pace_hint, &only);
}

static __always_inline struct state *state(struct sock *sk)
{
	return bpf_sk_storage_get(&pace_states, sk, 0, 0);
}

#include "pace_illinois.h"

// --- Statistics -----------------------------------------------------------------------------------------

static __always_inline void flow_key(struct sock *sk, struct key *key)
{
	struct sock_common *common = &sk->__sk_common;

	__builtin_memset(key, 0, sizeof(*key));
	key->family = common->skc_family;
	if (key->family == AF_INET6) {
		bpf_core_read(key->local, sizeof(key->local), &common->skc_v6_rcv_saddr);
		bpf_core_read(key->remote, sizeof(key->remote), &common->skc_v6_daddr);
	} else {
		bpf_core_read(key->local, 4, &common->skc_rcv_saddr);
		bpf_core_read(key->remote, 4, &common->skc_daddr);
	}
	key->local_port = common->skc_num;
	key->remote_port = __builtin_bswap16(common->skc_dport);
}

static __always_inline void report(struct sock *sk, struct state *state, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct key key;
	struct flow *flow = &state->flow;

	if (now - state->reported_ns < REPORT_NS)
		return;
	state->reported_ns = now;
	flow->bytes_acked = tp->bytes_acked;
	flow->bytes_sent = tp->bytes_sent;
	flow->retransmitted = tp->total_retrans;
	flow->cwnd = tp->snd_cwnd;
	flow->mss = tp->mss_cache;
	flow->srtt_us = tp->srtt_us >> 3;
	flow->updated_ns = now;
	flow_key(sk, &key);
	bpf_map_update_elem(&pace_flows, &key, flow, BPF_ANY);
}

// --- Round-trip times -----------------------------------------------------------------------------------

static __always_inline __u64 period_ns(struct settings *settings, struct hint *hint)
{
	return settings->slots ? settings->slots * settings->slot_ns : hint->period_ns;
}

// The least round-trip time of the last two periods, this sample included.
static __always_inline __u32 clean_rtt(struct state *state, __u64 period, __u64 now, __u32 rtt_us)
{
	__u64 part_ns = period / PARTS, part, passed;
	__u32 least = rtt_us;
	int bin;

	if (!part_ns)
		return rtt_us;
	part = now / part_ns;
	passed = part - state->newest;
	if (state->part_ns != part_ns || part < state->newest || passed > BINS)
		passed = BINS;
	state->part_ns = part_ns;
	state->newest = part;
	for (bin = 0; bin < BINS; bin++) {
		// The bins of the parts that have passed since the last sample are empty.
		if (((part - bin) & (BINS - 1)) < passed)
			state->least[bin] = ~0U;
		if (bin == (part & (BINS - 1)) && rtt_us < state->least[bin])
			state->least[bin] = rtt_us;
		if (state->least[bin] < least)
			least = state->least[bin];
	}
	return least;
}

// Records the sample of an ACK; returns the round-trip time for the congestion control, 0 without a sample.
static __always_inline __u32 on_sample(struct sock *sk, struct state *state, const struct ack_sample *sample)
{
	struct settings *settings_now = settings();
	struct hint *hint_now = hint();
	__u64 now = bpf_ktime_get_ns(), period;
	__u32 rtt_us = sample->rtt_us, clean;

	if (!settings_now || !hint_now)
		return 0;
	report(sk, state, now);
	if (settings_now->learn) {
		struct acked *event = bpf_ringbuf_reserve(&pace_acks, sizeof(*event), 0);

		if (event) {
			event->at_ns = now;
			event->rtt_us = sample->rtt_us > 0 ? rtt_us : 0;
			bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
		}
	}
	if (sample->rtt_us <= 0)
		return 0;
	period = period_ns(settings_now, hint_now);
	clean = period ? clean_rtt(state, period, now, rtt_us) : rtt_us;
	state->flow.rtt_us = rtt_us;
	state->flow.clean_rtt_us = clean;
	return settings_now->clean ? clean : rtt_us;
}

// --- Pacing ---------------------------------------------------------------------------------------------

// The mean rate in bytes per second, 0 if there is none yet.
static __always_inline __u64 mean_rate(struct sock *sk, struct settings *settings)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 window = tp->snd_cwnd, srtt_us = tp->srtt_us >> 3, rate, ceiling = sk->sk_max_pacing_rate;

	rate = settings->rate;
	if (!rate && srtt_us) {
		if (window < tp->packets_out)
			window = tp->packets_out;
		rate = window * tp->mss_cache * 1000000 / srtt_us;
		rate = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 2 * rate : rate * 6 / 5;
	}
	return rate < ceiling ? rate : ceiling;
}

// The rate at which a connection of the fixed rate `rate` sends now. The kernel shortens a wait by the
// lateness of the transmission before, by half of the wait at most, and a gate gives up what did not fit into
// its slots: the bytes sent so far show what is missing. After a pause of the application it is BEHIND_NS.
static __always_inline __u64 caught_up_rate(struct sock *sk, struct state *state, __u64 rate)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now = bpf_ktime_get_ns(), sent = tp->bytes_sent;

	state->due_ns += (sent - state->due_bytes) * NS_PER_SEC / rate;
	state->due_bytes = sent;
	// The kernel asks for the rate at ACKs too, within the wait after a transmission. A time far ahead is that
	// of bytes before the rate was fixed.
	if (state->due_ns > now + BEHIND_NS)
		state->due_ns = now;
	if (state->due_ns >= now)
		return rate;
	if (now - state->due_ns > BEHIND_NS)
		state->due_ns = now - BEHIND_NS;
	return rate + rate / 1000 * ((now - state->due_ns) / (CATCH_UP_NS / 1000));
}

// The time at which `wait_ns` have passed, `offset` after the start of the period, on a clock that runs in
// open slots only.
static __noinline __u64 gate_wait(struct settings *settings, __u64 offset, __u64 wait_ns)
{
	__u64 slot_ns, slots, open, slot, rest, passed = 0;
	int step;

	if (!settings)
		return wait_ns;
	slot_ns = settings->slot_ns;
	slots = settings->slots;
	open = settings->open;
	if (!slot_ns || !slots)
		return wait_ns;
	slot = offset / slot_ns;
	rest = (slot + 1) * slot_ns - offset;
	for (step = 0; step < 2 * MAX_SLOTS; step++) {
		if (open >> (slot & 63) & 1) {
			if (wait_ns < rest)
				return passed + wait_ns;
			wait_ns -= rest;
		}
		passed += rest;
		rest = slot_ns;
		slot = slot + 1 == slots ? 0 : slot + 1;
	}
	return passed;
}

// Bytes that the next transmission has at most, if it has up to `segments`.
static __always_inline __u64 next_bytes(struct sock *sk, __u64 segments)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	__u64 quota = tp->snd_cwnd > in_flight ? tp->snd_cwnd - in_flight : 1;
	__u64 unsent = tp->write_seq - tp->snd_nxt, bytes;

	if (quota > tp->snd_cwnd / 2 && tp->snd_cwnd > 1)
		quota = tp->snd_cwnd / 2;
	bytes = (segments < quota ? segments : quota) * tp->mss_cache;
	return unsent && unsent < bytes ? unsent : bytes;
}

// Bytes by which the kernel enlarges transmissions of connections with short round trips (tcp_tso_autosize).
static __always_inline __u64 near_bytes(struct sock *sk)
{
	__u32 log = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_tso_rtt_log;
	__u32 shift = log < 32 ? tcp_sk(sk)->rtt_min.s[0].v >> log : 32;

	return shift < 32 ? sk->sk_gso_max_size >> shift : 0;
}

// Sets the rate such that the packet after the next transmission leaves in an open slot. Returns the segments
// of the next transmission.
static __always_inline __u32 gate(struct sock *sk, struct state *state, struct settings *settings,
				  struct hint *hint, __u64 rate)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now = bpf_ktime_get_ns(), slots = settings->slots, slot_ns = settings->slot_ns, open_count = 0;
	__u64 period = slots * slot_ns, mss = tp->mss_cache, offset, burst, bytes, wait, credit, slot, room, step;
	__u64 segments, near, full, fit;

	for (step = 0; step < MAX_SLOTS; step++)
		open_count += settings->open >> step & 1;
	if (!period || !open_count || !mss)
		return 1;
	// Within open slots the rate is higher by the share of the closed ones.
	burst = rate * slots / open_count;
	offset = (now + hint->realtime_ns + period - settings->phase_ns % period) % period;
	slot = offset / slot_ns;
	// Room until the open slots end, as far as a transmission reaches.
	room = (slot + 1) * slot_ns - offset;
	for (step = 1; step < 8 && room < 2 * NS_PER_MS; step++) {
		slot = slot + 1 == slots ? 0 : slot + 1;
		if (!(settings->open >> (slot & 63) & 1))
			break;
		room += slot_ns;
	}
	// The kernel sends as many segments as take 1 ms at the set rate, more on short round trips. Within open
	// slots these are `full`. The transmission that ends them takes a little longer than the room, so that the
	// set rate, which then spans the closed slots too, is low.
	near = near_bytes(sk);
	full = ((burst >> 10) + near) / mss;
	if (full > sk->sk_gso_max_size / mss)
		full = sk->sk_gso_max_size / mss;
	fit = burst * room / NS_PER_SEC / mss;
	segments = 1;
	bytes = near / mss;
	if (settings->open >> ((offset / slot_ns) & 63) & 1) {
		if (fit > full)
			bytes = full;
		else
			segments = fit + 1;
	}
	bytes = next_bytes(sk, bytes > segments ? bytes : segments);
	wait = bytes * NS_PER_SEC / (burst ? burst : 1);
	wait = gate_wait(settings, offset, wait < period ? wait : period);
	if (!wait)
		wait = 1;
	// The kernel shortens a wait by the lateness of this transmission, by half at most.
	credit = now > tp->tcp_wstamp_ns ? now - tp->tcp_wstamp_ns : 0;
	wait += credit < wait ? credit : wait;
	sk->sk_pacing_rate = bytes * NS_PER_SEC / wait + 1;
	return segments;
}

static __always_inline __u32 pace(struct sock *sk)
{
	struct settings *settings_now = settings();
	struct hint *hint_now = hint();
	struct state *state_now = state(sk);
	__u64 rate;

	if (!settings_now || !hint_now || !state_now)
		return 2;
	rate = mean_rate(sk, settings_now);
	if (!rate)
		return 2;
	state_now->flow.rate = rate;
	if (rate == settings_now->rate)
		rate = caught_up_rate(sk, state_now, rate);
	if (settings_now->slots && settings_now->gate)
		return gate(sk, state_now, settings_now, hint_now, rate);
	sk->sk_pacing_rate = rate;
	return 1;
}

static __always_inline struct state *begin(struct sock *sk)
{
	struct state *state = bpf_sk_storage_get(&pace_states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	int bin;

	sk->sk_pacing_status = SK_PACING_NEEDED;
	if (!state)
		return 0;
	state->due_ns = bpf_ktime_get_ns();
	state->due_bytes = tcp_sk(sk)->bytes_sent;
	for (bin = 0; bin < BINS; bin++)
		state->least[bin] = ~0U;
	return state;
}

SEC("struct_ops")
__u32 BPF_PROG(pace_min_tso_segs, struct sock *sk)
{
	return pace(sk);
}

SEC("struct_ops")
void BPF_PROG(pace_release, struct sock *sk)
{
	struct key key;

	flow_key(sk, &key);
	bpf_map_delete_elem(&pace_flows, &key);
}

// --- Illinois -------------------------------------------------------------------------------------------

SEC("struct_ops")
void BPF_PROG(illinois_init, struct sock *sk)
{
	struct state *state = begin(sk);

	if (state)
		illinois_reset(state, tcp_sk(sk)->snd_nxt);
}

SEC("struct_ops")
void BPF_PROG(illinois_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *now = state(sk);
	__u32 rtt_us;

	if (!now)
		return;
	now->acked = sample->pkts_acked;
	rtt_us = on_sample(sk, now, sample);
	if (rtt_us)
		illinois_sample(now, rtt_us);
}

SEC("struct_ops")
void BPF_PROG(illinois_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct state *now = state(sk);

	if (now)
		illinois_grow(tcp_sk(sk), now, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(illinois_ssthresh, struct sock *sk)
{
	struct state *now = state(sk);
	__u32 beta = now ? now->beta : ILLINOIS_BETA_MAX, window = tcp_sk(sk)->snd_cwnd;
	__u32 left = window - (__u32)((__u64)window * beta / ILLINOIS_BETA_SCALE);

	return left > 2 ? left : 2;
}

SEC("struct_ops")
void BPF_PROG(illinois_state, struct sock *sk, __u8 new_state)
{
	struct state *now = state(sk);

	if (now && new_state == TCP_CA_Loss)
		illinois_after_timeout(now, tcp_sk(sk)->snd_nxt);
}

SEC("struct_ops")
__u32 BPF_PROG(pace_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops illinois = {
	.name = "pace",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)illinois_init,
	.release = (void *)pace_release,
	.ssthresh = (void *)illinois_ssthresh,
	.cong_avoid = (void *)illinois_cong_avoid,
	.set_state = (void *)illinois_state,
	.pkts_acked = (void *)illinois_acked,
	.min_tso_segs = (void *)pace_min_tso_segs,
	.undo_cwnd = (void *)pace_undo_cwnd,
};

// --- CUBIC ----------------------------------------------------------------------------------------------

SEC("struct_ops")
void BPF_PROG(cubic_init, struct sock *sk)
{
	begin(sk);
	cubictcp_init(sk);
}

SEC("struct_ops")
void BPF_PROG(cubic_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct settings *settings_now = settings();
	struct hint *hint_now = hint();
	struct state *now = state(sk);
	__u32 rtt_us;

	if (!now || !settings_now || !hint_now)
		return;
	rtt_us = on_sample(sk, now, sample);
	// HyStart reads the kernel's sample, which cannot be changed: those that the pattern delayed by more than
	// an eighth of its period are withheld.
	if (settings_now->clean && sample->rtt_us > rtt_us + (__s64)(period_ns(settings_now, hint_now) / 8000))
		return;
	cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(cubic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(cubic_state, struct sock *sk, __u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	cubictcp_cwnd_event(sk, event);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic = {
	.name = "pace",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)cubic_init,
	.release = (void *)pace_release,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_cong_avoid,
	.set_state = (void *)cubic_state,
	.cwnd_event = (void *)cubic_cwnd_event,
	.pkts_acked = (void *)cubic_acked,
	.min_tso_segs = (void *)pace_min_tso_segs,
	.undo_cwnd = (void *)pace_undo_cwnd,
};

// --- Reno -----------------------------------------------------------------------------------------------

SEC("struct_ops")
void BPF_PROG(reno_init, struct sock *sk)
{
	begin(sk);
}

SEC("struct_ops")
void BPF_PROG(reno_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *now = state(sk);

	if (now)
		on_sample(sk, now, sample);
}

SEC("struct_ops")
void BPF_PROG(reno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops reno = {
	.name = "pace",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)reno_init,
	.release = (void *)pace_release,
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.pkts_acked = (void *)reno_acked,
	.min_tso_segs = (void *)pace_min_tso_segs,
	.undo_cwnd = (void *)pace_undo_cwnd,
};

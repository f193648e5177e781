// TCP Illinois (Liu, Basar, Srikant 2008) in integers: growth and reduction of the window follow the mean
// queueing delay of a round trip. The constants are those of Linux's tcp_illinois:
// growth in 1/128 segments per round trip, reduction in 1/64 of the window.

#pragma once

static __always_inline void illinois_begin_round(struct state *state, __u32 snd_nxt)
{
	state->round_end = snd_nxt;
	state->rtt_sum = 0;
	state->rtt_count = 0;
}

static __always_inline void illinois_after_timeout(struct state *state, __u32 snd_nxt)
{
	state->alpha = ILLINOIS_ALPHA_BASE;
	state->beta = ILLINOIS_BETA_MAX;
	state->low_rounds = 0;
	state->was_above = 0;
	illinois_begin_round(state, snd_nxt);
}

static __always_inline void illinois_reset(struct state *state, __u32 snd_nxt)
{
	state->alpha = ILLINOIS_ALPHA_MAX;
	state->beta = ILLINOIS_BETA_MAX;
	state->rtt_base = ~0U;
	state->rtt_max = 0;
	state->acked = 0;
	state->low_rounds = 0;
	state->was_above = 0;
	illinois_begin_round(state, snd_nxt);
}

static __always_inline void illinois_sample(struct state *state, __u32 rtt_us)
{
	if (rtt_us < state->rtt_base)
		state->rtt_base = rtt_us;
	if (rtt_us > state->rtt_max)
		state->rtt_max = rtt_us;
	state->rtt_sum += rtt_us;
	state->rtt_count++;
}

// Growth for the mean queueing delay `mean` of a round trip, with the largest one `largest`.
static __always_inline __u32 illinois_alpha(struct state *state, __u64 mean, __u64 largest)
{
	__u64 low = largest / 100;

	if (mean <= low) {
		if (!state->was_above)
			return ILLINOIS_ALPHA_MAX;
		if (++state->low_rounds < ILLINOIS_THETA)
			return state->alpha;
		state->low_rounds = 0;
		state->was_above = 0;
		return ILLINOIS_ALPHA_MAX;
	}
	state->was_above = 1;
	largest -= low;
	mean -= low;
	return largest * ILLINOIS_ALPHA_MAX /
	       (largest + mean * (ILLINOIS_ALPHA_MAX - ILLINOIS_ALPHA_MIN) / ILLINOIS_ALPHA_MIN);
}

static __always_inline __u32 illinois_beta(__u64 mean, __u64 largest)
{
	__u64 low = largest / 10, high = largest * 8 / 10;

	if (mean <= low)
		return ILLINOIS_BETA_MIN;
	if (mean >= high || high <= low)
		return ILLINOIS_BETA_MAX;
	// Linear from an eighth to a half; the kernel's programs have no signed division, and no term is negative.
	return (ILLINOIS_BETA_MIN * (high - mean) + ILLINOIS_BETA_MAX * (mean - low)) / (high - low);
}

static __always_inline void illinois_end_round(struct tcp_sock *tp, struct state *state)
{
	if (tp->snd_cwnd < ILLINOIS_SMALL_WINDOW) {
		state->alpha = ILLINOIS_ALPHA_BASE;
		state->beta = ILLINOIS_BETA_MAX;
	} else if (state->rtt_count) {
		__u64 largest = state->rtt_max - state->rtt_base;
		__u64 mean = state->rtt_sum / state->rtt_count - state->rtt_base;

		state->alpha = illinois_alpha(state, mean, largest);
		state->beta = illinois_beta(mean, largest);
	}
	illinois_begin_round(state, tp->snd_nxt);
}

static __always_inline void illinois_grow(struct tcp_sock *tp, struct state *state, __u32 ack, __u32 acked)
{
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	__u64 delta;

	if ((__s32)(ack - state->round_end) > 0)
		illinois_end_round(tp, state);
	// As tcp_is_cwnd_limited of the kernel.
	if (!BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) &&
	    !(slow_start && tp->snd_cwnd < 2 * tp->max_packets_out))
		return;
	if (slow_start) {
		tcp_slow_start(tp, acked);
		return;
	}
	tp->snd_cwnd_cnt += state->acked;
	state->acked = 1;
	delta = (__u64)tp->snd_cwnd_cnt * state->alpha >> ILLINOIS_ALPHA_SHIFT;
	if (delta >= tp->snd_cwnd) {
		__u64 window = tp->snd_cwnd + delta / (tp->snd_cwnd ? tp->snd_cwnd : 1);

		tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
		tp->snd_cwnd_cnt = 0;
	}
}

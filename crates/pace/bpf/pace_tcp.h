// The parts of the kernel's TCP structures that the programs use. The loader adjusts the offsets to the
// running kernel by its type information (BTF, CO-RE), so that no vmlinux.h is needed.

#pragma once

#include <linux/types.h>

typedef _Bool bool;

// linux/tcp.h: the gap between two internal pacing states.
#define SK_PACING_NEEDED 1
// net/tcp_states, TCP_CA_Loss of linux/tcp.h.
#define TCP_CA_Loss 4
#define TCP_INFINITE_SSTHRESH 0x7fffffff
// include/net/tcp.h: the struct may be used by processes without CAP_NET_ADMIN, and as a namespace's default.
#define TCP_CONG_NON_RESTRICTED 1
// linux/socket.h
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct netns_ipv4 {
	__u8 sysctl_tcp_tso_rtt_log;
};

struct net {
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct sock_common {
	possible_net_t skc_net;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sk_buff {
	struct sk_buff *next;
	unsigned int len;
};

struct sk_buff_head {
	struct sk_buff *next;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_write_queue;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 srtt_us;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 write_seq;
	__u32 prior_cwnd;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 max_packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 mss_cache;
	__u32 total_retrans;
	__u64 bytes_acked;
	__u64 bytes_sent;
	__u64 tcp_wstamp_ns;
	struct minmax rtt_min;
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

#pragma clang attribute pop

// net/tcp.h; the value is passed on.
enum tcp_ca_event { CA_EVENT_TX_START };

// The operations that the programs define; the loader matches them by name with the kernel's.
struct tcp_congestion_ops {
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
};

// Functions of the kernel (tcp_cong.c, tcp_cubic.c).
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void cubictcp_init(struct sock *sk) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym __weak;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym __weak;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym __weak;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym __weak;

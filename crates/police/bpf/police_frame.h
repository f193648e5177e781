/* Headers of a frame down to TCP: crates/pep/src/ack_policer/frame.rs in C, in the same steps. */

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8

/* All headers end before this offset: Ethernet, two tags, PPPoE, IPv6, UDP, GTP-U with four extension
 * headers, IPv4 and TCP with options. */
#define MAX_HEADERS 512

struct segment {
	__u32 seq;
	__u32 ack;
	__u32 payload;
	__u32 segment;
	__u32 len;
	__u16 flags;
	__u16 window;
	__u16 mss;
	__u8 marks;
	__u8 shift;
	__u32 tsval;
	__u32 tsecr;
};

struct frame {
	struct key key;
	struct tunnel tunnel;
	struct segment segment;
};

struct ip {
	__u32 transport;
	__u32 rest;
	__u32 len;
	__u8 protocol;
	__u8 special;
	__u8 ecn;
};

/* A pointer to `len` bytes at `at`, or 0. */
static __always_inline const __u8 *get(struct __sk_buff *skb, __u32 at, __u32 len)
{
	/* The empty instruction keeps the compiler from checking the bound in one register and adding another. */
	__u64 offset = at;
	asm volatile("" : "+r"(offset));
	if (offset > MAX_HEADERS)
		return 0;
	const __u8 *from = (void *)(long)skb->data + offset;
	if ((void *)from + len > (void *)(long)skb->data_end)
		return 0;
	return from;
}

static __always_inline __u16 be16(const __u8 *from)
{
	return (__u16)from[0] << 8 | from[1];
}

static __always_inline __u32 be32(const __u8 *from)
{
	return (__u32)from[0] << 24 | (__u32)from[1] << 16 | (__u32)from[2] << 8 | from[3];
}

static __always_inline int read_ipv4(struct __sk_buff *skb, __u32 at, struct key *key, struct ip *ip)
{
	const __u8 *header = get(skb, at, 20);
	if (!header)
		return -1;
	__u32 words = header[0] & 15;
	__u32 len = be16(header + 2);
	if (header[0] >> 4 != 4 || words < 5 || len < words * 4)
		return -1;
	__u16 fragment = be16(header + 6);
	if (fragment & 0x1fff)
		return -1;
	__builtin_memset(key->src, 0, 12);
	__builtin_memset(key->dst, 0, 12);
	key->src[10] = key->src[11] = key->dst[10] = key->dst[11] = 0xff;
	__builtin_memcpy(key->src + 12, header + 12, 4);
	__builtin_memcpy(key->dst + 12, header + 16, 4);
	ip->transport = at + words * 4;
	ip->rest = len - words * 4;
	ip->len = len;
	ip->protocol = header[9];
	ip->special = words > 5 || (fragment & 0x2000);
	ip->ecn = header[1] & 3;
	return 0;
}

static __always_inline int read_ipv6(struct __sk_buff *skb, __u32 at, struct key *key, struct ip *ip)
{
	const __u8 *header = get(skb, at, 40);
	if (!header || header[0] >> 4 != 6)
		return -1;
	__u32 rest = be16(header + 4);
	__builtin_memcpy(key->src, header + 8, 16);
	__builtin_memcpy(key->dst, header + 24, 16);
	ip->transport = at + 40;
	ip->rest = rest;
	ip->len = rest + 40;
	ip->protocol = header[6];
	ip->special = 0;
	ip->ecn = header[1] >> 4 & 3;
	return 0;
}

/* Global functions, here and below, are checked once by the verifier and not again at each call. */
__noinline int read_ip(struct __sk_buff *skb, __u32 at, __u32 version, struct key *key, struct ip *ip)
{
	if (!key || !ip)
		return -1;
	key->version = version;
	if (version == 4)
		return read_ipv4(skb, at, key, ip);
	if (version == 6)
		return read_ipv6(skb, at, key, ip);
	return -1;
}

/* Ethernet, VLAN tags and PPPoE: the offset and the version of the IP header. A tag that the device has taken
 * out of the frame comes with the packet. */
__noinline int read_link(struct __sk_buff *skb, struct key *key, __u32 *at, __u32 *version)
{
	if (!key || !at || !version)
		return -1;
	const __u8 *header = get(skb, 0, 14);
	if (!header)
		return -1;
	__u32 offset = 14;
	__u16 kind = be16(header + 12);
	__u32 tags = 0;
	if (skb->vlan_present) {
		key->vlan_outer = skb->vlan_tci & 0x0fff;
		tags = 1;
	}
#pragma unroll
	for (int tag = 0; tag < 2; tag++) {
		if (tags < 2 && (kind == ETHERTYPE_VLAN || kind == ETHERTYPE_QINQ)) {
			header = get(skb, offset, 4);
			if (!header)
				return -1;
			__u16 id = be16(header) & 0x0fff;
			if (tags)
				key->vlan_inner = id;
			else
				key->vlan_outer = id;
			tags++;
			kind = be16(header + 2);
			offset += 4;
		}
	}
	if (kind == ETHERTYPE_PPPOE) {
		header = get(skb, offset, 8);
		if (!header || be16(header) != 0x1100)
			return -1;
		key->session = be16(header + 2) + 1;
		__u16 protocol = be16(header + 6);
		if (protocol == PPP_IPV4)
			kind = ETHERTYPE_IPV4;
		else if (protocol == PPP_IPV6)
			kind = ETHERTYPE_IPV6;
		else
			return -1;
		offset += 8;
	}
	*at = offset;
	*version = kind == ETHERTYPE_IPV4 ? 4 : kind == ETHERTYPE_IPV6 ? 6 : 0;
	return *version ? 0 : -1;
}

/* The offset of the IP header inside GTP-U and the TEID, or 0. User data has no TEID of 0. */
__noinline __u32 read_gtp_u(struct __sk_buff *skb, __u32 transport, __u32 *teid)
{
	if (!teid)
		return 0;
	const __u8 *udp = get(skb, transport, 8);
	if (!udp || be16(udp + 2) != GTP_U_PORT)
		return 0;
	__u32 at = transport + 8;
	const __u8 *header = get(skb, at, 8);
	if (!header || header[0] >> 5 != 1 || !(header[0] & 0x10) || header[1] != GTP_U_G_PDU)
		return 0;
	*teid = be32(header + 4);
	if (!*teid)
		return 0;
	__u8 flags = header[0] & 7;
	if (!flags)
		return at + 8;
	header = get(skb, at, 12);
	if (!header)
		return 0;
	__u8 next = header[11];
	__u32 inner = at + 12;
	if (!(flags & 4))
		return inner;
#pragma unroll
	for (int extension = 0; extension < MAX_GTP_EXTENSIONS; extension++) {
		if (!next)
			break;
		header = get(skb, inner, 1);
		if (!header)
			return 0;
		__u32 len = (__u32)header[0] * 4;
		if (!len || len > MAX_GTP_EXTENSION_LEN)
			return 0;
		header = get(skb, inner + len - 1, 1);
		if (!header)
			return 0;
		next = header[0];
		inner += len;
	}
	return next ? 0 : inner;
}

/* The options of a header while they are read. */
struct options {
	__u32 at;
	__u32 len;
	__u32 tsval;
	__u32 tsecr;
	__u16 mss;
	__u8 marks;
	__u8 shift;
	__u8 bytes[MAX_OPTIONS + 24]; /* room behind the last option, so that an index of 6 bits is inside */
};

static __always_inline __u8 option_byte(const struct options *options, __u32 at)
{
	return options->bytes[at & 63];
}

static __always_inline __u32 option_be32(const struct options *options, __u32 at)
{
	return (__u32)option_byte(options, at) << 24 | (__u32)option_byte(options, at + 1) << 16 |
	       (__u32)option_byte(options, at + 2) << 8 | option_byte(options, at + 3);
}

/* Reads one option; 1 behind the last one. */
static long read_option(__u32 index, struct options *options)
{
	__u32 at = options->at;
	if (at >= options->len)
		return 1;
	__u8 kind = option_byte(options, at);
	if (!kind)
		return 1;
	if (kind == 1) {
		options->at = at + 1;
		return 0;
	}
	__u32 size = at + 2 > options->len ? 0 : option_byte(options, at + 1);
	if (size < 2 || at + size > options->len) {
		options->marks |= MARK_OPTIONS | MARK_FORBIDS;
		return 1;
	}
	if (kind == 2 && size == 4) {
		options->mss = (__u16)option_byte(options, at + 2) << 8 | option_byte(options, at + 3);
		options->marks |= MARK_OPTIONS;
	} else if (kind == 3 && size == 3) {
		__u8 shift = option_byte(options, at + 2);
		options->shift = shift < 14 ? shift : 14;
		options->marks |= MARK_OPTIONS | MARK_SCALE;
	} else if (kind == 4 && size == 2) {
		options->marks |= MARK_OPTIONS;
	} else if (kind == 5 && (size == 10 || size == 18 || size == 26 || size == 34)) {
		options->marks |= MARK_SACK;
	} else if (kind == 8 && size == 10) {
		options->tsval = option_be32(options, at + 2);
		options->tsecr = option_be32(options, at + 6);
		options->marks |= MARK_TIMESTAMPS;
	} else {
		options->marks |= MARK_OPTIONS | MARK_FORBIDS;
	}
	options->at = at + size;
	return 0;
}

/* The options from `start` on; `len` bytes of them are in the header. */
static __always_inline int read_options(struct __sk_buff *skb, __u32 start, __u32 len,
					struct segment *segment)
{
	if (!len)
		return 0;
	if (len == 12) { /* the usual list of an established connection: NOP, NOP, timestamps */
		const __u8 *usual = get(skb, start, 12);
		if (!usual)
			return -1;
		if (usual[0] == 1 && usual[1] == 1 && usual[2] == 8 && usual[3] == 10) {
			segment->tsval = be32(usual + 4);
			segment->tsecr = be32(usual + 8);
			segment->marks |= MARK_TIMESTAMPS;
			return 0;
		}
	}
	if (len > MAX_OPTIONS)
		return -1;
	/* The mask changes nothing. It shows the bounds 1 and 64 to the verifier of Linux 6.1, and the empty
	 * instruction keeps the compiler from leaving it out. */
	__u32 last = len - 1;
	asm volatile("" : "+r"(last));
	len = (last & 63) + 1;
	struct options options = { .len = len };
	if (bpf_skb_load_bytes(skb, start, options.bytes, len))
		return -1;
	bpf_loop(MAX_OPTIONS, read_option, &options, 0);
	segment->mss = options.mss;
	segment->shift = options.shift;
	segment->tsval = options.tsval;
	segment->tsecr = options.tsecr;
	segment->marks |= options.marks;
	return 0;
}

__noinline int read_tcp(struct __sk_buff *skb, struct ip *ip, struct frame *frame)
{
	if (!ip || !frame)
		return -1;
	__u32 super_segment = skb->gso_size;
	struct segment *segment = &frame->segment;
	if (ip->protocol != PROTOCOL_TCP)
		return -1;
	const __u8 *header = get(skb, ip->transport, 20);
	if (!header)
		return -1;
	__u32 header_len = (header[12] >> 4) * 4;
	if (header_len < 20 || ip->rest < header_len)
		return -1;
	frame->key.src_port = be16(header);
	frame->key.dst_port = be16(header + 2);
	segment->payload = ip->rest - header_len;
	segment->seq = be32(header + 4);
	segment->ack = be32(header + 8);
	segment->flags = be16(header + 12) & 0x0fff;
	segment->window = be16(header + 14);
	segment->segment = super_segment ? super_segment : segment->payload;
	segment->len = ip->len;
	if (ip->special)
		segment->marks |= MARK_SPECIAL;
	if (ip->ecn)
		segment->marks |= MARK_IP_ECN;
	/* The whole list must be there, as in frame.rs. */
	__u32 len = header_len - 20;
	if (len && !get(skb, ip->transport + 20 + len - 1, 1))
		return -1;
	return read_options(skb, ip->transport + 20, len, segment);
}

static __always_inline int read_bytes(struct __sk_buff *skb, const struct policy *policy, struct frame *frame)
{
	struct ip ip = {};
	__u32 at = 0, version = 0;
	if (policy->ip_link) {
		const __u8 *first = get(skb, 0, 1);
		if (!first)
			return -1;
		version = first[0] >> 4;
	} else if (read_link(skb, &frame->key, &at, &version)) {
		return -1;
	}
	if (read_ip(skb, at, version, &frame->key, &ip))
		return -1;
	if (ip.protocol == PROTOCOL_UDP && policy->gtp && !ip.special) {
		__u32 inner = read_gtp_u(skb, ip.transport, &frame->tunnel.teid);
		const __u8 *first = inner ? get(skb, inner, 1) : 0;
		if (!first)
			return -1;
		__builtin_memcpy(frame->tunnel.end, frame->key.dst, 16);
		if (read_ip(skb, inner, first[0] >> 4, &frame->key, &ip))
			return -1;
	}
	return read_tcp(skb, &ip, frame);
}

/* 0 if the frame holds a TCP segment that was read. A global function, which the verifier checks once. */
__noinline int read_frame(struct __sk_buff *skb, struct policy *policy, struct frame *frame)
{
	if (!policy || !frame)
		return -1;
	__u32 linear = (__u32)(skb->data_end - skb->data);
	if (linear < skb->len && linear < MAX_HEADERS) {
		/* Headers that lie outside the linear part are drawn into it. */
		__u32 want = skb->len < MAX_HEADERS ? skb->len : MAX_HEADERS;
		if (!read_bytes(skb, policy, frame))
			return 0;
		__builtin_memset(frame, 0, sizeof(*frame));
		if (bpf_skb_pull_data(skb, want))
			return -1;
	}
	return read_bytes(skb, policy, frame);
}

static __always_inline void reverse(struct key *key)
{
	__u8 address[16];
	__u16 port = key->src_port;
	__builtin_memcpy(address, key->src, 16);
	__builtin_memcpy(key->src, key->dst, 16);
	__builtin_memcpy(key->dst, address, 16);
	key->src_port = key->dst_port;
	key->dst_port = port;
}

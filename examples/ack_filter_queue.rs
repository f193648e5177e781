//! The ACK filter as the uplink queue of one's own link: a burst of ACKs waits for a grant, and what
//! the published schemes make of it. (`Scheme::Safe` discards only after it has seen a handshake.)

use paceline_net::test_support::segment;
use paceline_net::{Bytes, Instant, SduQueue};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};

pub fn main() {
    for scheme in
        [Scheme::Basic, Scheme::Passive { ratio: 0.5 }, Scheme::Active { threshold: 3 }, Scheme::HybridOpt]
    {
        let mut queue = AckFilter::new(AckFilterConfig {
            scheme,
            limit: Bytes(256_000),
            segment: Bytes(1448),
            header: Bytes(58),
        });
        // Forty ACKs, one for every second segment, arrive within 4 ms.
        for number in 1..=40 {
            let ack = segment().ack(1 + number * 2 * 1448).window(4000).build();
            queue.push(Instant::from_nanos(u64::from(number) * 100_000), ack);
        }
        // The station was served a block of 20 kB meanwhile; now it gets a grant of 400 bytes.
        let now = Instant::from_millis(8);
        queue.on_peer_block(Bytes(20_000));
        queue.on_grant(now, Bytes(400), Bytes(3));
        let mut sent = 0;
        while queue.head_len().is_some_and(|len| (sent + 1) * (len.0 + 3) <= 400) {
            queue.pop(now);
            sent += 1;
        }
        let counters = queue.counters();
        println!("{scheme}: {sent} sent, {} discarded, {} wait", counters.acks_discarded, queue.packets());
    }
}

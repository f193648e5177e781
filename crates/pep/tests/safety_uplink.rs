//! The rules for live traffic, fifth part: what goes upwards, and what the ends hear of it.

mod bed;

use bed::*;
use paceline_net::TcpHeader;
use paceline_pep::accelerator::{AcceleratorConfig, Side};

fn open(change: impl FnOnce(&mut Bed)) -> Bed {
    let mut bed = Bed::open_with(AcceleratorConfig::default(), change);
    bed.clear();
    bed
}
fn echo(tcp: &TcpHeader) -> u32 {
    tcp.options.timestamps.expect("they were agreed on").ecr
}

/// Row "window scale, timestamps": a TSecr is that of the acknowledged segment. Data that acknowledge nothing new keep their
/// own: from it Linux's servers take the round trip that their receive windows grow by, and the segment that has just come
/// here is not what the client has answered.
#[test]
fn data_of_the_client_keep_their_own_echo_and_news_goes_ahead_of_them() {
    for batch in [false, true] {
        let mut bed = open(|_| ());
        let off = bed.send(1, 1);
        bed.wait(25);
        bed.echo[0] = bed.clock.wrapping_sub(25);
        bed.ack(off);
        bed.wait(50);
        bed.clear();
        let news = bed.server_data(off, SEGMENT);
        if batch {
            bed.accelerator.input(bed.now, Side::Server, news);
        } else {
            bed.server_gives(news);
        }
        let data = bed.client_packet(bed.client_next, Some(off), ACK, SEGMENT, |_| ());
        let own = echo(&header(&data));
        bed.client_gives(data);
        let up: Vec<TcpHeader> = bed.taken_by_server().iter().map(header).collect();
        assert_eq!(up.iter().map(|tcp| tcp.payload_len).collect::<Vec<_>>(), [0, SEGMENT]);
        assert!(up.iter().all(|tcp| bed.offset(tcp.ack) == off + 1000));
        assert_eq!((echo(&up[0]), echo(&up[1])), (bed.clock, own));
        assert_ne!(own, bed.clock);
        // What is empty may tell news itself.
        bed.client_next += SEGMENT;
        let fin = bed.client_packet(bed.client_next, Some(off), FIN, 0, |_| ());
        bed.client_gives(fin);
        assert_eq!(echo(&header(&bed.to_server[0])), bed.clock);
    }
}

//! Whole transfers through the accelerator, between endpoints like Linux's.

mod world;

use paceline_net::Bytes;
use paceline_pep::AcceleratorConfig;
use paceline_tcp::Source;
use world::*;

fn lines(rate: &str, delay_ms: u64, queue: u64) -> [Line; 2] {
    [Line::rate(rate, delay_ms, queue), Line::rate("50 Mb/s", delay_ms, 1_000_000)]
}

#[test]
fn a_file_arrives_whole_and_faster() {
    let mut times = Vec::new();
    for accelerator in [None, Some(AcceleratorConfig::default())] {
        let source = Source::File(Bytes(10_000_000));
        let mut world = World::download(source, accelerator, 20, lines("40 Mb/s", 15, 4_000_000));
        world.run_ms(20_000);
        assert_eq!(world.received(), 10_000_000);
        let done = world.delivered.iter().find(|(_, read)| *read == 10_000_000).unwrap().0;
        println!("done at {done:?}, p95 {} ms", world.mobile[0].percentile_ms(0.95));
        if let Middle::Accelerator(accelerator) = &world.middle {
            println!("{:?}", accelerator.stats());
            assert_eq!(accelerator.flow_count(), 0);
        }
        times.push(done);
    }
    assert!(times[1] < times[0], "{times:?}");
}

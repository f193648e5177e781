#![allow(missing_docs)]
#[path = "../benches/speed/dumbbell.rs"]
mod dumbbell;
fn main() {
    let secs: u64 = std::env::args().nth(1).map_or(60, |s| s.parse().unwrap());
    let cpu = || -> u64 {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    let (mut e, core) = dumbbell::dumbbell(0);
    let b = cpu();
    e.run_until(paceline_net::Instant::from_millis(secs * 1000));
    let spent = (cpu() - b) as f64 / 1e9;
    println!(
        "{:.1} sim s/CPU s; {:.2} Mb/s {} packets handled {:?}",
        secs as f64 / spent,
        dumbbell::goodput_mbps(&e, core),
        e.packets_handled(),
        e.drops()
    );
}

//! `cargo bench -p paceline-ran`: nanoseconds per SDU and per transport block of RLC NR, transmitting and
//! receiving end, with status reports in AM. SDUs have 1503 bytes: 1448 of TCP, its headers and PDCP's.

use paceline_ran::rlc_nr::{Am, AmConfig, SduSource, SnLength, Um, UmConfig};
use paceline_ran::{Slot, SlotClock};

/// Length of an SDU in bytes.
const SDU_BYTES: u32 = 1503;
/// SDUs of a run. Chosen: some 0.1 s.
const SDUS: u64 = 2_000_000;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux accounts CPU time");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("its first field is the time")
}

/// SDUs named by their number; an SDU has the size of a boxed packet with its COUNT.
struct Source {
    next: u64,
    end: u64,
}

impl SduSource<(u64, u64)> for Source {
    fn pull(&mut self) -> Option<((u64, u64), u32)> {
        let number = self.next;
        self.next += 1;
        (number < self.end).then_some(((number, number), SDU_BYTES))
    }
    fn is_empty(&self) -> bool {
        self.next >= self.end
    }
}

/// Sends all SDUs in blocks of `room` bytes, of which `loss` in a thousand need a retransmission by RLC; the
/// number of blocks.
fn am(sn: SnLength, room: u32, loss: u64) -> u64 {
    let mut am = Am::new(AmConfig { sn, ..AmConfig::new(SlotClock::default()) });
    let mut source = Source { next: 0, end: SDUS };
    let (mut slot, mut delivered, mut flying) = (0, 0, std::collections::VecDeque::new());
    while delivered < SDUS {
        if let Some(block) = am.pull(Slot(slot), &mut source, room) {
            flying.push_back((slot + 4, block));
        }
        while let Some((_, block)) = flying.pop_front_if(|(due, _)| *due <= slot) {
            if slot.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1000 >= loss {
                am.receive(Slot(slot), &block, |_| delivered += 1);
            }
        }
        am.check_timers(Slot(slot), source.is_empty());
        if let Some(status) = am.pull_status(Slot(slot), 1000) {
            am.on_status(&status);
        }
        slot += 1;
    }
    slot
}

fn um(sn: SnLength, room: u32) -> u64 {
    let mut um = Um::new(UmConfig { sn, ..UmConfig::new(SlotClock::default()) });
    let mut source = Source { next: 0, end: SDUS };
    let (mut slot, mut delivered, mut flying) = (0, 0, std::collections::VecDeque::new());
    while delivered < SDUS {
        flying.extend(um.pull(&mut source, room).map(|block| (slot + 4, block)));
        while let Some((_, block)) = flying.pop_front_if(|(due, _)| *due <= slot) {
            um.receive(Slot(slot), &block, |_| delivered += 1, |_| unreachable!("nothing is lost"));
        }
        slot += 1;
    }
    slot
}

fn main() {
    println!("{:<52} {:>12} {:>14}", "RLC NR", "ns per SDU", "ns per block");
    for room in [2_000, 15_000, 147_000] {
        let row = |name: &str, run: &dyn Fn() -> u64| {
            let mut times: Vec<(f64, u64)> = (0..5)
                .map(|_| {
                    let begin = cpu_ns();
                    let blocks = run();
                    ((cpu_ns() - begin) as f64, blocks)
                })
                .collect();
            times.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (ns, blocks) = times[2];
            let name = format!("{name}, blocks of {room} bytes");
            println!("{name:<52} {:>12.1} {:>14.0}", ns / SDUS as f64, ns / blocks as f64);
        };
        row("UM 12 bits", &|| um(SnLength::Long, room));
        row("AM 18 bits", &|| am(SnLength::Long, room, 0));
        row("AM 18 bits, 1% of blocks lost", &|| am(SnLength::Long, room, 10));
    }
}

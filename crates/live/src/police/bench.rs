//! The programs on frames of a test.

use super::{Link, Loaded, OBSERVE, POLICE, PoliceConfig, layout};
use anyhow::anyhow;
use libbpf_rs::{MapCore, ProgramInput};

/// The programs on frames of a test instead of an interface's (`BPF_PROG_TEST_RUN`).
pub struct Bench(Loaded);

impl Bench {
    /// Loads the programs; times come with the frames.
    pub fn new(config: &PoliceConfig, link: Link) -> anyhow::Result<Self> {
        Loaded::new(config, link == Link::Ip, true).map(Self)
    }
    /// The program's decision on a frame in the policed direction, as a number of
    /// [`paceline_pep::ack_policer::Reason`]; `None` for a frame without a segment.
    pub fn police(&self, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<Option<u8>> {
        let value = self.run(POLICE, frame, now, super_segment)?;
        Ok(value.checked_sub(layout::TEST_REASON).and_then(|reason| u8::try_from(reason).ok()))
    }
    /// Shows the program a frame in the data direction.
    pub fn observe(&self, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<()> {
        self.run(OBSERVE, frame, now, super_segment).map(|_| ())
    }
    /// Connections in the program's table.
    pub fn flows(&self) -> anyhow::Result<usize> {
        Ok(self.0.map("flows")?.keys().count())
    }
    fn run(&self, name: &str, frame: &[u8], now: u64, super_segment: u32) -> anyhow::Result<u32> {
        let program = self.0.0.progs_mut().find(|program| program.name() == name);
        let mut context = [0; layout::SK_BUFF_SIZE as usize];
        let mut put = |at: u32, bytes: &[u8]| context[at as usize..][..bytes.len()].copy_from_slice(bytes);
        put(layout::SK_BUFF_TSTAMP, &now.to_ne_bytes());
        put(layout::SK_BUFF_GSO_SIZE, &super_segment.to_ne_bytes());
        let input =
            ProgramInput { data_in: Some(frame), context_in: Some(&mut context), ..Default::default() };
        let output = program.ok_or_else(|| anyhow!("there is no program {name}"))?.test_run(input)?;
        Ok(output.return_value)
    }
}

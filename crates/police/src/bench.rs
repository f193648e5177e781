//! The programs on frames of a test.

use super::{FirstHeader, Loaded, OBSERVE, POLICE, PoliceConfig, layout};
use anyhow::anyhow;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore, ProgramInput};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The programs on frames of a test instead of an interface's (`BPF_PROG_TEST_RUN`).
pub struct Bench(Loaded);

/// Has the kernel measure run times while the descriptor is open (BPF_ENABLE_STATS, Linux 5.8).
pub fn run_times() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    #[allow(unsafe_code)]
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the descriptor is new and nobody else's.
    #[allow(unsafe_code)]
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Bench {
    /// Loads the programs with the clock of the kernel, as at an interface; decisions are not told apart.
    pub fn with_kernel_clock(config: &PoliceConfig) -> anyhow::Result<Self> {
        Loaded::new(config, false, false).map(Self)
    }
    /// Loads the programs; times come with the frames.
    pub fn new(config: &PoliceConfig, link: FirstHeader) -> anyhow::Result<Self> {
        Loaded::new(config, link == FirstHeader::Ip, true).map(Self)
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
    /// The verdict of a program on a frame.
    pub fn run_frame(&self, name: &str, frame: &[u8]) -> anyhow::Result<u32> {
        self.run(name, frame, 0, 0)
    }
    /// Time in ns and number of runs of a program (`police`, `observe`) since it was loaded; they count while
    /// [`run_times`] is held.
    pub fn run_time(&self, name: &str) -> anyhow::Result<(u64, u64)> {
        let id = self.0.id(name)?;
        let program = ProgInfoIter::default().find(|program| program.id == id);
        let program = program.ok_or_else(|| anyhow!("the kernel does not list the program"))?;
        Ok((program.run_time_ns, program.run_cnt))
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

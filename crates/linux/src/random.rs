//! Random numbers from the kernel, for hash keys that outsiders must not know.

use anyhow::Context;

/// 64 random bits from `/dev/urandom`.
pub fn random() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let mut file = std::fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    std::io::Read::read_exact(&mut file, &mut bytes).context("cannot read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

//! TTLs and hop limits of an end's segments, beside those of its handshake.

/// The TTLs or hop limits of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct HopLimits {
    handshake: Option<u8>,
    other: Option<u8>,
    same: u64,
    changed: u64,
}

impl HopLimits {
    /// A segment of the end.
    pub fn add(&mut self, ttl: u8, is_syn: bool) {
        if is_syn {
            self.handshake = Some(ttl);
        } else if self.handshake.is_some_and(|handshake| handshake != ttl) {
            (self.changed, self.other) = (self.changed + 1, Some(ttl));
        } else {
            self.same += 1;
        }
    }

    /// That of the handshake and the last other one.
    pub fn both(&self) -> Option<(u8, u8)> {
        self.handshake.zip(self.other)
    }

    /// Segments after the handshake with another one than it had, and all of them.
    pub const fn changed(&self) -> (u64, u64) {
        (self.changed, self.changed + self.same)
    }
}

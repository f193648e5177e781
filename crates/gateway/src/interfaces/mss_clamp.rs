//! The key `mss_clamp`: the highest segment size that the SYNs of both directions may announce (RFC 879, RFC
//! 6691), so that connections fit into a path with a smaller MTU also where packet-too-big messages are lost.
//!
//! SYNs that stay in the kernel are changed by the kernel program (`bpf/clamp.h`), those of a worker before
//! its accelerator sees them, whose segments are therefore no longer either. Other packets are not changed.

use crate::datapath::frame::Link;
use paceline_net::mss::{self, IPV4_LEN, IPV6_LEN, TCP_LEN};
use paceline_net::{Packet, TcpFlags};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Smallest limit in bytes. Same as the size that a SYN without the option announces (RFC 879).
const LEAST: u16 = 536;
/// Largest limit in bytes. Derived from the longest IPv4 datagram, less headers.
const MOST: u16 = 65_535 - IPV4_LEN - TCP_LEN;
/// The value that derives the limit from the MTUs.
const AUTO: &str = "auto";

/// A value of the key `mss_clamp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MssClamp {
    /// The shorter MTU of both interfaces, less encapsulation and headers.
    Auto,
    /// Bytes of payload over IPv4. Over IPv6, whose header is longer, 20 bytes less: packets of equal length.
    Bytes(u16),
}

impl Serialize for MssClamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::Bytes(bytes) => serializer.serialize_u16(*bytes),
        }
    }
}

impl<'de> Deserialize<'de> for MssClamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        fn refused<E: Error>(value: impl fmt::Display) -> E {
            E::custom(format!("mss_clamp = {value}: allowed: {LEAST} to {MOST} bytes, or \"{AUTO}\""))
        }
        impl Visitor<'_> for Value {
            type Value = MssClamp;
            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(text, "mss_clamp of {LEAST} to {MOST} bytes, or \"{AUTO}\"")
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<MssClamp, E> {
                let bytes = u16::try_from(value).ok().filter(|bytes| (LEAST..=MOST).contains(bytes));
                bytes.map(MssClamp::Bytes).ok_or_else(|| refused(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<MssClamp, E> {
                self.visit_i64(i64::try_from(value).map_err(|_| refused::<E>(value))?)
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<MssClamp, E> {
                if value == AUTO { Ok(MssClamp::Auto) } else { Err(refused(format!("{value:?}"))) }
            }
        }
        deserializer.deserialize_any(Value)
    }
}

/// The limit in force, as the kernel program and the workers need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clamp {
    /// Highest segment size over IPv4; 0: none is configured.
    pub mss: u16,
    /// Shorter MTU of both interfaces; 0: no limit follows from it.
    pub mtu: u16,
}

impl Clamp {
    /// The limit for interfaces whose shorter MTU is `mtu`.
    pub fn new(key: Option<MssClamp>, mtu: u32) -> Self {
        match key {
            None => Self::default(),
            Some(MssClamp::Bytes(mss)) => Self { mss, mtu: 0 },
            Some(MssClamp::Auto) => Self { mss: 0, mtu: u16::try_from(mtu).unwrap_or(u16::MAX) },
        }
    }
    /// Lowers the segment size that a SYN announces which arrived with the link header `link`.
    pub fn apply(self, link: &Link, packet: &mut Packet) {
        let is_syn = packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(TcpFlags::SYN));
        if self == Self::default() || !is_syn {
            return;
        }
        if let Some(most) = self.highest(link.overhead(), packet.ip.src.is_ipv4()) {
            mss::clamp(packet, most);
        }
    }
    /// The highest segment size of a connection whose encapsulation takes `overhead` bytes of the MTU.
    fn highest(self, overhead: u16, v4: bool) -> Option<u16> {
        let ip = if v4 { IPV4_LEN } else { IPV6_LEN };
        if self.mss > 0 {
            return Some(self.mss - (ip - IPV4_LEN));
        }
        self.mtu.checked_sub(overhead + ip + TCP_LEN).filter(|mss| *mss > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_from_the_mtu_less_all_headers() {
        let auto = |mtu| Clamp::new(Some(MssClamp::Auto), mtu);
        // Plain, second VLAN tag, PPPoE, GTP-U over IPv4 and IPv6 with an extension header.
        for (overhead, v4, v6) in
            [(0, 1460, 1440), (4, 1456, 1436), (8, 1452, 1432), (44, 1416, 1396), (64, 1396, 1376)]
        {
            assert_eq!(auto(1500).highest(overhead, true), Some(v4));
            assert_eq!(auto(1500).highest(overhead, false), Some(v6));
        }
        assert_eq!(auto(65_536).highest(0, true), Some(MOST));
        assert_eq!(auto(40).highest(0, true), None);
        assert_eq!(Clamp::new(None, 1400).highest(0, true), None);
    }

    #[test]
    fn a_number_makes_packets_of_equal_length_over_both_versions() {
        let fixed = Clamp::new(Some(MssClamp::Bytes(1360)), 1500);
        assert_eq!(fixed.highest(44, true).unwrap() + 40, 1400);
        assert_eq!(fixed.highest(0, false).unwrap() + 60, 1400);
    }
}

//! The random assignment of devices to the two arms of an experiment.
//!
//! A device is an IPv4 address or an IPv6 /64, as for the rate control. The kernel program has the same hash
//! in C (`crates/gateway/bpf/experiment.h`); `crates/gateway/tests/experiment.rs` compares the two.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// The treatment of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Its new connections are treated as the policy says.
    Accelerated,
    /// Its new connections are left to the kernel.
    Untouched,
}

/// The choice of the devices that are accelerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Seed of the hash.
    pub seed: u32,
    /// Devices of 65536 that are accelerated.
    pub share: u32,
}

impl Assignment {
    /// All devices are accelerated. By definition of `share`.
    pub const ALL: Self = Self { seed: 0, share: 1 << 16 };

    /// An assignment with a share from 0 to 1.
    pub fn new(seed: u32, share: f64) -> Self {
        Self { seed, share: (share.clamp(0.0, 1.0) * 65_536.0) as u32 }
    }
    /// The arm of the device that has an address.
    pub fn arm(&self, address: IpAddr) -> Arm {
        if hash(self.seed, address) >> 16 < self.share { Arm::Accelerated } else { Arm::Untouched }
    }
}

/// The device that has an address, as an address: of IPv6 the /64.
pub fn device_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

/// Hash of the two words that name the device: of IPv4 those of `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
fn hash(seed: u32, address: IpAddr) -> u32 {
    let words = match address {
        IpAddr::V4(v4) => [0xffff, v4.to_bits()],
        IpAddr::V6(v6) => [(v6.to_bits() >> 96) as u32, (v6.to_bits() >> 64) as u32],
    };
    let step = |hash: u32, word: u32| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b1);
        hash ^ hash >> 15
    };
    let hash = words.into_iter().fold(seed, step).wrapping_mul(0x85eb_ca6b);
    hash ^ hash >> 13
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neighbouring addresses get their arms independently of each other: over 400 seeds, each of 256
    /// neighbours is in the first arm about half the time, and neighbours agree about half the time. Limits:
    /// 5 standard deviations of 200 +- 10.
    #[test]
    fn neighbours_are_assigned_independently() {
        let addresses: Vec<IpAddr> = (0..=255).map(|n| [10, 0, 0, n].into()).collect();
        let (mut accelerated, mut agree) = ([0; 256], [0; 255]);
        for seed in 0..400 {
            let assignment = Assignment::new(seed * 2_654_435, 0.5);
            let arms: Vec<Arm> = addresses.iter().map(|address| assignment.arm(*address)).collect();
            arms.iter().zip(&mut accelerated).for_each(|(arm, n)| *n += i32::from(*arm == Arm::Accelerated));
            arms.windows(2).zip(&mut agree).for_each(|(two, n)| *n += i32::from(two[0] == two[1]));
        }
        let fair = |n: &i32| (150..=250).contains(n);
        assert!(accelerated.iter().all(fair), "{accelerated:?}");
        assert!(agree.iter().all(fair), "{agree:?}");
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_device_and_shares_are_kept() {
        let assignment = Assignment::new(7, 0.5);
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..64 {
            let [one, other] = [of(&format!("2001:db8:{n:x}::1")), of(&format!("2001:db8:{n:x}::ffff:2"))];
            assert_eq!(assignment.arm(one), assignment.arm(other));
            assert_eq!(device_of(one), device_of(other));
        }
        for (share, arm) in [(0.0, Arm::Untouched), (1.0, Arm::Accelerated)] {
            assert!((0..=255).all(|n| Assignment::new(n, share).arm([10, 1, 0, n as u8].into()) == arm));
        }
        let count = (0..10_000u32).filter(|n| {
            Assignment::new(9, 0.2).arm(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into())
                == Arm::Accelerated
        });
        assert!((1800..2200).contains(&count.count()), "a fifth");
    }
}

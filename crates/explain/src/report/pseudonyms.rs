//! Pseudonyms of addresses, by which a report can be given away: addresses that share a prefix have
//! pseudonyms that share a prefix of the same length.
//!
//! Crypto-PAn (Xu, Fan, Ammar and Moon, "Prefix-preserving IP address anonymization", ICNP 2002) with
//! AES-128: each bit is flipped by the first bit of the encrypted prefix ahead of it. The 32 bytes of its
//! key are the SHA-256 of the words of the user.

use super::Explanation;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, SocketAddr};

/// Gives pseudonyms.
pub struct Pseudonyms {
    cipher: Aes128,
    /// Encrypted second half of the key, which follows the prefix.
    pad: u128,
}

impl Pseudonyms {
    /// The pseudonyms of a key of any length: the same for all captures.
    pub fn new(key: &str) -> Self {
        Self::of_bytes(&Sha256::digest(key.as_bytes()).into())
    }
    fn of_bytes(key: &[u8; 32]) -> Self {
        let (first, second) = key.split_at(16);
        let half = |bytes: &[u8]| bytes.first_chunk::<16>().copied().unwrap_or_default();
        let cipher = Aes128::new(&half(first).into());
        let mut pseudonyms = Self { cipher, pad: 0 };
        pseudonyms.pad = pseudonyms.encrypt(u128::from_be_bytes(half(second)));
        pseudonyms
    }
    fn encrypt(&self, block: u128) -> u128 {
        let mut block = block.to_be_bytes().into();
        self.cipher.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }
    /// The pseudonym of an address.
    pub fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                IpAddr::V4(((self.flip(u128::from(v4.to_bits()) << 96, 32) >> 96) as u32).into())
            }
            IpAddr::V6(v6) => IpAddr::V6(self.flip(v6.to_bits(), 128).into()),
        }
    }
    /// The pseudonym of the first bits.
    fn flip(&self, address: u128, bits: u32) -> u128 {
        let flips = (0..bits).map(|bit| {
            let behind = u128::MAX.checked_shr(bit).unwrap_or(0);
            let block = address & !behind | self.pad & behind;
            (self.encrypt(block) >> 127) << (127 - bit)
        });
        address ^ flips.fold(0, |sum, flip| sum | flip)
    }
    /// An address and its port, or other text as it is.
    fn end(&self, end: &str) -> String {
        let pseudonym = |end: SocketAddr| SocketAddr::new(self.address(end.ip()), end.port()).to_string();
        end.parse().map_or_else(|_| end.to_owned(), pseudonym)
    }
}

impl Explanation {
    /// Puts pseudonyms in place of all addresses.
    pub fn pseudonymise(&mut self, pseudonyms: &Pseudonyms) {
        for connection in &mut self.connections {
            connection.client = pseudonyms.end(&connection.client);
            connection.server = pseudonyms.end(&connection.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and pairs of the published sample of Crypto-PAn 1.0.
    #[test]
    fn addresses_are_those_of_the_published_sample() {
        let key = [
            21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
            121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
        ];
        let pseudonyms = Pseudonyms::of_bytes(&key);
        for (address, pseudonym) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
        ] {
            assert_eq!(pseudonyms.address(address.parse().unwrap()).to_string(), pseudonym);
        }
    }

    #[test]
    fn prefixes_are_preserved() {
        let pseudonyms = Pseudonyms::new("a key");
        let shared = |one: &str, other: &str| {
            let of = |text: &str| match text.parse().unwrap() {
                IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
                IpAddr::V6(v6) => v6.to_bits(),
            };
            let flipped = |text: &str| of(&pseudonyms.address(text.parse().unwrap()).to_string());
            assert_eq!(
                (of(one) ^ of(other)).leading_zeros(),
                (flipped(one) ^ flipped(other)).leading_zeros()
            );
            assert_ne!(of(one), flipped(one));
        };
        shared("10.1.2.3", "10.1.2.200");
        shared("10.1.2.3", "10.65.2.3");
        shared("2001:db8::1", "2001:db8::ff:1");
        assert_eq!(pseudonyms.end("10.0.0.1:80").rsplit_once(':').unwrap().1, "80");
    }
}

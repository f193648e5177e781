//! First bytes of captures and packed files.

/// First bytes of captures: pcap in both orders of bytes, with microseconds and nanoseconds, and pcapng
/// (libpcap, pcap-savefile(5); draft-ietf-opsawg-pcapng).
const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    PCAPNG,
];
/// The first block of pcapng (draft-ietf-opsawg-pcapng).
pub const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

// Packed files (RFC 1952 section 2.3.1, and the .xz file format, section 2.1.1.1).
pub const GZIP: &[u8] = &[0x1f, 0x8b];
pub const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// First bytes of other packed files, which are refused by name (as in file(1)).
pub const OTHERS: [(&[u8], &str); 3] =
    [(b"BZh", "bzip2"), (&[0x28, 0xb5, 0x2f, 0xfd], "Zstandard"), (b"PK\x03\x04", "ZIP")];

/// Whether a file is a capture.
pub fn is_capture(file: &[u8]) -> bool {
    MAGICS.iter().any(|magic| file.starts_with(magic))
}

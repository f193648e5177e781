//! A reader of the data files that runs at compile time. The reader skips the `#` lines and the header line
//! and splits fields at commas. Numbers are returned in thousandths, so that `-7.28` is exact.

/// A position in a file.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A position after the comment lines and the header line.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        let mut reader = Self { bytes, at: 0 };
        while reader.bytes[reader.at] == b'#' {
            reader = reader.next_line();
        }
        reader.next_line()
    }
    /// Moves to the start of the next line.
    pub(crate) const fn next_line(mut self) -> Self {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
        self.at += 1;
        self
    }
    /// Moves past the next `count` commas of this line.
    pub(crate) const fn skip(mut self, count: usize) -> Self {
        let mut left = count;
        while left > 0 {
            while self.bytes[self.at] != b',' {
                self.at += 1;
            }
            self.at += 1;
            left -= 1;
        }
        self
    }
    /// Whether the line starts with `prefix`.
    pub(crate) const fn starts_with(&self, prefix: &[u8]) -> bool {
        let mut i = 0;
        while i < prefix.len() {
            if self.at + i >= self.bytes.len() || self.bytes[self.at + i] != prefix[i] {
                return false;
            }
            i += 1;
        }
        true
    }
    /// Whether the end of the file is reached.
    pub(crate) const fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }
    /// The number at this position, in thousandths; an empty field is zero.
    pub(crate) const fn thousandths(&self) -> i64 {
        let mut i = self.at;
        let negative = i < self.bytes.len() && self.bytes[i] == b'-';
        if negative {
            i += 1;
        }
        let mut value = 0i64;
        let mut decimals = -1;
        while i < self.bytes.len() {
            let byte = self.bytes[i];
            if byte == b'.' {
                decimals = 0;
            } else if byte >= b'0' && byte <= b'9' {
                assert!(decimals < 3, "a table has more than three decimals");
                value = value * 10 + (byte - b'0') as i64;
                if decimals >= 0 {
                    decimals += 1;
                }
            } else {
                break;
            }
            i += 1;
        }
        let mut scale = if decimals < 0 { 3 } else { 3 - decimals };
        while scale > 0 {
            value *= 10;
            scale -= 1;
        }
        if negative { -value } else { value }
    }
    /// The whole number at this position.
    pub(crate) const fn integer(&self) -> u32 {
        (self.thousandths() / 1000) as u32
    }
}

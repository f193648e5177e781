//! From a file to its text: gzip, xz, byte order marks and UTF-16.

use crate::capture::magic::{GZIP, OTHERS, XZ, is_capture};
use crate::notes::Notes;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use paceline_net::trace::Trace;
use std::borrow::Cow;
use std::io::Read;

/// Bytes of an unpacked file at most. Chosen: three times the text of a minute at 10 Gb/s, and a packed file
/// cannot fill the memory.
const MAX_BYTES: u64 = 1 << 30;
/// Lines of a file at most. Chosen: the opportunities of two minutes at 1 Gb/s, and the rows of a day at 100
/// a second; a line takes about 150 bytes of memory.
pub const MAX_LINES: usize = 10_000_000;
/// Bytes that are unpacked at a time. Chosen: large beside the work of a call.
const PIECE_BYTES: u64 = 1 << 20;
/// The content of a file that may be packed.
pub fn unpack<'a>(file: &'a [u8], notes: &mut Notes) -> Result<Cow<'a, [u8]>, String> {
    if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| file.starts_with(magic)) {
        return Err(format!("packed by {name}: unpack it first; allowed: gzip, xz"));
    }
    let (name, reader): (_, Box<dyn Read + '_>) = if file.starts_with(GZIP) {
        ("gzip", Box::new(MultiGzDecoder::new(file)))
    } else if file.starts_with(XZ) {
        ("xz", Box::new(XzReader::new(file, true)))
    } else {
        return Ok(file.into());
    };
    let damaged = |error: std::io::Error| format!("damaged {name} file: {error}");
    let (mut reader, mut unpacked, mut lines) = (reader, Vec::new(), 0);
    loop {
        let before = unpacked.len();
        reader.by_ref().take(PIECE_BYTES).read_to_end(&mut unpacked).map_err(damaged)?;
        let piece = &unpacked[before..];
        if piece.is_empty() {
            break;
        }
        if unpacked.len() as u64 > MAX_BYTES {
            return Err(format!("more than {MAX_BYTES} bytes unpacked"));
        }
        if before == 0 && (Trace::is_binary(piece) || is_capture(piece)) {
            // Their bytes are no lines.
            lines = usize::MAX;
        }
        if lines != usize::MAX {
            lines += ends(piece);
            check_lines(lines)?;
        }
    }
    notes.push(format!("packed by {name}"));
    Ok(unpacked.into())
}

/// Number of line ends of any system, of which CR LF are two.
fn ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count()
}

/// An error where CR LF and the longest files would make too many lines.
fn check_lines(ends: usize) -> Result<(), String> {
    if ends > 2 * MAX_LINES {
        return Err(format!(
            "more than {MAX_LINES} lines: allowed: up to that many; `trace convert` reads longer files in mahimahi's format"
        ));
    }
    Ok(())
}

/// The text of a file: UTF-8, or UTF-16 with a byte order mark, without the mark.
pub fn text<'a>(file: &'a [u8], notes: &mut Notes) -> Result<Cow<'a, str>, String> {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units = file[2..].as_chunks().0.iter().map(|pair| from(*pair));
        char::decode_utf16(units).collect::<Result<String, _>>().map_err(|_| "damaged UTF-16".to_owned())
    };
    let text = match file {
        [0xff, 0xfe, ..] => Cow::Owned(wide(u16::from_le_bytes)?),
        [0xfe, 0xff, ..] => Cow::Owned(wide(u16::from_be_bytes)?),
        _ => {
            let bytes = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
            let text = str::from_utf8(bytes);
            let formats =
                "allowed: text, JSON, pcap, pcapng, a trace in binary form, and these packed by gzip or xz";
            Cow::Borrowed(text.map_err(|_| format!("neither text nor a known binary format: {formats}"))?)
        }
    };
    if matches!(file, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        notes.push("text in UTF-16");
    }
    if text.contains('\0') {
        return Err("neither text nor a known binary format".into());
    }
    Ok(text)
}

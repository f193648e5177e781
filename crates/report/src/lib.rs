//! Results for people: text tables ([`table`], [`text`]), comparisons ([`compare`]), SVG pictures
//! ([`picture`], [`over_time`], [`journey`]) and the HTML around them ([`html`]); and the files of a results
//! folder ([`files`]).
//!
//! The command line and the page in the browser show the same words and pictures by it. Reads and writes no
//! files.
#![forbid(unsafe_code)]

pub mod compare;
pub mod files;
pub mod html;
pub mod journey;
pub mod over_time;
pub mod picture;
pub mod table;
pub mod text;

/// A number and its noun: `1 station`, `2 stations`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

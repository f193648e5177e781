//! The commands of `paceline`, one module each: options and function.

pub mod cell;
pub mod check;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod emulate;
pub mod explain;
pub mod fit;
pub mod gateway;
pub mod pace;
pub mod parity;
pub mod pattern;
pub mod police;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod sweep;
pub mod top;
pub mod trace;

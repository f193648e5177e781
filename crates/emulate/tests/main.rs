//! Integration tests.

mod parity;

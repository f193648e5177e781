//! Integration tests.

mod equivalence;

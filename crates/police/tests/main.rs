//! Integration tests.

mod police_twin;

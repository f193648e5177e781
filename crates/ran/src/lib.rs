//! ran

//! Checks over several tables: values and combinations that are refused, and warnings about unusual ones.

pub(crate) mod in_force;
pub(crate) mod tables;
pub(crate) mod warnings;

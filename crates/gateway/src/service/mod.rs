//! A program as a service of systemd: messages with fields in the journal, readiness and watchdog, and
//! privileges that end with the set-up. Without systemd, messages go to stderr and the rest has no effect.

pub mod confinement;
pub mod log;
pub mod notify;
pub mod peer;
pub mod privileges;

//! Interfaces that are removed while the gateway runs (another driver, a USB modem, a TUN device of a program
//! that starts again) and come back under their names. The workers keep the connections and their data
//! meanwhile; then programs and sockets are attached to the new interface.

use crate::interfaces::ports::Interface;
use paceline_linux::clock;
use paceline_net::{Duration, Instant};

/// Time between two attempts to work at an interface that has come back. Chosen: an attempt costs some
/// commands, and the interface may not be up yet.
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(200);

/// A message for the operator, once for each change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// These interfaces are gone.
    Gone(String),
    /// They are there again, and the gateway works at them.
    Back(String),
    /// They are there again, and the gateway cannot work at them for this reason.
    Refused(String),
}

/// The two interfaces, and what the operator was told about them.
pub struct Away {
    sides: [Interface; 2],
    /// The interfaces that are gone, as the operator was told.
    gone: Option<String>,
    tried_at: Instant,
    problem: Option<String>,
}

impl Away {
    /// Interfaces that are there.
    pub fn new(sides: [Interface; 2]) -> Self {
        Self { sides, gone: None, tried_at: Instant::ZERO, problem: None }
    }
    /// The interfaces that are gone.
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_deref()
    }
    /// Looks whether the interfaces are there; `works` says of each whether the gateway works at it. If they
    /// have come back, `attach` has to give their indices when it does so again. To be called many times a
    /// second.
    pub fn look(
        &mut self,
        works: [bool; 2],
        attach: impl FnOnce() -> anyhow::Result<[u32; 2]>,
    ) -> Option<Message> {
        if works == [true; 2] {
            return None;
        }
        let gone: Vec<&Interface> =
            self.sides.iter().zip(works).filter(|(_, works)| !works).map(|(side, _)| side).collect();
        if self.gone.is_none() {
            let names: Vec<&str> = gone.iter().map(|side| side.name.as_str()).collect();
            let names = names.join(" and ");
            self.gone = Some(names.clone());
            return Some(Message::Gone(names));
        }
        let now = clock::now();
        let is_early = now.since(self.tried_at) < ATTEMPT_INTERVAL;
        if is_early || gone.iter().any(|side| side.find().is_none()) {
            return None;
        }
        self.tried_at = now;
        match attach() {
            Ok(indices) => {
                for (side, index) in self.sides.iter_mut().zip(indices) {
                    side.index = index;
                }
                self.problem = None;
                self.gone.take().map(Message::Back)
            }
            Err(error) => {
                let problem = format!("{error:#}");
                let is_new = self.problem.as_ref() != Some(&problem);
                self.problem = Some(problem.clone());
                is_new.then_some(Message::Refused(problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn each_change_is_told_once() {
        let interface = |text: &str| text.parse::<Interface>().unwrap();
        let mut here = Away::new([interface("lo:1"), interface("lo:1")]);
        assert_eq!(here.look([true; 2], || Err(anyhow!("no call"))), None);
        // The loopback device as one that has come back.
        let mut away = Away::new([interface("lo:1"), interface("lo:99999999")]);
        let mut attempt = |works: bool, result: anyhow::Result<[u32; 2]>| {
            away.tried_at = Instant::ZERO;
            let told = away.look([true, works], || result);
            (told, away.gone().is_some())
        };
        assert_eq!(attempt(false, Err(anyhow!("no call"))), (Some(Message::Gone("lo".into())), true));
        assert_eq!(attempt(false, Err(anyhow!("down"))), (Some(Message::Refused("down".into())), true));
        assert_eq!(attempt(false, Err(anyhow!("down"))), (None, true));
        assert_eq!(attempt(false, Ok([1, 1])), (Some(Message::Back("lo".into())), false));
        assert_eq!(attempt(true, Err(anyhow!("no call"))), (None, false));
        let mut absent = Away::new([interface("lo:1"), interface("no-such-device:99999999")]);
        let mut look = || absent.look([true, false], || Err(anyhow!("no call")));
        assert!(matches!(look(), Some(Message::Gone(_))));
        assert_eq!(look(), None);
    }
}

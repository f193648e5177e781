//! The radio technology of a cell: LTE or NR. Everything in which both differ is decided here or by the
//! [`Timing`], from the tables of [`crate::lte`] and [`crate::nr`].

use crate::duplex::Duplex;
use crate::lte;
use crate::lte::tdd::Distances;
use crate::nr::config::NrConfig;
use crate::nr::timing::TimingError;
use crate::pdcp::{NrPdcp, PdcpConfig};
use crate::slot::{Numerology, SlotClock};
use crate::timing::Timing;

/// The radio technology of a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Rat {
    /// LTE (TS 36.300).
    #[default]
    Lte,
    /// NR (TS 38.300).
    Nr(NrConfig),
}

impl Rat {
    /// PDCP of the stations' bearers.
    pub fn pdcp(&self, numerology: Numerology) -> PdcpConfig {
        match self {
            Self::Lte => PdcpConfig::Lte,
            Self::Nr(config) => PdcpConfig::Nr(NrPdcp {
                sn: config.pdcp_sn,
                sdap_header: config.sdap_header,
                t_reordering: config.pdcp_reordering.map(|timer| SlotClock::new(numerology).span(timer)),
            }),
        }
    }
    /// The distances between the messages of a cell; an error where 3GPP forbids one.
    pub fn timing(&self, numerology: Numerology, duplex: &Duplex) -> Result<Timing, TimingError> {
        match (self, duplex) {
            (Self::Lte, Duplex::Fdd) => Ok(lte::timing::fdd()),
            (Self::Lte, Duplex::Tdd(pattern)) => {
                let distances = Distances::of_pattern(pattern).ok_or(TimingError::NotLte)?;
                Ok(lte::timing::tdd(distances))
            }
            (Self::Nr(config), duplex) => {
                let processes = (config.downlink_processes, config.uplink_processes);
                Ok(config.slot_timing(numerology, duplex)?.of_cell(processes))
            }
        }
    }
}

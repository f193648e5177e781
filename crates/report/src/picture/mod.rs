//! Pictures as SVG: lines with confidence bands, bars, points, distributions, and maps of two quantities.
//!
//! `chart` is the content of a chart; `layout` places its axes and its legend and leaves the marks to `lines`
//! and `bars`. `heat` draws maps, `slots` the slots of a cell, `packets` packets over them, `trace` a trace.
//! `canvas` has the shapes, `scale` the axes, `distribution` the steps of a distribution. Colours are classes
//! of `page/picture.css`. Every mark of a chart has its value as a tooltip. Titles are HTML beside the
//! picture, so that long ones wrap. Values that are not finite are left out.

mod bars;
pub(crate) mod canvas;
mod chart;
mod distribution;
mod heat;
mod ladder;
mod layout;
mod lines;
mod packets;
mod scale;
mod slots;
mod trace;

pub use chart::{Chart, Kind, Mark, Series, Style};
pub use distribution::steps;
pub use heat::HeatMap;
pub use ladder::ladder;
pub use layout::below_one_another;
pub use packets::{Panel, packets};
pub use slots::slot_map;
pub use trace::trace_picture;

//! Figures of the network's parts beside the stations: managed queues, routers and policers of hops, paths of
//! pairs with direct links, and changes of the serving cell.

pub(super) mod handover;
pub(super) mod paths;
pub(super) mod queue;
pub(super) mod router;

//! A congestion control that is defined outside of this crate.

use super::control::CongestionControl;
use super::controller::ControlParameters;
use std::fmt;
use std::sync::Arc;

/// A [`CongestionControl`] of any type. Implemented for each one that can be cloned.
pub trait AnyControl: CongestionControl + fmt::Debug + Send + Sync {
    /// A copy.
    fn copied(&self) -> Box<dyn AnyControl>;
}

impl<C: CongestionControl + Clone + fmt::Debug + Send + Sync + 'static> AnyControl for C {
    fn copied(&self) -> Box<dyn AnyControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyControl> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

type Make = dyn Fn(&ControlParameters) -> Box<dyn AnyControl> + Send + Sync;

/// Makes the controls of connections in place of those of [`crate::Variant`].
#[derive(Clone)]
pub struct OwnControl(Arc<Make>);

impl OwnControl {
    /// `make` is called for each connection when it opens, and once before, with the segment size then known.
    pub fn new<C: AnyControl + 'static>(
        make: impl Fn(&ControlParameters) -> C + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |parameters| Box::new(make(parameters))))
    }
    pub(crate) fn make(&self, parameters: &ControlParameters) -> Box<dyn AnyControl> {
        (self.0)(parameters)
    }
}

impl fmt::Debug for OwnControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnControl")
    }
}

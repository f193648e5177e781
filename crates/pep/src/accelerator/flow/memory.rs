//! Memory that an idle connection gives back.

use std::collections::VecDeque;

/// Frees the memory of an empty queue: most connections are idle, and must not keep the memory of a past
/// transfer.
pub(in crate::accelerator) fn shrink_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > 0 {
        *queue = VecDeque::new();
    }
}

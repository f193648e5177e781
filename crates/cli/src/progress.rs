//! A progress bar with the remaining time, on stderr if stderr is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar for `length` units of work; `of` names the work beside the bar.
pub fn bar(length: u64, of: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{percent}}% of {of}, {{eta}} left"));
    ProgressBar::with_draw_target(Some(length), target).with_style(style.expect("the template is valid"))
}

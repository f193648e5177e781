//! A terminal for drawing pages and reading single keys. Dropping it restores the terminal.

use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Write, stdin, stdout};
use std::os::fd::AsFd;

// Control sequences of xterm: alternate screen on, cursor off; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";
/// Ctrl-C, which is read as a key (ASCII ETX, by definition of Ctrl).
pub const INTERRUPT: u8 = 3;

/// The terminal of standard input and output.
pub struct Terminal {
    before: Termios,
}

impl Terminal {
    /// Switches the terminal to single keys and the alternate screen. None if input or output is no terminal.
    pub fn open() -> anyhow::Result<Option<Self>> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin()).context("cannot read the terminal's settings")?;
        let mut settings = before.clone();
        settings.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
        tcsetattr(stdin(), SetArg::TCSANOW, &settings).context("cannot change the terminal's settings")?;
        let terminal = Self { before };
        stdout().write_all(ENTER).context("cannot write to the terminal")?;
        Ok(Some(terminal))
    }
    /// Draws a page. Lines and columns that do not fit are cut off.
    pub fn draw(&self, page: &str) -> io::Result<()> {
        let (rows, columns) = self.size();
        let mut text = String::from("\x1b[H");
        for line in page.lines().take(rows.saturating_sub(1)) {
            text.extend(line.chars().take(columns));
            text.push_str("\x1b[K\r\n");
        }
        text.push_str("\x1b[J");
        let mut stdout = stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
    }
    /// The next key, if one is pressed within `wait_ms`.
    pub fn key(&self, wait_ms: u16) -> Option<u8> {
        let stdin = stdin();
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(wait_ms)).ok()? == 0 {
            return None;
        }
        let mut key = [0];
        match nix::unistd::read(&stdin, &mut key) {
            Ok(1) => Some(key[0]),
            _ => Some(INTERRUPT), // the terminal was closed
        }
    }
    fn size(&self) -> (usize, usize) {
        match rustix::termios::tcgetwinsize(stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
            _ => (24, 80),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = stdout().write_all(LEAVE).and_then(|()| stdout().flush());
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &self.before);
    }
}

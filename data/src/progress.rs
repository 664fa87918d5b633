//! A line that shows how far a program is.
//!
//! On a terminal the line is redrawn in place, at most twenty times a second; elsewhere (a log, a
//! pipe) nothing is drawn.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Characters of the bar.
const WIDTH: usize = 32;

/// Progress towards a known number of steps, drawn on the standard error stream.
#[derive(Debug)]
pub struct Progress {
    total: usize,
    drawn: Option<Instant>,
    visible: bool,
}

impl Progress {
    /// At step 0 of `total`.
    ///
    /// ```
    /// use zyx_data::Progress;
    /// let mut progress = Progress::new(3);
    /// for step in 1..=3 {
    ///     progress.set(step, "loss 0.5");
    /// }
    /// progress.clear();
    /// ```
    pub fn new(total: usize) -> Progress {
        Progress { total, drawn: None, visible: std::io::stderr().is_terminal() }
    }

    /// At step `done`, with a note behind the bar.
    pub fn set(&mut self, done: usize, note: &str) {
        let pause = Duration::from_millis(50);
        let too_soon = self.drawn.is_some_and(|at| at.elapsed() < pause) && done < self.total;
        if !self.visible || too_soon {
            return;
        }
        self.drawn = Some(Instant::now());
        // A terminal that went away is no reason to stop the program.
        let _ = write!(std::io::stderr(), "\r{}\x1b[K", line(done, self.total, note));
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.visible && self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(done: usize, total: usize, note: &str) -> String {
    let share = if total == 0 { 1.0 } else { done.min(total) as f64 / total as f64 };
    let full = (share * WIDTH as f64).round() as usize;
    let bar = "━".repeat(full) + &"╌".repeat(WIDTH - full);
    format!("{bar} {:3.0}%  {note}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_bar_has_one_width() {
        for (done, total) in [(0, 10), (3, 10), (10, 10), (11, 10), (0, 0)] {
            let text = line(done, total, "x");
            assert_eq!(text.chars().count(), 32 + 1 + 4 + 2 + 1, "{text}");
        }
        assert!(line(5, 10, "").contains(" 50%"));
    }
}

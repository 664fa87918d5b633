//! A line that shows how far a program is.
//!
//! On a terminal the line is redrawn in place, at most twenty times a second; elsewhere (a log, a
//! pipe) nothing is drawn. `indicatif` draws.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;

/// Bar, share, time left and note, which is cut off where the line ends. Parts in braces are those of
/// `indicatif`, but `left`.
const LINE: &str = "{bar:32} {percent:>3}%  {left}  {wide_msg}";

/// The time left, once a step is done.
fn left(state: &ProgressState, text: &mut dyn Write) {
    let time = format!("{:#}", HumanDuration(state.eta()));
    // The text is a string, to which writing does not fail.
    let _ = match state.pos() {
        0 => write!(text, "         "),
        _ => write!(text, "{time:>4} left"),
    };
}

/// Progress towards a known number of steps, drawn on the standard error stream. The line is gone
/// when this is cleared or dropped, as by an error on the way.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// At step 0 of `total`.
    ///
    /// ```
    /// use zyx::data::Progress;
    /// let mut progress = Progress::new(3);
    /// for step in 1..=3 {
    ///     progress.set(step, "loss 0.5");
    /// }
    /// progress.clear();
    /// ```
    pub fn new(total: usize) -> Progress {
        Progress::on(ProgressDrawTarget::stderr(), total)
    }

    fn on(target: ProgressDrawTarget, total: usize) -> Progress {
        let style = ProgressStyle::with_template(LINE).expect("invariant: braces are paired");
        let bar = ProgressBar::with_draw_target(Some(total as u64), target)
            .with_style(style.progress_chars("━╌").with_key("left", left));
        Progress { bar }
    }

    /// At step `done`, with a note behind the bar.
    pub fn set(&mut self, done: usize, note: &str) {
        if !self.bar.is_hidden() {
            self.bar.set_position(done as u64);
            self.bar.set_message(note.to_owned());
        }
    }

    /// Prints, or whatever else `print` does, while the line is away.
    ///
    /// ```
    /// use zyx::data::Progress;
    /// let mut progress = Progress::new(2);
    /// progress.set(1, "first");
    /// progress.aside(|| println!("the first took 2.5 ms"));
    /// progress.set(2, "second");
    /// # progress.clear();
    /// ```
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    /// A terminal of one line that remembers what was on it.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<Vec<String>>>);

    impl Screen {
        fn last(&self) -> String {
            self.0.lock().unwrap().last().unwrap().clone()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().last_mut().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().push(String::new());
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on(screen: &Screen, total: usize) -> Progress {
        screen.clear_line().unwrap();
        Progress::on(ProgressDrawTarget::term_like(Box::new(screen.clone())), total)
    }

    #[test]
    fn the_line_says_how_far() {
        for (done, total, full, share) in
            [(0, 10, 0, "  0%"), (3, 12, 8, " 25%"), (10, 10, 32, "100%"), (11, 10, 32, "100%")]
        {
            let screen = Screen::default();
            let mut progress = on(&screen, total);
            progress.set(done, "loss 0.5");
            let line = screen.last();
            let bar = "━".repeat(full) + &"╌".repeat(32 - full);
            assert!(line.starts_with(&format!("{bar} {share}  ")), "{done}/{total}: {line}");
            let left = if done == 0 { "         " } else { " left" };
            assert!(line.contains(&format!("{left}  loss 0.5")), "{line}");
            progress.set(done, &"long ".repeat(100));
            let line = screen.last();
            assert!(line.contains("long long") && line.chars().count() <= 120, "{line}");
        }
    }

    #[test]
    fn the_line_goes_away() {
        let screen = Screen::default();
        let mut progress = on(&screen, 3);
        progress.set(1, "a");
        assert!(screen.last().contains('a'));
        let meanwhile = progress.aside(|| screen.last());
        assert_eq!(meanwhile.trim(), "");
        assert!(screen.last().contains('a'));
        progress.clear();
        assert_eq!(screen.last().trim(), "");
        // As when an error ends what it counts.
        let mut progress = on(&screen, 3);
        progress.set(2, "b");
        drop(progress);
        assert_eq!(screen.last().trim(), "");
    }

    #[test]
    fn nothing_is_drawn_where_no_terminal_is() {
        const CHILD: &str = "ZYX_TEST_PROGRESS";
        if std::env::var_os(CHILD).is_some() {
            let mut progress = Progress::new(3);
            (1..=3).for_each(|step| progress.set(step, "loss"));
            return;
        }
        let name = "progress::tests::nothing_is_drawn_where_no_terminal_is";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success());
        assert!(String::from_utf8(child.stdout).unwrap().contains("1 passed"));
        assert_eq!(String::from_utf8(child.stderr).unwrap(), "");
    }
}

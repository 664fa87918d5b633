//! How a method was called, read from the source of the program.
//!
//! A [`Location`](std::panic::Location) of a method call is that of the method's name, so what a user calls `gelu` need
//! not be guessed from the operations it is made of. As a debugger does, this looks at the file: where it is not found,
//! is newer than the program or has something else in that place, nothing is said.

use crate::origin::Place;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The files that were looked at.
#[derive(Debug, Default)]
pub(super) struct Sources(FxHashMap<&'static str, Option<Vec<String>>>);

impl Sources {
    /// The name of the method or function that is called there; of a method of a field of `self`, or of a layer, also the
    /// names of the fields, as in `fc1.forward`.
    pub(super) fn called(&mut self, place: Place) -> Option<String> {
        let lines = self.0.entry(place.file()).or_insert_with(|| read(place.file()));
        let line = lines.as_ref()?.get(place.line() as usize - 1)?;
        called(line, place.column() as usize - 1)
    }
}

fn read(file: &str) -> Option<Vec<String>> {
    let program = std::env::current_exe().ok()?;
    let path = find(Path::new(file), &program)?;
    let changed = |path: &Path| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
    if changed(&path)? > changed(&program)? {
        return None;
    }
    Some(std::fs::read_to_string(path).ok()?.lines().map(str::to_owned).collect())
}

/// The compiler was told of files from the root of a workspace. It is above the folder of the package that Cargo runs, the
/// folder the program is run in, or the program.
fn find(file: &Path, program: &Path) -> Option<PathBuf> {
    if file.is_absolute() {
        return file.exists().then(|| file.to_owned());
    }
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let below = [package, std::env::current_dir().ok(), Some(program.to_owned())];
    let roots = below.iter().flatten().flat_map(|folder| folder.ancestors());
    roots.map(|root| root.join(file)).find(|path| path.exists())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn called(line: &str, column: usize) -> Option<String> {
    let start = line.char_indices().nth(column).map(|(at, _)| at)?;
    let (before, rest) = line.split_at(start);
    let path = rest.split(|c| !is_word(c) && c != ':').next()?.trim_end_matches(':');
    let behind = &rest[path.len()..];
    let arguments = behind.strip_prefix("::").unwrap_or(behind);
    if path.is_empty() || !arguments.starts_with(['(', '<']) {
        return None;
    }
    let Some(receiver) = before.strip_suffix('.') else {
        // An operator has the place of its first operand, which may be a call.
        return if is_operand(arguments) {
            None
        } else {
            path.rsplit("::").next().map(str::to_owned)
        };
    };
    let fields = receiver.trim_end_matches(|c| is_word(c) || ".[]".contains(c));
    let fields = &receiver[fields.len()..];
    let of_self = fields.strip_prefix("self.");
    let is_layer = ["forward", "step", "apply"].contains(&path);
    match of_self.or(is_layer.then_some(fields)).filter(|fields| !fields.is_empty()) {
        Some(fields) => Some(format!("{fields}.{path}")),
        None => Some(path.to_owned()),
    }
}

/// Whether what stands behind arguments makes the call an operand of something else, or the end is not in this line.
fn is_operand(arguments: &str) -> bool {
    let mut open = 0;
    for (at, c) in arguments.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 1 => {
                let behind = arguments[at + 1..].trim_start_matches('?').trim_start();
                return behind.starts_with(['+', '-', '*', '/', '%', '&', '|', '^', '<', '>', '.']);
            }
            ')' => open -= 1,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{Sources, called};
    use std::panic::Location;

    #[test]
    fn calls_are_named_as_they_are_written() {
        let at = |line: &str, what: &str| called(line, line.find(what).unwrap());
        let name = |line: &str, what: &str| at(line, what).unwrap_or_default();
        let line = "let y = self.fc1.forward(&x)?.gelu().sum::<f32>(..)?;";
        assert_eq!(name(line, "forward"), "fc1.forward");
        assert_eq!(name(line, "gelu"), "gelu");
        assert_eq!(name(line, "sum"), "sum");
        assert_eq!(name("x = self.layers[i].forward(&x)?;", "forward"), "layers[i].forward");
        assert_eq!(name("let y = model.forward(&x)?;", "forward"), "model.forward");
        assert_eq!(name("let y = h.tanh();", "tanh"), "tanh");
        assert_eq!(name("let x = zyx::randn([2, 3])?;", "zyx"), "randn");
        // Columns count characters.
        assert_eq!(called("é.exp().log()", 8).as_deref(), Some("log"));
        // Not calls, or not for certain.
        for (line, what) in
            [("let z = &x * 2.0;", "&x"), ("f(x)? * 2.0", "f("), ("x.exp() * y", "x.")]
        {
            assert_eq!(at(line, what), None, "{line}");
        }
    }

    #[test]
    fn the_source_of_the_program_is_found() {
        #[track_caller]
        fn here() -> &'static Location<'static> {
            Location::caller()
        }
        let place = here();
        assert_eq!(Sources::default().called(place).as_deref(), Some("here"));
    }
}

//! [`Csv`]: tables of text (RFC 4180), and their columns as numbers or classes.
//!
//! Fields may be quoted; a quoted field may hold separators, line ends and doubled quotes. Lines
//! end with `\n` or `\r\n`; empty lines are left out.

use crate::dataset::Array;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use zyx_core::{Error, Result};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between fields; a comma.
    pub separator: char,
    /// Whether the first line has the names of the columns; true.
    pub header: bool,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { separator: ',', header: true }
    }
}

/// A table of text.
///
/// It is kept as the text that it is, with the place of every sixteenth row, so it takes little more
/// memory than its file; fields are found when they are asked for.
///
/// ```
/// use zyx_data::{Csv, CsvOptions};
/// let text = "length,kind\n1.5,cat\n2,\"dog, large\"\n3,cat\n";
/// let table = Csv::parse(text, CsvOptions::default())?;
/// assert_eq!(table.numbers(&["length"])?.data, [1.5, 2.0, 3.0]);
/// assert_eq!(table.classes("kind")?, (vec![0, 1, 0], vec!["cat".into(), "dog, large".into()]));
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    text: String,
    options: CsvOptions,
    /// Where every [`STEP`]th row begins.
    places: Vec<usize>,
    rows: usize,
    columns: usize,
    /// Where the names are, if there are any.
    header: Option<usize>,
}

/// Of how many rows one has its place remembered.
const STEP: usize = 16;

fn fail(reason: String) -> Error {
    Error::Format { what: "CSV".to_owned(), reason }
}

impl Csv {
    /// Reads a file.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// let file = std::env::temp_dir().join(format!("zyx-csv-doc-{}", std::process::id()));
    /// std::fs::write(&file, "x,y\n1,2\n").unwrap();
    /// let table = Csv::read(&file, CsvOptions::default())?;
    /// assert_eq!((table.len(), table.names()), (1, vec!["x".to_owned(), "y".to_owned()]));
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be read, or as [`Csv::parse`].
    pub fn read(file: impl AsRef<Path>, options: CsvOptions) -> Result<Csv> {
        let what = file.as_ref().display().to_string();
        let text =
            fs::read_to_string(file).map_err(|source| Error::Io { what: what.clone(), source })?;
        Csv::parse(text, options).map_err(|error| match error {
            Error::Format { reason, .. } => Error::Format { what, reason },
            other => other,
        })
    }

    /// The table of a text.
    ///
    /// # Errors
    /// When a quote is not closed, or a line has another number of fields than the first.
    pub fn parse(text: impl Into<String>, options: CsvOptions) -> Result<Csv> {
        let text = text.into();
        let mut first: Option<(usize, usize)> = None;
        let mut rows = 0;
        // Once to count them, so that no more memory is taken than their places need.
        let mut scan = Scan::new(&text, options.separator);
        while let Some((place, n)) = scan.row()? {
            match first {
                None => first = Some((place, n)),
                Some((_, columns)) if n == columns => rows += 1,
                Some((_, columns)) => {
                    let line = scan.start;
                    let reason = format!("line {line} has {n} fields, the first has {columns}");
                    return Err(fail(reason));
                }
            }
        }
        let header = first.filter(|_| options.header).map(|(place, _)| place);
        rows += usize::from(first.is_some() && header.is_none());
        let mut table = Csv {
            places: Vec::with_capacity(rows.div_ceil(STEP)),
            rows,
            columns: first.map_or(0, |(_, columns)| columns),
            header,
            options,
            text: String::new(),
        };
        let mut scan = Scan::new(&text, options.separator);
        let mut row = 0;
        while let Some((place, _)) = scan.row()? {
            if Some(place) == header {
                continue;
            }
            if row % STEP == 0 {
                table.places.push(place);
            }
            row += 1;
        }
        table.text = text;
        Ok(table)
    }

    /// The number of rows, the names not counted.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// assert_eq!(Csv::parse("x\n1\n2\n", CsvOptions::default())?.len(), 2);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// assert!(Csv::parse("x\n", CsvOptions::default())?.is_empty());
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The names of the columns; their numbers where there is no header.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// let options = CsvOptions { header: false, ..CsvOptions::default() };
    /// assert_eq!(Csv::parse("a,b\n", options)?.names(), ["0", "1"]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn names(&self) -> Vec<String> {
        match self.header {
            Some(place) => self.fields(place).map(Cow::into_owned).collect(),
            None => (0..self.columns).map(|i| i.to_string()).collect(),
        }
    }

    /// The fields of a row, none behind the last row.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// let table = Csv::parse("x,y\n1,\"a \"\"b\"\"\"\n", CsvOptions::default())?;
    /// assert!(table.row(0).eq(["1", "a \"b\""]));
    /// assert_eq!(table.row(1).count(), 0);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let place = (row < self.rows).then(|| {
            let mut scan = Scan::at(&self.text, self.options.separator, self.places[row / STEP]);
            let skipped = (0..row % STEP).try_for_each(|_| scan.row().map(drop));
            skipped.and_then(|()| scan.row()).ok().flatten().map(|(place, _)| place)
        });
        place.flatten().into_iter().flat_map(|place| self.fields(place))
    }

    /// The fields of each row.
    ///
    /// ```
    /// use zyx_data::{Csv, CsvOptions};
    /// let table = Csv::parse("x,y\n1,2\n3,4\n", CsvOptions::default())?;
    /// assert_eq!(table.rows().map(|mut row| row.next().unwrap()).collect::<Vec<_>>(), ["1", "3"]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = Cow<'_, str>>> {
        let start = self.places.first().copied().unwrap_or(self.text.len());
        let mut scan = Scan::at(&self.text, self.options.separator, start);
        std::iter::from_fn(move || scan.row().ok().flatten()).map(|(place, _)| self.fields(place))
    }

    /// The fields of the line that begins at a place.
    fn fields(&self, place: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let mut scan = Scan::at(&self.text, self.options.separator, place);
        let mut left = self.columns;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            Some(unquoted(scan.field().ok()?.0))
        })
    }

    fn column(&self, name: &str) -> Result<usize> {
        let found = match self.header {
            Some(place) => self.fields(place).position(|known| known == name),
            None => {
                name.parse().ok().filter(|&i: &usize| i < self.columns && i.to_string() == name)
            }
        };
        found.ok_or_else(|| {
            fail(format!("there is no column `{name}`; there are {}", self.names().join(", ")))
        })
    }

    /// Columns of numbers as `[rows, columns]`. An empty field is NaN.
    ///
    /// # Errors
    /// When a column is missing, or a field is no number.
    pub fn numbers(&self, columns: &[&str]) -> Result<Array<f32>> {
        let places = columns.iter().map(|name| self.column(name)).collect::<Result<Vec<_>>>()?;
        let mut data = vec![0.0; self.rows * places.len()];
        for (i, row) in self.rows().enumerate() {
            for (column, field) in row.enumerate() {
                for (j, _) in places.iter().enumerate().filter(|(_, place)| **place == column) {
                    let field = field.trim();
                    let number = if field.is_empty() { Ok(f32::NAN) } else { field.parse() };
                    data[i * places.len() + j] = number.map_err(|_| {
                        let name = columns[j];
                        fail(format!("`{field}` in row {i} of column `{name}` is no number"))
                    })?;
                }
            }
        }
        Ok(Array { shape: vec![self.rows, places.len()], data })
    }

    /// A column of names as class numbers, in the alphabetical order of the names, and the names.
    ///
    /// # Errors
    /// When the column is missing.
    pub fn classes(&self, column: &str) -> Result<(Vec<i64>, Vec<String>)> {
        let place = self.column(column)?;
        let mut numbers: BTreeMap<Cow<'_, str>, i64> = BTreeMap::new();
        let fields = || self.rows().filter_map(|mut row| row.nth(place));
        fields().for_each(|name| {
            numbers.insert(name, 0);
        });
        numbers.values_mut().zip(0..).for_each(|(number, i)| *number = i);
        let classes = fields().map(|name| numbers[&name]).collect();
        Ok((classes, numbers.into_keys().map(Cow::into_owned).collect()))
    }
}

/// What a field says: without the quotes around it, and one for each doubled one.
fn unquoted(field: &str) -> Cow<'_, str> {
    let Some(inside) = field.strip_prefix('"') else { return Cow::Borrowed(field) };
    match inside.find('"') {
        Some(end) if end + 1 == inside.len() => return Cow::Borrowed(&inside[..end]),
        _ => {}
    }
    let (mut text, mut quoted) = (String::new(), true);
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                text.push('"');
            }
            '"' if quoted => quoted = false,
            // Nothing was inside: another quote begins.
            '"' if text.is_empty() => quoted = true,
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// A walk through a text, field by field.
struct Scan<'a> {
    text: &'a str,
    separator: char,
    at: usize,
    /// The line that is next, and that of the row before, from 1.
    line: usize,
    start: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, separator: char) -> Scan<'a> {
        let blank = text.len() - text.trim_start_matches('\u{feff}').len();
        Scan::at(text, separator, blank)
    }

    fn at(text: &'a str, separator: char, at: usize) -> Scan<'a> {
        Scan { text, separator, at, line: 1, start: 1 }
    }

    /// The next field as it is written, and whether its line goes on behind it.
    fn field(&mut self) -> Result<(&'a str, bool)> {
        let rest = &self.text[self.at..];
        let start = self.at;
        // In quotes, or behind them; a quote after anything else is one as it is.
        let (mut quoted, mut empty) = (false, true);
        let mut chars = rest.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            self.line += usize::from(c == '\n');
            match c {
                '"' if quoted && chars.peek().is_some_and(|&(_, c)| c == '"') => {
                    chars.next();
                    empty = false;
                }
                '"' if quoted => quoted = false,
                '"' if empty => quoted = true,
                _ if quoted => empty = false,
                '\n' => {
                    self.at = start + i + 1;
                    let field = &rest[..i];
                    return Ok((field.strip_suffix('\r').unwrap_or(field), false));
                }
                _ if c == self.separator => {
                    self.at = start + i + c.len_utf8();
                    return Ok((&rest[..i], true));
                }
                _ => empty = false,
            }
        }
        if quoted {
            return Err(self.unclosed());
        }
        self.at = self.text.len();
        Ok((rest, false))
    }

    /// The place of the next line that is a row, and the number of its fields.
    fn row(&mut self) -> Result<Option<(usize, usize)>> {
        while self.at < self.text.len() {
            let place = self.at;
            self.start = self.line;
            let (field, mut more) = self.field()?;
            // A line of nothing is not a row, one of an empty quoted field is.
            if field.is_empty() && !more {
                continue;
            }
            let mut n = 1;
            while more {
                more = self.field()?.1;
                n += 1;
            }
            return Ok(Some((place, n)));
        }
        Ok(None)
    }

    fn unclosed(&self) -> Error {
        fail(format!("a quote of line {} is not closed", self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Csv {
        Csv::parse(text, CsvOptions { header: false, ..Default::default() }).unwrap()
    }

    fn rows(table: &Csv) -> Vec<Vec<String>> {
        let all: Vec<Vec<String>> =
            table.rows().map(|row| row.map(Cow::into_owned).collect()).collect();
        let alone = |i| table.row(i).map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(all, (0..table.len()).map(alone).collect::<Vec<_>>());
        all
    }

    #[test]
    fn fields_are_what_they_are() {
        let table = parse("a,\"b \"\"c\"\",\nd\",\r\n\r\n\"\",1\"2,z");
        assert_eq!(rows(&table), [["a", "b \"c\",\nd", ""], ["", "1\"2", "z"]]);
        assert_eq!(table.names(), ["0", "1", "2"]);
        assert!(parse("").is_empty() && parse("\n\n").is_empty());
        assert_eq!(rows(&parse("\"\"\n")), [[""]]);
        assert_eq!(rows(&parse("\"a\"b,\"\"\"\"\n\"a\"\"\"x,\n")), [["ab", "\""], ["a\"x", ""]]);
        assert_eq!(rows(&parse("a\rb,c\r\n,")), [["a\rb", "c"], ["", ""]]);
        let many: String = (0..100).map(|i| format!("{i},\"{i}\n\"\n\n")).collect();
        let want: Vec<_> = (0..100).map(|i| [i.to_string(), format!("{i}\n")]).collect();
        assert_eq!(rows(&parse(&many)), want);
        let tabs = CsvOptions { separator: '\t', header: true };
        let table = Csv::parse("\u{feff}x\ty\n1\t2\n", tabs).unwrap();
        assert_eq!(table.names(), ["x", "y"]);
        assert_eq!(table.numbers(&["y", "x", "y"]).unwrap().data, [2.0, 1.0, 2.0]);
        assert_eq!(Csv::parse("a,b\n", CsvOptions::default()).unwrap().len(), 0);
    }

    #[test]
    fn mistakes_are_named() {
        let complaint =
            |text: &str| Csv::parse(text, CsvOptions::default()).unwrap_err().to_string();
        assert!(complaint("a,b\n1,2\n3\n").contains("line 3 has 1 fields, the first has 2"));
        assert!(complaint("a\n\"b\n").contains("quote of line 2"));
        let table = Csv::parse("a,b\n1,x\n,2\n", CsvOptions::default()).unwrap();
        assert!(table.numbers(&["b"]).unwrap_err().to_string().contains("`x` in row 0"));
        assert!(table.numbers(&["c"]).unwrap_err().to_string().contains("there are a, b"));
        assert!(table.numbers(&["a"]).unwrap().data[1].is_nan());
        let missing = Csv::read("/no/such/file.csv", CsvOptions::default());
        assert!(matches!(missing, Err(Error::Io { .. })));
    }
}

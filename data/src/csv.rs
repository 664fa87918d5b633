//! [`Csv`]: tables of text (RFC 4180), and their columns as numbers or classes.
//!
//! Fields may be quoted; a quoted field may hold separators, line ends and doubled quotes. Lines
//! end with `\n` or `\r\n`; empty lines are left out.

use crate::dataset::Array;
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
/// ```
/// use zyx_data::{Csv, CsvOptions};
/// let text = "length,kind\n1.5,cat\n2,\"dog, large\"\n3,cat\n";
/// let table = Csv::parse(text, CsvOptions::default())?;
/// assert_eq!(table.numbers(&["length"])?.data, [1.5, 2.0, 3.0]);
/// assert_eq!(table.classes("kind")?, (vec![0, 1, 0], vec!["cat".into(), "dog, large".into()]));
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// The names of the columns; their numbers where there is no header.
    pub names: Vec<String>,
    /// The fields, line by line.
    pub rows: Vec<Vec<String>>,
}

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
    /// assert_eq!(table.rows.len(), 1);
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
        Csv::parse(&text, options).map_err(|error| match error {
            Error::Format { reason, .. } => Error::Format { what, reason },
            other => other,
        })
    }

    /// The table of a text.
    ///
    /// # Errors
    /// When a quote is not closed, or a line has another number of fields than the first.
    pub fn parse(text: &str, options: CsvOptions) -> Result<Csv> {
        let mut rows = lines(text.trim_start_matches('\u{feff}'), options.separator)?;
        let width = rows.first().map_or(0, |(_, fields)| fields.len());
        if let Some((line, fields)) = rows.iter().find(|(_, fields)| fields.len() != width) {
            let n = fields.len();
            return Err(fail(format!("line {line} has {n} fields, the first has {width}")));
        }
        let names = match options.header && !rows.is_empty() {
            true => rows.remove(0).1,
            false => (0..width).map(|i| i.to_string()).collect(),
        };
        Ok(Csv { names, rows: rows.into_iter().map(|(_, fields)| fields).collect() })
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|known| known == name).ok_or_else(|| {
            fail(format!("there is no column `{name}`; there are {}", self.names.join(", ")))
        })
    }

    /// Columns of numbers as `[rows, columns]`. An empty field is NaN.
    ///
    /// # Errors
    /// When a column is missing, or a field is no number.
    pub fn numbers(&self, columns: &[&str]) -> Result<Array<f32>> {
        let places = columns.iter().map(|name| self.column(name)).collect::<Result<Vec<_>>>()?;
        let mut data = Vec::with_capacity(self.rows.len() * places.len());
        for (i, row) in self.rows.iter().enumerate() {
            for &place in &places {
                let field = row[place].trim();
                let number = if field.is_empty() { Ok(f32::NAN) } else { field.parse() };
                data.push(number.map_err(|_| {
                    let name = &self.names[place];
                    fail(format!("`{field}` in row {i} of column `{name}` is no number"))
                })?);
            }
        }
        Ok(Array { shape: vec![self.rows.len(), places.len()], data })
    }

    /// A column of names as class numbers, in the alphabetical order of the names, and the names.
    ///
    /// # Errors
    /// When the column is missing.
    pub fn classes(&self, column: &str) -> Result<(Vec<i64>, Vec<String>)> {
        let place = self.column(column)?;
        let mut numbers: BTreeMap<&str, i64> = BTreeMap::new();
        self.rows.iter().for_each(|row| {
            numbers.insert(&row[place], 0);
        });
        numbers.values_mut().zip(0..).for_each(|(number, i)| *number = i);
        let classes = self.rows.iter().map(|row| numbers[row[place].as_str()]).collect();
        Ok((classes, numbers.into_keys().map(str::to_owned).collect()))
    }
}

/// The fields of each line, with its number from 1.
fn lines(text: &str, separator: char) -> Result<Vec<(usize, Vec<String>)>> {
    let mut rows = Vec::new();
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let (mut line, mut start, mut was_quoted) = (1, 1, false);
    let mut chars = text.chars().peekable();
    let mut finish = |fields: &mut Vec<String>, field: &mut String, quoted: bool, line: usize| {
        // A line of nothing is not a row, one of an empty quoted field is.
        if !fields.is_empty() || !field.is_empty() || quoted {
            fields.push(std::mem::take(field));
            rows.push((line, std::mem::take(fields)));
        }
    };
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => (quoted, was_quoted) = (true, true),
            _ if quoted => field.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                finish(&mut fields, &mut field, was_quoted, start);
                (start, was_quoted) = (line, false);
            }
            _ if c == separator => {
                fields.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            _ => field.push(c),
        }
    }
    if quoted {
        return Err(fail(format!("a quote of line {start} is not closed")));
    }
    finish(&mut fields, &mut field, was_quoted, start);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Csv {
        Csv::parse(text, CsvOptions { header: false, ..Default::default() }).unwrap()
    }

    #[test]
    fn fields_are_what_they_are() {
        let table = parse("a,\"b \"\"c\"\",\nd\",\r\n\r\n\"\",1\"2,z");
        assert_eq!(table.rows, [["a", "b \"c\",\nd", ""], ["", "1\"2", "z"]]);
        assert_eq!(table.names, ["0", "1", "2"]);
        assert!(parse("").rows.is_empty() && parse("\n\n").rows.is_empty());
        assert_eq!(parse("\"\"\n").rows, [[""]]);
        let tabs = CsvOptions { separator: '\t', header: true };
        let table = Csv::parse("\u{feff}x\ty\n1\t2\n", tabs).unwrap();
        assert_eq!(table.names, ["x", "y"]);
        assert_eq!(table.numbers(&["y", "x"]).unwrap().data, [2.0, 1.0]);
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

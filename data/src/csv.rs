//! [`Csv`]: tables of text (RFC 4180), and their columns as numbers or classes.
//!
//! Fields may be quoted; a quoted field may hold separators, line ends and doubled quotes. Lines
//! end with `\n`, `\r\n` or `\r`; empty lines are left out. `csv-core`, the parser of the crate
//! `csv`, says where fields end and what is in them. `csv` itself keeps 8 bytes and more for each
//! field of a row, many times a file whose fields are empty.

use crate::dataset::Array;
use csv_core::{ReadFieldResult, Reader, ReaderBuilder};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx_core::{Error, Result, files};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between fields: an ASCII character other than a quote or a line end; a comma.
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
/// use zyx::data::{Csv, CsvOptions};
/// let text = "length,kind\n1.5,cat\n2,\"dog, large\"\n3,cat\n";
/// let table = Csv::parse(text, CsvOptions::default())?;
/// assert_eq!(table.numbers(&["length"])?.data, [1.5, 2.0, 3.0]);
/// assert_eq!(table.classes("kind")?, (vec![0, 1, 0], vec!["cat".into(), "dog, large".into()]));
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    text: String,
    /// Making a parser takes longer than reading a row, and clones of one lack its tables.
    parser: Arc<Mutex<Reader>>,
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
    /// use zyx::data::{Csv, CsvOptions};
    /// let file = std::env::temp_dir().join(format!("zyx-csv-doc-{}", std::process::id()));
    /// std::fs::write(&file, "x,y\n1,2\n").unwrap();
    /// let table = Csv::read(&file, CsvOptions::default())?;
    /// assert_eq!((table.len(), table.names()), (1, vec!["x".to_owned(), "y".to_owned()]));
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be read, or as [`Csv::parse`].
    pub fn read(file: impl AsRef<Path>, options: CsvOptions) -> Result<Csv> {
        let what = file.as_ref().display().to_string();
        let Ok(text) = String::from_utf8(files::read(file)?) else {
            return Err(Error::Format { what, reason: "is not UTF-8".to_owned() });
        };
        Csv::parse(text, options).map_err(|error| match error {
            Error::Format { reason, .. } => Error::Format { what, reason },
            other => other,
        })
    }

    /// The table of a text.
    ///
    /// # Errors
    /// When a quote is not closed, a line has another number of fields than the first, or the
    /// separator is none of those that [`CsvOptions`] allows.
    pub fn parse(text: impl Into<String>, options: CsvOptions) -> Result<Csv> {
        let text = text.into();
        let mut parser = parser(options.separator)?;
        let begin = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut scan = Scan { text: &text, at: begin };
        let (mut header, mut columns, mut rows, mut places) = (None, None, 0, Vec::new());
        while let Some((place, n)) = scan.row(&mut parser)? {
            let first = columns.is_none();
            let columns = *columns.get_or_insert(n);
            if n != columns {
                let line = line(&text, place);
                return Err(fail(format!("line {line} has {n} fields, the first has {columns}")));
            }
            if first && options.header {
                header = Some(place);
                continue;
            }
            if rows % STEP == 0 {
                places.push(place);
            }
            rows += 1;
        }
        places.shrink_to_fit();
        let (columns, parser) = (columns.unwrap_or(0), Arc::new(Mutex::new(parser)));
        Ok(Csv { text, parser, places, rows, columns, header })
    }

    /// The number of rows, the names not counted.
    ///
    /// ```
    /// use zyx::data::{Csv, CsvOptions};
    /// assert_eq!(Csv::parse("x\n1\n2\n", CsvOptions::default())?.len(), 2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    ///
    /// ```
    /// use zyx::data::{Csv, CsvOptions};
    /// assert!(Csv::parse("x\n", CsvOptions::default())?.is_empty());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The names of the columns; their numbers where there is no header.
    ///
    /// ```
    /// use zyx::data::{Csv, CsvOptions};
    /// let options = CsvOptions { header: false, ..CsvOptions::default() };
    /// assert_eq!(Csv::parse("a,b\n", options)?.names(), ["0", "1"]);
    /// # Ok::<(), zyx::Error>(())
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
    /// use zyx::data::{Csv, CsvOptions};
    /// let table = Csv::parse("x,y\n1,\"a \"\"b\"\"\"\n", CsvOptions::default())?;
    /// assert!(table.row(0).eq(["1", "a \"b\""]));
    /// assert_eq!(table.row(1).count(), 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let place = (row < self.rows).then(|| {
            let mut scan = Scan { text: &self.text, at: self.places[row / STEP] };
            let parser = &mut *self.parser();
            let skipped = (0..row % STEP).try_for_each(|_| scan.row(parser).map(drop));
            skipped.and_then(|()| scan.row(parser)).ok().flatten().map(|(place, _)| place)
        });
        place.flatten().into_iter().flat_map(|place| self.fields(place))
    }

    /// The fields of each row.
    ///
    /// ```
    /// use zyx::data::{Csv, CsvOptions};
    /// let table = Csv::parse("x,y\n1,2\n3,4\n", CsvOptions::default())?;
    /// assert_eq!(table.rows().map(|mut row| row.next().unwrap()).collect::<Vec<_>>(), ["1", "3"]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = Cow<'_, str>>> {
        let start = self.places.first().copied().unwrap_or(self.text.len());
        let mut scan = Scan { text: &self.text, at: start };
        let next = move || scan.row(&mut self.parser()).ok().flatten();
        std::iter::from_fn(next).map(|(place, _)| self.fields(place))
    }

    /// The parser, which each field begins anew.
    fn parser(&self) -> MutexGuard<'_, Reader> {
        self.parser.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fields of the line that begins at a place.
    fn fields(&self, place: usize) -> impl Iterator<Item = Cow<'_, str>> {
        let mut scan = Scan { text: &self.text, at: place };
        let mut left = self.columns;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let place = scan.at;
            let parser = &mut *self.parser();
            let field = scan.field(parser).ok()?;
            Some(content(parser, &self.text[place..field.end], field.len))
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
        self.each(|i, column, field| {
            for (j, _) in places.iter().enumerate().filter(|(_, place)| **place == column) {
                let field = field.trim();
                let number = if field.is_empty() { Ok(f32::NAN) } else { field.parse() };
                data[i * places.len() + j] = number.map_err(|_| {
                    let name = columns[j];
                    fail(format!("`{field}` in row {i} of column `{name}` is no number"))
                })?;
            }
            Ok(())
        })?;
        Ok(Array { shape: vec![self.rows, places.len()], data })
    }

    /// A column of names as class numbers, in the alphabetical order of the names, and the names.
    ///
    /// # Errors
    /// When the column is missing.
    pub fn classes(&self, column: &str) -> Result<(Vec<i64>, Vec<String>)> {
        let place = self.column(column)?;
        let mut numbers: BTreeMap<Cow<'_, str>, i64> = BTreeMap::new();
        self.each(|_, at, name| {
            if at == place {
                numbers.insert(name, 0);
            }
            Ok(())
        })?;
        numbers.values_mut().zip(0..).for_each(|(number, i)| *number = i);
        let mut classes = Vec::with_capacity(self.rows);
        self.each(|_, at, name| {
            classes.extend((at == place).then(|| numbers[&name]));
            Ok(())
        })?;
        Ok((classes, numbers.into_keys().map(Cow::into_owned).collect()))
    }

    /// Hands on each field with its row and column, as [`Csv::rows`] does but in one walk.
    fn each<'a>(
        &'a self,
        mut take: impl FnMut(usize, usize, Cow<'a, str>) -> Result<()>,
    ) -> Result<()> {
        let parser = &mut *self.parser();
        let mut scan = Scan { text: &self.text, at: self.places.first().copied().unwrap_or(0) };
        for row in 0..self.rows {
            scan.skip_empty_lines();
            for column in 0..self.columns {
                let place = scan.at;
                let field = scan.field(parser)?;
                take(row, column, content(parser, &self.text[place..field.end], field.len))?;
            }
        }
        Ok(())
    }
}

/// A parser of tables with a separator.
fn parser(separator: char) -> Result<Reader> {
    let byte = u8::try_from(separator).ok().filter(|b| b.is_ascii() && !b"\"\r\n".contains(b));
    match byte {
        Some(byte) => Ok(ReaderBuilder::new().delimiter(byte).build()),
        None => Err(fail(format!(
            "{separator:?} cannot be the separator, which is an ASCII character other than a quote \
             or a line end"
        ))),
    }
}

/// The parser in front of a field.
fn begin<'a>(parser: &'a mut Reader, field: &str) -> &'a mut Reader {
    parser.reset();
    if field.starts_with('\u{feff}') {
        // In what a parser reads first, this is none of the characters; anywhere else it is one.
        parser.read_field(b"\n", &mut [0]);
    }
    parser
}

/// What a field says of which the text and the length without quotes are known.
fn content<'a>(parser: &mut Reader, raw: &'a str, len: usize) -> Cow<'a, str> {
    if raw.len() == len {
        return Cow::Borrowed(raw);
    }
    let inside = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    if let Some(inside) = inside.filter(|inside| !inside.contains('"')) {
        return Cow::Borrowed(inside);
    }
    let mut bytes = vec![0; len + 1];
    begin(parser, raw).read_field(raw.as_bytes(), &mut bytes);
    bytes.truncate(len);
    Cow::Owned(String::from_utf8(bytes).expect("invariant: only quotes are left out"))
}

/// The number of the line at a place, from 1.
fn line(text: &str, place: usize) -> usize {
    let before = &text[..place];
    1 + before.matches(['\n', '\r']).count() - before.matches("\r\n").count()
}

/// A walk through a text, field by field.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

/// Where a field ends.
struct Field {
    /// Behind its last character.
    end: usize,
    /// The bytes it says, which quotes are no part of.
    len: usize,
    /// Whether it is the last one of its row.
    last: bool,
}

impl Scan<'_> {
    /// Passes over the next field.
    fn field(&mut self, parser: &mut Reader) -> Result<Field> {
        let place = self.at;
        // In front of a field, an end of line would be an empty line.
        if self.text[place..].is_empty() || self.text[place..].starts_with(['\r', '\n']) {
            return Ok(Field { end: place, len: 0, last: true });
        }
        let parser = begin(parser, &self.text[place..]);
        // What is written here is not looked at, only counted.
        let (mut said, mut len) = ([0; 64], 0);
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            // Behind the text its last line ends, unless a quote is open.
            let input = if rest.is_empty() { b"\n" } else { rest };
            let (result, read, written) = parser.read_field(input, &mut said);
            self.at += read.min(rest.len());
            match result {
                ReadFieldResult::Field { record_end: last } => {
                    let end = self.at - usize::from(!rest.is_empty());
                    return Ok(Field { end, len: len + written, last });
                }
                ReadFieldResult::InputEmpty if rest.is_empty() => {
                    let line = line(self.text, place);
                    return Err(fail(format!("a quote of line {line} is not closed")));
                }
                _ => len += written,
            }
        }
    }

    /// A line of nothing is not a row, one of an empty quoted field is.
    fn skip_empty_lines(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start_matches(['\r', '\n']).len();
    }

    /// The place of the next line that is a row, and the number of its fields.
    fn row(&mut self, parser: &mut Reader) -> Result<Option<(usize, usize)>> {
        self.skip_empty_lines();
        if self.at == self.text.len() {
            return Ok(None);
        }
        let (place, mut n) = (self.at, 1);
        while !self.field(parser)?.last {
            n += 1;
        }
        Ok(Some((place, n)))
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
        // A carriage return alone ends a line as well.
        assert_eq!(rows(&parse("a,b\r\rc,d\r\n\"\r\n\",")), [["a", "b"], ["c", "d"], ["\r\n", ""]]);
        // A byte order mark within a table is a character, and one in front of a table is none.
        let marked = parse(&"\u{feff}x,\u{feff}\n".repeat(20));
        assert_eq!(rows(&marked)[0], ["x", "\u{feff}"]);
        assert_eq!(rows(&marked)[17], ["\u{feff}x", "\u{feff}"]);
        // Longer than what is read at once, with quotes at every place.
        for n in (58..70).chain(120..132) {
            let long = format!("{}\"\"é", "x".repeat(n));
            let table = parse(&format!("\"{long}\",1\n\"{long}\"y\",2"));
            let said = long.replace("\"\"", "\"");
            assert_eq!(rows(&table), [[said.clone(), "1".into()], [said + "y\"", "2".into()]]);
        }
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
        assert!(complaint("a,b\r1,2\r\r\n3\r").contains("line 4 has 1 fields, the first has 2"));
        for open in ["a\n\"b\n", "a\n\"b", "a\n\"", "a\r\"b\"\"", "\"a\"\n\"b\n\nc\"\"\n"] {
            assert!(complaint(open).contains("quote of line 2 is not closed"), "{open:?}");
        }
        for separator in ['"', '\n', '\r', 'é', '；'] {
            let options = CsvOptions { separator, header: true };
            let message = Csv::parse("a", options).unwrap_err().to_string();
            assert!(
                message.contains(&format!("{separator:?} cannot be the separator")),
                "{message}"
            );
        }
        let table = Csv::parse("a,b\n1,x\n,2\n", CsvOptions::default()).unwrap();
        assert!(table.numbers(&["b"]).unwrap_err().to_string().contains("`x` in row 0"));
        assert!(table.numbers(&["c"]).unwrap_err().to_string().contains("there are a, b"));
        assert!(table.numbers(&["a"]).unwrap().data[1].is_nan());
        let missing = Csv::read("/no/such/file.csv", CsvOptions::default());
        assert!(matches!(missing, Err(Error::Io { .. })));
    }
}

//! [`EventWriter`]: scalars, histograms and text in files that TensorBoard opens.
//!
//! A file is a sequence of records: length (u64, little-endian), masked CRC-32C of the length,
//! that many bytes, masked CRC-32C of the bytes (TensorFlow's `TFRecord`). The bytes are an
//! `Event` in protocol buffers, of which the few fields that are needed are written here by hand:
//!
//! | message | fields |
//! |---|---|
//! | Event | 1 wall time (double), 2 step (int64), 3 file version (string), 5 summary |
//! | Summary | 1 value (repeated) |
//! | Value | 1 tag, 2 simple value (float), 5 histogram, 8 tensor, 9 metadata |
//! | Histogram | 1 min, 2 max, 3 count, 4 sum, 5 sum of squares (doubles), 6 limits, 7 counts |
//! | Tensor | 1 dtype (7: string), 2 shape, 8 strings |
//! | Metadata | 1 plugin: 1 its name |

use crc::{CRC_32_ISCSI, Crc};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use zyx_core::{Error, Result};

/// Castagnoli's, as in RFC 3720.
const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Writes what TensorBoard shows, into a new file of a folder.
///
/// ```
/// use zyx::data::EventWriter;
/// let folder = std::env::temp_dir().join(format!("zyx-events-doc-{}", std::process::id()));
/// let mut log = EventWriter::create(&folder)?;
/// for step in 0..10 {
///     log.scalar("loss", step, 1.0 / (1.0 + step as f64))?;
/// }
/// log.flush()?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EventWriter {
    /// A new file in `folder`, which is made if need be.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(folder: impl AsRef<Path>) -> Result<EventWriter> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (folder, count) = (folder.as_ref(), COUNT.fetch_add(1, Relaxed));
        let seconds = now() as u64;
        // The viewer reads files in the order of their names.
        let name = format!("events.out.tfevents.{seconds:010}.zyx.{}.{count}", std::process::id());
        let path = folder.join(name);
        let io = |source| Error::Io { what: path.display().to_string(), source };
        fs::create_dir_all(folder).map_err(io)?;
        let file = BufWriter::new(File::create(&path).map_err(io)?);
        let mut writer = EventWriter { path, file };
        writer.event(0, &field(3, b"brain.Event:2"))?;
        Ok(writer)
    }

    /// The file.
    ///
    /// ```
    /// # use zyx::data::EventWriter;
    /// # let folder = std::env::temp_dir().join(format!("zyx-events-path-{}", std::process::id()));
    /// # let mut log = EventWriter::create(&folder)?;
    /// assert!(log.path().starts_with(&folder));
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A number at a step.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn scalar(&mut self, tag: &str, step: u64, x: f64) -> Result<()> {
        let mut value = field(1, tag.as_bytes());
        value.extend([0x15]);
        value.extend((x as f32).to_le_bytes());
        self.summary(step, &value)
    }

    /// How numbers are distributed at a step, in `buckets` equal parts of their range. Numbers
    /// that are not finite are left out.
    ///
    /// ```
    /// # use zyx::data::EventWriter;
    /// # let folder = std::env::temp_dir().join(format!("zyx-events-histogram-{}", std::process::id()));
    /// # let mut log = EventWriter::create(&folder)?;
    /// log.histogram("weights", 0, &[0.5, -0.25, 0.125], 10)?;
    /// log.flush()?;
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn histogram(&mut self, tag: &str, step: u64, data: &[f32], buckets: usize) -> Result<()> {
        let finite: Vec<f64> =
            data.iter().map(|&x| f64::from(x)).filter(|x| x.is_finite()).collect();
        let (low, high) = finite
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
        let (low, high) = if finite.is_empty() { (0.0, 0.0) } else { (low, high) };
        let n = buckets.max(1);
        let width = if high > low { (high - low) / n as f64 } else { 1.0 };
        let mut counts = vec![0.0; n];
        for x in &finite {
            counts[(((x - low) / width) as usize).min(n - 1)] += 1.0;
        }
        let limits: Vec<f64> = (1..=n).map(|i| low + width * i as f64).collect();
        let squares: f64 = finite.iter().map(|x| x * x).sum();
        let numbers = [low, high, finite.len() as f64, finite.iter().sum(), squares];
        let mut histogram = Vec::new();
        for (i, x) in numbers.iter().enumerate() {
            histogram.push((i as u8 + 1) << 3 | 1);
            histogram.extend(x.to_le_bytes());
        }
        for (number, list) in [(6, &limits), (7, &counts)] {
            let packed: Vec<u8> = list.iter().flat_map(|x| x.to_le_bytes()).collect();
            histogram.extend(field(number, &packed));
        }
        self.summary(step, &[field(1, tag.as_bytes()), field(5, &histogram)].concat())
    }

    /// A text at a step.
    ///
    /// ```
    /// # use zyx::data::EventWriter;
    /// # let folder = std::env::temp_dir().join(format!("zyx-events-text-{}", std::process::id()));
    /// # let mut log = EventWriter::create(&folder)?;
    /// log.text("sample", 0, "To be, or not to be")?;
    /// log.flush()?;
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn text(&mut self, tag: &str, step: u64, text: &str) -> Result<()> {
        // A tensor of one string: dtype 7, shape [1].
        let shape = field(2, &field(2, &[0x08, 1]));
        let tensor = [vec![0x08, 7], shape, field(8, text.as_bytes())].concat();
        let metadata = field(1, &field(1, b"text"));
        let tag = field(1, format!("{tag}/text_summary").as_bytes());
        self.summary(step, &[tag, field(8, &tensor), field(9, &metadata)].concat())
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let done = self.file.flush();
        done.map_err(|source| Error::Io { what: self.path.display().to_string(), source })
    }

    fn summary(&mut self, step: u64, value: &[u8]) -> Result<()> {
        self.event(step, &field(5, &field(1, value)))
    }

    fn event(&mut self, step: u64, content: &[u8]) -> Result<()> {
        let mut event = vec![0x09];
        event.extend(now().to_le_bytes());
        event.push(0x10);
        event.extend(varint(step));
        event.extend(content);
        let written = self.file.write_all(&record(&event));
        written.map_err(|source| Error::Io { what: self.path.display().to_string(), source })
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// A record of these bytes.
fn record(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(bytes.len() + 16);
    record.extend(length);
    record.extend(masked(&length).to_le_bytes());
    record.extend(bytes);
    record.extend(masked(bytes).to_le_bytes());
    record
}

/// A checksum that is not its own checksum when it is part of what is checked.
fn masked(bytes: &[u8]) -> u32 {
    CRC_32C.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A field of bytes: number, length, contents.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    field.extend(varint(bytes.len() as u64));
    field.extend(bytes);
    field
}

/// Seven bits in each byte, the lowest first.
fn varint(mut x: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while x >= 0x80 {
        bytes.push(x as u8 | 0x80);
        x >>= 7;
    }
    bytes.push(x as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_the_standard() {
        // RFC 3720, B.4.
        assert_eq!(CRC_32C.checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(CRC_32C.checksum(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(CRC_32C.checksum(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
        assert_eq!(masked(&[0; 32]), 0x8a91_36aau32.rotate_right(15).wrapping_add(0xa282_ead8));
        assert_eq!(varint(300), [0xac, 2]);
    }

    /// The records of a file, checked.
    fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut records = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            let check = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            assert_eq!(check(8), masked(&rest[..8]));
            assert_eq!(check(12 + length), masked(&rest[12..12 + length]));
            records.push(rest[12..12 + length].to_vec());
            rest = &rest[16 + length..];
        }
        records
    }

    #[test]
    fn a_file_is_records_of_events() {
        let folder = std::env::temp_dir().join(format!("zyx-events-{}", std::process::id()));
        let mut log = EventWriter::create(&folder).unwrap();
        log.scalar("loss", 300, 0.5).unwrap();
        log.histogram("weights", 2, &[1.0, 2.0, f32::NAN, 2.0], 2).unwrap();
        log.text("sample", 3, "hello").unwrap();
        log.flush().unwrap();
        let records = records(&fs::read(log.path()).unwrap());
        assert_eq!(records.len(), 4);
        assert!(records[0].ends_with(b"brain.Event:2"));
        let expected =
            [&[0x10, 0xac, 2, 0x2a, 13, 0x0a, 11, 0x0a, 4][..], b"loss", &[0x15, 0, 0, 0, 0x3f]];
        assert_eq!(records[1][9..], expected.concat());
        assert!(records[3].windows(5).any(|part| part == b"hello"));
        fs::remove_dir_all(folder).unwrap();
    }
}

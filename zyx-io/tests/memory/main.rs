//! What reading takes, counted: four times the file at most, beside what is returned, whatever the
//! file says. One test, as the count is that of the process.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod mutants;

use flate2::{Compression, write::DeflateEncoder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_data::{Csv, CsvOptions, Idx};
use zyx_io::gguf::{Gguf, Value};
use zyx_io::{npy, npz, pytorch};
use zyx_nn::safetensors;

struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize) {
    MOST.fetch_max(NOW.fetch_add(more, Relaxed) + more, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both exist for a moment, if it cannot grow where it is.
        count(size);
        // SAFETY: as the caller promises.
        let moved = unsafe { System.realloc(at, layout, size) };
        NOW.fetch_sub(layout.size(), Relaxed);
        moved
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// What does not grow with a file: the state of a decompressor, headers, messages.
const CONSTANT: usize = 300 << 10;

struct Files {
    device: Device,
    path: PathBuf,
}

impl Files {
    /// Reads bytes as a file and compares what that took. `read` tells how many bytes it returns.
    fn read(&self, what: &str, bytes: &[u8], read: &dyn Fn(&Files) -> Result<usize>) -> Result<()> {
        fs::write(&self.path, bytes).unwrap();
        let before = NOW.load(Relaxed);
        MOST.store(before, Relaxed);
        let found = read(self);
        let took = MOST.load(Relaxed) - before;
        let returned = *found.as_ref().unwrap_or(&0);
        let most = 4 * bytes.len() + returned + CONSTANT;
        assert!(took <= most, "{what} of {} bytes took {took}: {found:?}", bytes.len());
        found.map(drop)
    }

    fn refused(&self, what: &str, bytes: &[u8], read: &dyn Fn(&Files) -> Result<usize>) -> String {
        match self.read(what, bytes, read) {
            Ok(()) => panic!("{what} is read"),
            Err(error) => error.to_string(),
        }
    }
}

/// What a tensor takes: its elements, its node, and its name in a map.
fn size(tensors: &std::collections::BTreeMap<String, Tensor>) -> usize {
    tensors.iter().map(|(name, x)| x.numel() * x.dtype().size() + name.len() + 700).sum()
}

fn arrays(files: &Files) -> Result<usize> {
    npz::load(&files.path, &files.device).map(|all| size(&all))
}

fn array(files: &Files) -> Result<usize> {
    npy::load(&files.path, &files.device).map(|x| x.numel() * x.dtype().size() + 700)
}

fn model(files: &Files) -> Result<usize> {
    let file = Gguf::open(&files.path)?;
    let mut returned = 0;
    for (_, value) in file.metadata() {
        returned = returned.max(match value {
            Value::List(list) => list.iter().count() * 8,
            Value::Text(text) => text.len(),
            _ => 0,
        });
    }
    let names: Vec<&str> = file.names().take(100).collect();
    for name in names {
        if let Ok(x) = file.load(name, &files.device) {
            returned = returned.max(x.numel() * x.dtype().size());
        }
    }
    Ok(returned + (40 << 10))
}

fn named(files: &Files) -> Result<usize> {
    safetensors::load(&files.path, &files.device).map(|all| size(&all))
}

fn lazy(files: &Files) -> Result<usize> {
    let file = safetensors::open(&files.path)?;
    let names: Vec<&str> = file.names().take(100).collect();
    Ok(names
        .iter()
        .map(|name| file.load(name, &files.device).map_or(0, |x| x.numel() * 8))
        .max()
        .unwrap_or(0))
}

fn saved(files: &Files) -> Result<usize> {
    pytorch::load(&files.path, &files.device).map(|all| size(&all))
}

/// An index beside the file that it names.
fn indexed(files: &Files) -> Result<usize> {
    let index = files.path.with_extension("index.json");
    fs::rename(&files.path, &index).unwrap();
    let found = safetensors::open(&index);
    fs::remove_file(&index).unwrap();
    found.map(|file| file.names().count())
}

fn table(files: &Files) -> Result<usize> {
    let csv = Csv::read(&files.path, CsvOptions::default())?;
    Ok(csv.rows().map(|row| row.count()).sum::<usize>().min(1))
}

fn images(files: &Files) -> Result<usize> {
    Idx::read(&files.path, 1).map(|idx| idx.bytes.len())
}

/// One file of an archive, as the central directory and the local header may have it.
#[derive(Clone)]
struct Packed {
    name: Vec<u8>,
    method: u16,
    crc: u32,
    packed: Vec<u8>,
    size: u32,
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |c, &b| {
        (0..8)
            .fold(c ^ u32::from(b), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
    })
}

impl Packed {
    fn deflated(name: &str, content: &[u8]) -> Packed {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        Packed {
            name: name.into(),
            method: 8,
            crc: crc(content),
            packed,
            size: content.len() as u32,
        }
    }

    fn common(&self) -> Vec<u8> {
        let mut bytes = [20u16, 0, self.method, 0, 0x21].map(u16::to_le_bytes).concat();
        bytes
            .extend([self.crc, self.packed.len() as u32, self.size].map(u32::to_le_bytes).concat());
        bytes.extend([self.name.len() as u16, 0].map(u16::to_le_bytes).concat());
        bytes
    }

    fn local(&self) -> Vec<u8> {
        [&b"PK\x03\x04"[..], &self.common(), &self.name, &self.packed].concat()
    }

    fn central(&self, header: usize) -> Vec<u8> {
        let at = (header as u32).to_le_bytes();
        [&b"PK\x01\x02\x14\0"[..], &self.common(), &[0; 10], &at, &self.name].concat()
    }
}

fn archive(body: &[u8], directory: &[u8], n: usize) -> Vec<u8> {
    let n = (n as u16).to_le_bytes();
    let (size, at) = ((directory.len() as u32).to_le_bytes(), (body.len() as u32).to_le_bytes());
    [body, directory, b"PK\x05\x06\0\0\0\0", &n, &n, &size, &at, &[0, 0]].concat()
}

/// An archive of these files, one after the other.
fn plain(all: &[Packed]) -> Vec<u8> {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for one in all {
        directory.extend(one.central(body.len()));
        body.extend(one.local());
    }
    archive(&body, &directory, all.len())
}

fn zeros(n: usize) -> Vec<u8> {
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({n},), }}");
    let header = format!("{text:117}\n");
    [&b"\x93NUMPY\x01\0"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &vec![0; n]]
        .concat()
}

fn archives(files: &Files) {
    // Honest ones, of which one holds a thousand times its size.
    let honest =
        plain(&[Packed::deflated("a.npy", &zeros(8 << 20)), Packed::deflated("b.npy", &zeros(5))]);
    assert!(honest.len() < 100 << 10);
    files.read("deflated zeros", &honest, &arrays).unwrap();
    let reason = npz::load_at_most(&files.path, 1 << 20, &files.device).unwrap_err().to_string();
    assert!(reason.contains("limit of 1048576"), "{reason}");
    assert!(npz::load_at_most(&files.path, 9 << 20, &files.device).is_ok());
    // One content, by many names; and contents within others.
    let bomb = Packed::deflated("x", &zeros(1 << 20));
    let name = |i: usize| format!("{i:0100}.npy").into_bytes();
    let names: Vec<Packed> = (0..300).map(|i| Packed { name: name(i), ..bomb.clone() }).collect();
    let body = bomb.local();
    let directory: Vec<u8> = names.iter().flat_map(|one| one.central(0)).collect();
    let shared = archive(&body, &directory, names.len());
    assert!(shared.len() < 50 << 10);
    assert!(files.refused("a shared header", &shared, &arrays).contains("share bytes"));
    let outer = Packed {
        name: b"outer".into(),
        method: 0,
        crc: 0,
        size: body.len() as u32,
        packed: body.clone(),
    };
    let inside = [outer.central(0), bomb.central(outer.local().len() - body.len())].concat();
    assert!(
        files
            .refused("an entry in another", &archive(&outer.local(), &inside, 2), &arrays)
            .contains("share bytes")
    );
    let long = Packed {
        packed: vec![0; body.len() - 31 + 40],
        method: 0,
        size: body.len() as u32 + 9,
        ..Packed::deflated("x", b"")
    };
    assert!(
        files
            .refused("an entry over the directory", &archive(&body, &long.central(0), 1), &arrays)
            .contains("directory")
    );
    // Sizes that are not so.
    for size in [0, 1, 127, 1 << 20, u32::MAX - 1] {
        let lying = Packed { size, packed: bomb.packed.clone(), name: bomb.name.clone(), ..bomb };
        files.refused("a size", &plain(&[lying]), &arrays);
    }
    let wrong = Packed { crc: 1, ..Packed::deflated("x", &zeros(1000)) };
    assert!(files.refused("a checksum", &plain(&[wrong]), &arrays).contains("checksum"));
    let twice = || Packed::deflated("x.npy", &zeros(3));
    assert!(files.refused("a name twice", &plain(&[twice(), twice()]), &arrays).contains("twice"));
    // Directories of little.
    let little = Packed { name: vec![], method: 0, crc: 0, packed: vec![], size: 0 };
    let directory: Vec<u8> = (0..60_000).flat_map(|i| little.central(i)).collect();
    files.refused("a directory of nothing", &archive(&[], &directory, 60_000), &arrays);
    files.refused("a short directory", &archive(&[], &directory[..460], 60_000), &arrays);
    // As many as are believed to be there.
    for (n, kept) in [(8000, 8000), (60_000, 200), (60_000, 0)] {
        let named = |i: usize| Packed { name: (i as u32).to_le_bytes().into(), ..little.clone() };
        let mut body: Vec<u8> = (0..kept).flat_map(|i| named(i).local()).collect();
        let size = named(0).local().len();
        let directory: Vec<u8> = (0..kept).flat_map(|i| named(i).central(i * size)).collect();
        let least: usize = n * 76 + 22;
        body.resize(least.saturating_sub(directory.len() + 22).max(body.len()), 0);
        let mut all = archive(&body, &directory, n);
        files.refused("entries", &all, &arrays);
        files.refused("entries", &all, &saved);
        // The directory is said to be as long as so many entries are.
        let size = all.len() - 22 + 12;
        all[size..size + 4].copy_from_slice(&(n as u32 * 60).to_le_bytes());
        files.refused("entries of a long directory", &all, &arrays);
    }
    // The record for large archives claims more.
    for n in [u64::MAX, 1 << 40, 100_000] {
        let mut record = b"PK\x06\x06\x2c\0\0\0\0\0\0\0".to_vec();
        record.extend([&[0; 12][..], &n.to_le_bytes(), &n.to_le_bytes(), &[0; 16]].concat());
        let at = 200_000u64.to_le_bytes();
        let locator = [&b"PK\x06\x07\0\0\0\0"[..], &at, &1u32.to_le_bytes()].concat();
        let body = [&vec![0; 200_000][..], &record, &locator].concat();
        files.refused("a large directory", &archive(&body, &[], 65_535), &arrays);
    }
    // So it does as far from the end as the crate looks for it.
    let n = 4000u64.to_le_bytes();
    let record = [&b"PK\x06\x06\x2c\0\0\0\0\0\0\0"[..], &[0; 12], &n, &n, &[0; 16]].concat();
    let locator = [&b"PK\x06\x07\0\0\0\0"[..], &200_000u64.to_le_bytes(), &[1, 0, 0, 0]].concat();
    let mut far = archive(&[&vec![0; 200_000][..], &record, &locator].concat(), &[], 1);
    let directory = far.len() - 6;
    far[directory..directory + 4].fill(255);
    far.resize(directory - 16 + 65_572, 0);
    let reason = files.refused("a large directory far from the end", &far, &arrays);
    assert!(reason.contains("claims 4000 entries"), "{reason}");
    let many: Vec<Packed> =
        (0..3000).map(|i| Packed::deflated(&format!("{i}.npy"), &zeros(0))).collect();
    files.read("many arrays", &plain(&many), &arrays).unwrap();
    // Headers of arrays.
    for length in [u32::MAX, 1 << 30, 100_000] {
        let header =
            [&b"\x93NUMPY\x02\0"[..], &length.to_le_bytes(), &vec![b' '; 200_000]].concat();
        files.refused("a header", &header, &array);
        files.refused("a deflated header", &plain(&[Packed::deflated("x", &header)]), &arrays);
    }
    let header = b"\x93NUMPY\x01\0\x76\0{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }                                           \n";
    files.refused("a shape", header, &array);
    files.read("an array", &zeros(3 << 20), &array).unwrap();
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A GGUF file with these items and no data.
fn gguf(tensors: &[Vec<u8>], values: &[Vec<u8>]) -> Vec<u8> {
    let n = [tensors.len() as u64, values.len() as u64].map(u64::to_le_bytes).concat();
    [&b"GGUF\x03\0\0\0"[..], &n, &values.concat(), &tensors.concat()].concat()
}

fn list(name: &str, kind: u32, n: u64, content: &[u8]) -> Vec<u8> {
    [&text(name)[..], &9u32.to_le_bytes(), &kind.to_le_bytes(), &n.to_le_bytes(), content].concat()
}

fn models(files: &Files) {
    let n = 1 << 20;
    files
        .read("a list of bytes", &gguf(&[], &[list("a", 0, n as u64, &vec![7; n])]), &model)
        .unwrap();
    files
        .read(
            "a list of empty strings",
            &gguf(&[], &[list("a", 8, 100_000, &vec![0; 800_000])]),
            &model,
        )
        .unwrap();
    let inner = list("", 0, 0, &[])[12..].to_vec();
    files
        .read(
            "a list of empty lists",
            &gguf(&[], &[list("a", 9, 50_000, &inner.repeat(50_000))]),
            &model,
        )
        .unwrap();
    let values: Vec<Vec<u8>> =
        (0..60_000).map(|i| [&text(&format!("{i:x}"))[..], &[0, 0, 0, 0, 1]].concat()).collect();
    files.read("many values", &gguf(&[], &values), &model).unwrap();
    let tensors: Vec<Vec<u8>> =
        (0..60_000).map(|i| [&text(&format!("{i:x}"))[..], &[0; 16]].concat()).collect();
    files.read("many tensors", &gguf(&tensors, &[]), &model).unwrap();
    for (tensors, values) in [(u64::MAX, 0), (0, u64::MAX), (1 << 40, 1), (0, 50_000)] {
        let n = [tensors, values].map(u64::to_le_bytes).concat();
        files.refused(
            "a number of items",
            &[&b"GGUF\x03\0\0\0"[..], &n, &vec![0; 500_000]].concat(),
            &model,
        );
    }
    for n in [1 << 40, u64::MAX, 2 << 20] {
        files.refused(
            "the length of a list",
            &gguf(&[], &[list("a", 8, n, &vec![0; 1 << 20])]),
            &model,
        );
    }
    let twice = vec![list("a", 0, 0, &[]); 2];
    assert!(files.refused("a key twice", &gguf(&[], &twice), &model).contains("twice"));
    files.refused(
        "a long key",
        &gguf(&[], &vec![list(&"x".repeat(1 << 20), 0, 0, &[]); 2]),
        &model,
    );
    // A tensor of four bits an element, which is returned as floats.
    let blocks = 30_000u64;
    let entry = [
        &text("q")[..],
        &1u32.to_le_bytes(),
        &(32 * blocks).to_le_bytes(),
        &2u32.to_le_bytes(),
        &[0; 8],
    ]
    .concat();
    let mut whole = gguf(&[entry], &[]);
    whole.resize(whole.len().next_multiple_of(32) + 18 * blocks as usize, 0);
    files.read("a quantised tensor", &whole, &model).unwrap();
    whole.truncate(1000);
    files.read("of which little is there", &whole, &model).unwrap();
}

/// A safetensors file with this header.
fn headed(header: &str, data: usize) -> Vec<u8> {
    [&text(header)[..], &vec![0; data]].concat()
}

fn safe(files: &Files) {
    let entry =
        |i: usize| format!("\"{i:x}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    let many = format!("{{{}}}", (0..20_000).map(entry).collect::<Vec<_>>().join(","));
    files.read("many entries", &headed(&many, 0), &lazy).unwrap();
    files.read("many tensors", &headed(&many, 0), &named).unwrap();
    let zeros = "0,".repeat(1 << 18);
    for hostile in [
        format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[{zeros}0],\"data_offsets\":[0,0]}}}}"),
        format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[{zeros}0]}}}}"),
        format!("{{\"a\":[{zeros}0]}}"),
        format!("[{zeros}0]"),
        format!("{{{}\"x\":0}}", "\"x\":0,".repeat(1 << 16)),
        format!("{{\"{}\":0}}", "x".repeat(1 << 19)),
        format!("{{\"{}\":0}}", "\\n".repeat(1 << 18)),
        format!("{{\"a\":{{{}\"x\":0}}}}", "\"x\":0,".repeat(1 << 16)),
        format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 19)),
        "[".repeat(1 << 18),
        "{\"a\":".repeat(1 << 16),
    ] {
        let what = &hostile[..20];
        files.refused(what, &headed(&hostile, 0), &named);
        files.refused(what, &headed(&hostile, 0), &lazy);
    }
    let metadata =
        format!("{{\"__metadata__\":{{{}\"x\":\"\"}}}}", "\"x\":\"yes\",".repeat(1 << 16));
    files.read("metadata", &headed(&metadata, 0), &named).unwrap();
    for length in [100_000_000u64, u64::MAX, 1 << 40] {
        let lying = [&length.to_le_bytes()[..], b"{}"].concat();
        files.refused("a header's length", &lying, &named);
        files.refused("a header's length", &lying, &lazy);
    }
    files
        .read(
            "a tensor",
            &headed(
                "{\"a\":{\"dtype\":\"U8\",\"shape\":[3145728],\"data_offsets\":[0,3145728]}}",
                3 << 20,
            ),
            &named,
        )
        .unwrap();
}

/// A file of PyTorch with this pickle and a storage of so many zeros.
fn pickled(pickle: &[u8], storage: usize) -> Vec<u8> {
    let stored = |name: &str, content: &[u8]| Packed {
        packed: content.into(),
        method: 0,
        ..Packed::deflated(name, content)
    };
    plain(&[stored("x/data.pkl", pickle), stored("x/data/0", &vec![0; storage])])
}

/// A tensor of the first element of storage `0`.
fn element(key: &str, storage: usize) -> Vec<u8> {
    let n = key.len() as u8;
    let numel = (storage as u32).to_le_bytes();
    [
        &b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nByteStorage\nX"[..],
        &[n, 0, 0, 0],
        key.as_bytes(),
        b"X\x03\0\0\0cpuJ",
        &numel,
        b"tQK\0K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat()
}

/// A pickle's part: so many lists that are dropped, which take much more than their bytes.
fn lists(n: usize) -> Vec<u8> {
    b"](h\0h\0h\0h\0h\0e0".repeat(n)
}

fn pickles(files: &Files) {
    let x = element("0", 8);
    for (what, pickle) in [
        ("values", b"N".repeat(1 << 20)),
        ("marks", b"(".repeat(1 << 20)),
        ("empty tuples", b")".repeat(1 << 20)),
        ("tuples in tuples", [&b")"[..], &b"\x85".repeat(1 << 20)].concat()),
        ("tuples of three", b"NNN\x87".repeat(1 << 18)),
        ("lists", b"]".repeat(1 << 20)),
        ("dicts", b"}".repeat(1 << 20)),
        ("lists of lists", b"]]a".repeat(1 << 18)),
        ("numbered values", [&b"N"[..], &b"\x94".repeat(1 << 20)].concat()),
        ("numbered strings", b"\x8c\0\x94".repeat(1 << 18)),
        ("a list of numbers", [&b"]("[..], &b"K\x01".repeat(1 << 19), b"e"].concat()),
        ("a long tuple", [&b"("[..], &b"N".repeat(1 << 20), b"t"].concat()),
        ("a line", [&b"c"[..], &b"x".repeat(1 << 20)].concat()),
        ("a string", [&b"X\0\0\x10\0"[..], &b"x".repeat(1 << 20), b"0"].concat()),
        ("a key", [&b"}X\0\0\x10\0"[..], &b"x".repeat(1 << 20), &x, b"s."].concat()),
        ("tensors in themselves", [&b"]q\0"[..], &b"h\0a".repeat(1 << 18), b"."].concat()),
        ("one tensor", [&b"]("[..], &x, b"q\0", &b"h\0".repeat(1 << 18), b"eN."].concat()),
        ("storages", [&x[..], b"0"].concat().repeat(5000)),
    ] {
        files.refused(what, &pickled(&[&b"\x80\x02"[..], &pickle].concat(), 8), &saved);
    }
    // In files before 1.6, the object and the names of storages.
    let machine = b"\x80\x02M\xe9\x03.\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    let old = [&b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."[..], machine].concat();
    for (what, rest) in [
        ("old values", b"N".repeat(1 << 20)),
        ("old lists", b"]".repeat(1 << 20)),
        ("old names", [&b"}.]("[..], &b"N".repeat(1 << 20)].concat()),
        ("old empty names", [&b"}.]("[..], &b"\x8c\0".repeat(1 << 19), b"e."].concat()),
        ("old storages", [&x[..], b".](", &b"\x8c\x010".repeat(1 << 18), b"e."].concat()),
    ] {
        files.refused(what, &[&old[..], &rest].concat(), &saved);
    }
    // All that both may take, and then where the storages are.
    let object = [&b"]q\x000"[..], &lists(57_000), &element("0", 8_000_000), b"."].concat();
    let thousand = [&b"("[..], &b"N".repeat(1000), b"e"].concat();
    let names = [&b"]q\0"[..], &thousand.repeat(100), &lists(18_000), b"."].concat();
    let stored = [&8_000_000u64.to_le_bytes()[..], &vec![0; 8_000_000]].concat();
    let both = [&old[..], &object, &names, &stored].concat();
    let reason = files.refused("old places", &both, &saved);
    assert!(reason.contains("more memory than four times"), "{reason}");
    let stored = [&(3u64 << 20).to_le_bytes()[..], &vec![0; 3 << 20]].concat();
    let large = [&old[..], &element("0", 3 << 20), b".](\x8c\x010e.", &stored].concat();
    files.read("an old storage", &large, &saved).unwrap();
    // Many numbers of which none is a tensor, in parts as Python writes them.
    let thousand = [&b"("[..], &b"K\x01".repeat(1000), b"e"].concat();
    let numbers = [&b"\x80\x02]"[..], &thousand.repeat(1000), b"."].concat();
    files.read("a list of numbers", &pickled(&numbers, 8), &saved).unwrap();
    // Many tensors of one storage, as many as the pickle has room for, and a storage that is large.
    let many: Vec<u8> = (0..3000u32)
        .flat_map(|i| [&b"\x8c\x04"[..], format!("{i:04}").as_bytes(), &x].concat())
        .collect();
    let many = [&b"\x80\x02}("[..], &many, b"u."].concat();
    files.read("tensors of one storage", &pickled(&many, 8), &saved).unwrap();
    let few = [&b"\x80\x02"[..], &x, b"."].concat();
    files.read("a pickle", &pickled(&few, 8), &saved).unwrap();
    let large = [&b"\x80\x02"[..], &element("0", 3 << 20), b"."].concat();
    files.read("a storage", &pickled(&large, 3 << 20), &saved).unwrap();
    let repeated = [&b"\x80\x02]("[..], &x, b"q\0", &b"h\0".repeat(100), b"e."].concat();
    files.read("one tensor again and again", &pickled(&repeated, 8), &saved).unwrap();
    // A pickle that takes what it may, and then a storage is read.
    let beside = |n: usize| {
        let x = element("0", 6_500_000);
        pickled(&[&b"\x80\x02]q\x000"[..], &lists(n), &x, b"."].concat(), 6_500_000)
    };
    files.read("a pickle beside a storage", &beside(60_000), &saved).unwrap();
    let reason = files.refused("a large pickle beside a storage", &beside(90_000), &saved);
    assert!(reason.contains("more memory than four times"), "{reason}");
    // A small one, of each of many storages.
    let names: Vec<String> = (0..3000).map(|i| i.to_string()).collect();
    let tensors = names.iter().flat_map(|name| {
        let n = name.len() as u8;
        [&b"X"[..], &[n, 0, 0, 0], name.as_bytes(), &element(name, 4)].concat()
    });
    let pickle = [&b"\x80\x02}("[..], &tensors.collect::<Vec<u8>>(), b"u."].concat();
    let stored = |name: &str, content: &[u8]| Packed {
        packed: content.into(),
        method: 0,
        ..Packed::deflated(name, content)
    };
    let mut all = vec![stored("x/data.pkl", &pickle)];
    all.extend(names.iter().map(|name| stored(&format!("x/data/{name}"), &[7; 4])));
    files.read("many storages", &plain(&all), &saved).unwrap();
}

fn indices(files: &Files) {
    let shard = files.path.with_file_name(format!("s{}.safetensors", std::process::id()));
    let file = shard.file_name().unwrap().to_str().unwrap().to_owned();
    let entry =
        |i: usize| format!("\"{i:x}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    let header = format!("{{{}}}", (0..500).map(entry).collect::<Vec<_>>().join(","));
    fs::write(&shard, headed(&header, 0)).unwrap();
    let lines: Vec<String> = (0..500).map(|i| format!("\"{i:x}\":\"{file}\"")).collect();
    let map = lines.join(",");
    let index = |map: &str| format!("{{\"weight_map\":{{{map}}}}}");
    files.read("an index", index(&map).as_bytes(), &indexed).unwrap();
    let none = format!("\"x\":\"{file}\",").repeat(1 << 14);
    for (what, text) in [
        ("one name", index(&format!("{none}{map}"))),
        ("a long name", index(&format!("\"{}\":\"{file}\"", "x".repeat(1 << 20)))),
        ("escapes", index(&format!("\"{}\":\"{file}\"", "\\n".repeat(1 << 19)))),
        ("a long file", index(&format!("\"x\":\"{}\"", "x".repeat(1 << 20)))),
        ("brackets", format!("{{\"metadata\":{}", "[".repeat(1 << 20))),
        (
            "closed brackets",
            format!("{{\"metadata\":{}{}}}", "[".repeat(1 << 19), "]".repeat(1 << 19)),
        ),
        ("empty names", index(&"\"\":\"\",".repeat(1 << 16))),
    ] {
        files.refused(what, text.as_bytes(), &indexed);
    }
    fs::remove_file(shard).unwrap();
}

fn tables(files: &Files) {
    for (what, text) in [
        ("short lines", "a\n".repeat(1 << 18)),
        ("empty fields", ",,,,,,,\n".repeat(1 << 16)),
        ("one line", ",".repeat(1 << 19)),
        ("quotes", "\"\"\n".repeat(1 << 18)),
        ("doubled quotes", format!("\"{}\"\n", "\"\"".repeat(1 << 18))),
        ("empty lines", "\n".repeat(1 << 19)),
    ] {
        files.read(what, text.as_bytes(), &table).unwrap();
    }
    let open = format!("a\n\"{}", "x\n".repeat(1 << 18));
    assert!(files.refused("an open quote", open.as_bytes(), &table).contains("quote of line 2"));
    files.refused("a longer line", format!("{},b\n", "a\n".repeat(1 << 18)).as_bytes(), &table);
    files
        .read("an IDX file", &[&[0, 0, 8, 1, 0, 16, 0, 0][..], &vec![1; 1 << 20]].concat(), &images)
        .unwrap();
    files.refused("what an IDX file has", &[0, 0, 8, 1, 255, 255, 255, 255, 1], &images);
}

type Read = fn(&Files) -> Result<usize>;

/// A file of each format, and what reads it.
fn samples(files: &Files) -> Vec<(&'static str, Vec<u8>, Read)> {
    let random: Vec<u8> =
        (0..6000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let x = Tensor::from_slice(&random, [random.len()], &files.device).unwrap();
    let mut whole = gguf(
        &[[&text("q")[..], &[1, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], &[0; 8]].concat()],
        &[list("a", 2, 3, &[0; 6])],
    );
    whole.resize(whole.len().next_multiple_of(32) + 36, 0);
    let safe = safetensors::to_bytes(
        &[("x".to_owned(), x.clone()), ("y".to_owned(), x.cast(DType::F32))].into(),
    )
    .unwrap();
    let content = npy::to_bytes(&x).unwrap();
    let zip = plain(&[
        Packed::deflated("x", &content),
        Packed { packed: content.clone(), method: 0, ..Packed::deflated("y", &content) },
    ]);
    let csv = "a,\"b\"\n1,\"2\n\"\n".repeat(20).into_bytes();
    let idx = [&[0, 0, 8, 1, 0, 0, 0, 100][..], &[1; 100]].concat();
    let pt = pickled(&[&b"\x80\x02"[..], &element("0", 8), b"."].concat(), 8);
    vec![
        ("pytorch", pt, saved),
        ("npy", content, array),
        ("npz", zip, arrays),
        ("gguf", whole, model),
        ("safetensors", safe.clone(), named),
        ("lazy safetensors", safe, lazy),
        ("csv", csv, table),
        ("idx", idx, images),
    ]
}

/// Every format with bits flipped and parts missing.
fn damaged(files: &Files) {
    for (what, bytes, read) in samples(files) {
        files.read(what, &bytes, &read).unwrap();
        // Headers are at both ends.
        let ends = |n: usize| (0..n.min(160)).chain(n.saturating_sub(100)..n);
        for at in ends(bytes.len()) {
            let _ = files.read(what, &bytes[..at], &read);
            for change in [1 << (at % 8), 255] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let _ = files.read(what, &damaged, &read);
            }
        }
    }
}

#[test]
fn reading_takes_four_times_a_file_and_what_it_returns() {
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    let device = runtime.device("cpu").unwrap();
    let path = std::env::temp_dir().join(format!("zyx-io-memory-{}", std::process::id()));
    let files = Files { device, path };
    // What is made once.
    Tensor::ones([3], DType::F32, &files.device).to_vec::<f32>().unwrap();
    archives(&files);
    models(&files);
    safe(&files);
    indices(&files);
    pickles(&files);
    tables(&files);
    damaged(&files);
    mutants::all(&files);
    // An index was renamed.
    let _ = fs::remove_file(files.path);
}

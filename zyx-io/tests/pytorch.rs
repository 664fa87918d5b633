//! Files that PyTorch wrote (`data/make_pytorch.py`), and pickles that nobody should run.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};
use zyx_core::{DType, Device, Error, Result, Runtime, Tensor};
use zyx_io::{npz, pytorch};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name].iter().collect()
}

#[test]
fn what_pytorch_saved_has_the_values_of_pytorch() -> Result<()> {
    let device = device();
    let expected = npz::load(data("expected.npz"), &device)?;
    for name in ["model.pt", "legacy.pt"] {
        same(&pytorch::load(data(name), &device)?, &expected)?;
    }
    for name in ["protocol5.pt", "unchecked.pt"] {
        let all = pytorch::load(data(name), &device)?;
        assert_eq!(all.keys().collect::<Vec<_>>(), ["x"], "{name}");
        assert_eq!(all["x"].to_vec::<f32>()?, [0.0, 1.0, 2.0], "{name}");
    }
    Ok(())
}

fn same(found: &BTreeMap<String, Tensor>, expected: &BTreeMap<String, Tensor>) -> Result<()> {
    assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
    for name in ["model.weight", "optimizer.state.0.exp_avg", "dtypes.3", "pair.1.3"] {
        assert!(found.contains_key(name), "{name}");
    }
    let mut dtypes = Vec::new();
    for (name, want) in expected {
        let got = &found[name];
        assert_eq!(got.shape(), want.shape(), "{name}");
        dtypes.push(got.dtype());
        // NumPy has no bf16.
        let same = if got.dtype() == DType::BF16 { &got.cast(DType::F32) } else { got };
        assert_eq!(same.dtype(), want.dtype(), "{name}");
        assert_eq!(same.to_bytes()?, want.to_bytes()?, "{name}");
    }
    for dtype in DType::ALL {
        assert!(dtypes.contains(dtype), "{dtype}");
    }
    Ok(())
}

fn reason(found: Result<impl Sized>) -> String {
    match found {
        Ok(_) => panic!("it is read"),
        Err(error) => {
            assert!(matches!(error, Error::Format { .. }), "{error}");
            error.to_string()
        }
    }
}

#[test]
fn what_is_refused_says_why() {
    let device = device();
    for (name, expected) in [
        ("refused.pt", "`torch.nn.modules.linear.Linear` is none of the functions and classes"),
        ("big.pt", "its byte order is bigbig"),
        ("conjugated.pt", "`x`: is a negated or conjugated view"),
        ("stored.npz", "no `data.pkl`"),
        ("columns.npy", "columns.npy: "),
    ] {
        let error = reason(pytorch::load(data(name), &device));
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    let error = reason(pytorch::load_at_most(data("model.pt"), 500, &device));
    assert!(error.contains("more than the limit of 500"), "{error}");
    assert!(matches!(pytorch::load(data("none.pt"), &device), Err(Error::Io { .. })));
}

/// A file with this pickle, and a storage `0` of so many zeros.
fn file(pickle: &[u8], storage: usize) -> Vec<u8> {
    packed(pickle, storage, CompressionMethod::Stored)
}

fn packed(pickle: &[u8], storage: usize, method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, content) in
        [("x/data.pkl", pickle), ("x/byteorder", b"little"), ("x/data/0", &vec![0; storage])]
    {
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The pickle of a tensor: class and elements of the storage, offset, shape and strides.
fn tensor(class: &str, len: i32, offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
    let number = |n: &i32| [&b"J"[..], &n.to_le_bytes()].concat();
    let tuple =
        |all: &[i32]| [&b"("[..], &all.iter().flat_map(number).collect::<Vec<u8>>(), b"t"].concat();
    let storage = format!("(X\x07\0\0\0storagectorch\n{class}\nX\x01\0\0\x000X\x03\0\0\0cpu");
    [
        &b"ctorch._utils\n_rebuild_tensor_v2\n("[..],
        storage.as_bytes(),
        &number(&len),
        b"tQ",
        &number(&offset),
        &tuple(shape),
        &tuple(strides),
        b"\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat()
}

/// A dict with one value, `w`.
fn dict(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02}X\x01\0\0\0w", value, b"s."].concat()
}

#[test]
fn views_beyond_their_storage_are_refused() {
    let device = device();
    let read = |class, len, offset, shape: &[i32], strides: &[i32], storage| {
        let pickle = dict(&tensor(class, len, offset, shape, strides));
        pytorch::from_bytes(&file(&pickle, storage), &device)
    };
    let all = read("FloatStorage", 6, 1, &[2, 2], &[3, 1], 24).unwrap();
    assert_eq!(all["w"].shape().dims(), [2, 2]);
    let all = read("LongStorage", 1, 0, &[1 << 20, 1 << 20], &[0, 0], 8).unwrap();
    assert_eq!(all["w"].shape().dims(), [1 << 20, 1 << 20], "repeated without memory");
    for (class, len, offset, shape, strides, storage, expected) in [
        (
            "FloatStorage",
            6,
            2,
            &[2, 2][..],
            &[3, 2][..],
            24,
            "reaches element 7 of a storage that has 6",
        ),
        ("FloatStorage", 6, 7, &[][..], &[][..], 24, "reaches element 7"),
        ("FloatStorage", 6, -1, &[2], &[1], 24, "has no offset"),
        ("FloatStorage", 6, 0, &[-2], &[1], 24, "has a shape that none has"),
        ("FloatStorage", 6, 5, &[2], &[-1], 24, "has strides that do not fit"),
        ("FloatStorage", 6, 0, &[2], &[1, 1], 24, "has strides that do not fit"),
        ("FloatStorage", 6, 0, &[1; 17], &[1; 17], 24, "has a shape that none has"),
        ("FloatStorage", 6, 0, &[6], &[1], 25, "has 25 bytes instead of 6 elements"),
        ("FloatStorage", i32::MAX, 0, &[6], &[1], 24, "has 24 bytes instead of 2147483647"),
        ("FloatStorage", 6, 0, &[3, 3], &[1, 1], 24, "its 9 elements overlap in a storage of 6"),
        ("FloatStorage", 6, 0, &[i32::MAX; 3], &[i32::MAX; 3], 24, "is too large"),
        ("FloatStorage", 6, 0, &[2, 2], &[i32::MAX; 2], 24, "reaches element 4294967294"),
        ("UntypedStorage", 24, 0, &[6], &[1], 24, "has no dtype"),
        ("ComplexFloatStorage", 3, 0, &[3], &[1], 24, "`torch.ComplexFloatStorage` is none of"),
    ] {
        let error = reason(read(class, len, offset, shape, strides, storage));
        assert!(error.contains(expected), "`{error}` does not say `{expected}`");
        assert!(error.contains('`'), "{error}");
    }
    let bools = file(&dict(&tensor("BoolStorage", 2, 0, &[2], &[1])), 2);
    assert!(pytorch::from_bytes(&bools, &device).is_ok());
    let mut elsewhere = dict(&tensor("FloatStorage", 2, 0, &[2], &[1]));
    let key = elsewhere.windows(5).position(|w| w == b"\x01\0\0\x000").unwrap();
    elsewhere[key + 4] = b'1';
    let error = reason(pytorch::from_bytes(&file(&elsewhere, 8), &device));
    assert!(error.contains("`w`: its storage `1` is missing"), "{error}");
    let compressed = packed(&dict(b"N"), 8, CompressionMethod::Deflated);
    let error = reason(pytorch::from_bytes(&compressed, &device));
    assert!(error.contains("is compressed"), "{error}");
}

/// The pickle of so many lists, each of which holds the one before twice; the first holds a tensor.
fn laughs(lists: u8, x: &[u8]) -> Vec<u8> {
    let list = |i: u8| [b"0]q", &[i + 1][..], b"(h", &[i], b"h", &[i], b"e"].concat();
    let lists = (0..lists).flat_map(list).collect::<Vec<u8>>();
    [b"\x80\x02]q\0", x, b"a", &lists, b"."].concat()
}

#[test]
fn hostile_pickles_are_refused() {
    let device = device();
    let read = |pickle: &[u8]| pytorch::from_bytes(&file(pickle, 24), &device);
    let x = tensor("FloatStorage", 6, 0, &[6], &[1]);
    let both = |a: &[u8], b: &[u8]| [a, &x, b].concat();
    // One name for two tensors.
    let twice =
        [&b"\x80\x02}(X\x03\0\0\0a.b"[..], &x, b"X\x01\0\0\0a}X\x01\0\0\0b", &x, b"su."].concat();
    assert!(reason(read(&twice)).contains("two tensors get the name `a.b`"));
    // A key without a name.
    assert!(reason(read(&both(b"\x80\x02}N", b"s."))).contains("None is a key"));
    // Something in itself, and much made of little.
    let long = [&b"\x80\x02X\xc8\0\0\0"[..], &[b'x'; 200], b"0]q\0h\0a."].concat();
    assert!(reason(read(&long)).contains("or in itself"));
    // So with a dict of what gets no name, which is skipped.
    let skipped = [&b"\x80\x02]q\x000}q\x01("[..], &b"Nh\0".repeat(400), b"u0]("].concat();
    let skipped = [&skipped[..], &b"h\x01".repeat(400), b"e."].concat();
    for pickle in [laughs(40, &x), skipped] {
        let error = reason(read(&pickle));
        assert!(error.contains("again and again"), "{error}");
    }
    // A long text that is a key again and again is not decoded each time, which took a minute.
    let long = [b"\x80\x02}X", &(8u32 << 20).to_le_bytes()[..], &vec![b'x'; 8 << 20]].concat();
    let keys = [&long[..], b"q\x000]q\x010", &b"h\0h\x01s".repeat(200_000), b"."].concat();
    let (keys, begun) = (file(&keys, 24), std::time::Instant::now());
    assert!(pytorch::from_bytes(&keys, &device).unwrap().is_empty());
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    let deep = [&b"\x80\x02"[..], &b"]".repeat(100), &b"a".repeat(99), b"."].concat();
    assert!(reason(read(&deep)).contains("deep"));
    let deep = [&b"\x80\x02"[..], b")", &b"\x85".repeat(1000), b"."].concat();
    assert!(reason(read(&deep)).contains("deep"));
    for (pickle, expected) in [
        (&b"cposix\nsystem\nX\x02\0\0\0ls\x85R."[..], "`posix.system` is none of"),
        (b"\x8c\x02os\x8c\x06system\x93)R.", "`os.system` is none of"),
        (b"cbuiltins\neval\n)R.", "`builtins.eval`"),
        (b"ctorch\nFloatStorage\n)R.", "is called with 0 arguments"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R.", "is called with 0 arguments"),
        (b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)NtR.", "called"),
        (b"ctorch._utils\n_rebuild_parameter\n(N\x89NtR.", "a parameter is made of None"),
        (b"NNR.", "None is called"),
        (b"ccollections\nOrderedDict\nNR.", "None is given for arguments"),
        (b"K\x01K\x02b.", "a number is given attributes"),
        (b"NQ.", "no storage"),
        (b"(X\x07\0\0\0storageNNNNtQ.", "no storage"),
        (b".", "makes no one value"),
        (b"NN.", "makes no one value"),
        (b"(N.", "makes no one value"),
        (b"0.", "the stack is empty"),
        (b"N(0.", "the stack is empty"),
        (b"](a.", "the stack is empty"),
        (b"a.", "the stack is empty"),
        (b"e.", "no mark"),
        (b"(e.", "the stack is empty"),
        (b"N(NNu.", "None is given elements"),
        (b"}(Nu.", "a key has no value"),
        (b"NNa.", "None is given elements"),
        (b"h\x07.", "there is no value 7"),
        (b"Nr\xff\xff\xff\xff.", "more memory than four times"),
        (b"X\xff\xff\xff\xff.", "it ends at byte"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "it ends at byte"),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "it ends at byte"),
        (b"\x80\x09.", "version 9"),
        (b"cposix", "a name does not end"),
        (b"I1\n.", "0x49"),
        (b"\xff.", "0xff"),
        (b"N", "it ends at byte"),
        (b"", "it ends at byte"),
    ] {
        let error = reason(read(pickle));
        assert!(error.contains(expected), "`{error}` does not say `{expected}` of {pickle:?}");
    }
    assert!(reason(read(&both(b"\x80\x02", b"\x81."))).contains("the stack"));
    // What is fine: no tensor at all, and a tensor alone.
    assert!(read(b"\x80\x02}.").unwrap().is_empty());
    assert_eq!(read(&both(b"\x80\x02", b".")).unwrap()[""].shape().dims(), [6]);
}

/// Objects that are no tensors are left out; tensors in them would be lost, so those are refused.
#[test]
fn other_objects_are_left_out() {
    let device = device();
    let read = |pickle: &[u8]| pytorch::from_bytes(&file(pickle, 24), &device);
    let x = tensor("FloatStorage", 6, 0, &[6], &[1]);
    let beside = |object: &[u8]| {
        [&b"\x80\x02}(X\x01\0\0\0w"[..], &x, b"X\x01\0\0\0o", object, b"u."].concat()
    };
    for object in [
        // Counter({'a': 1}), of protocol 2.
        &b"ccollections\nCounter\n}X\x01\0\0\0aK\x01s\x85R"[..],
        // argparse.Namespace(lr=0.5, layers=[1, 2]).
        b"cargparse\nNamespace\n)\x81}(X\x02\0\0\0lrG?\xe0\0\0\0\0\0\0X\x06\0\0\0layers](K\x01K\x02eub",
        // A NumPy scalar: its dtype has a state.
        b"cnumpy._core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\0\0\0f8\x89\x88tR(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbC\x08\0\0\0\0\0\0\xf0?tR",
        // An object with named arguments, and one of a class that is a list and a dict.
        b"cx\ny\n)}X\x01\0\0\0aK\x01s\x92",
        b"cx\ny\n)\x81(K\x01K\x02eX\x01\0\0\0aNs",
        b"cx\ny\n",
    ] {
        let all = read(&beside(object)).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["w"], "{object:?}");
    }
    // Of these the tensors are read.
    let keyed = |object: &[&[u8]]| read(&beside(&object.concat())).unwrap().into_keys().collect();
    let names: Vec<String> =
        keyed(&[b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RX\x01\0\0\0a", &x, b"s"]);
    assert_eq!(names, ["o.a", "w"]);
    let names: Vec<String> = keyed(&[b"}X\x01\0\0\0aK\x07\x86", &x, b"s"]);
    assert_eq!(names, ["o.a.7", "w"]);
    // As Python 2 writes an OrderedDict, numbered from 1 on.
    let names: Vec<String> =
        keyed(&[b"ccollections\nOrderedDict\nq\x01](]q\x02(X\x01\0\0\0a", &x, b"ee\x85R"]);
    assert_eq!(names, ["o.a", "w"]);
    for object in [
        [&b"cx\ny\n"[..], &x, b"\x85R"].concat(),
        [&b"cx\ny\n)\x81}X\x01\0\0\0a]"[..], &x, b"asb"].concat(),
        [&b"cx\ny\n)\x81"[..], &x, b"a"].concat(),
        [&b"cx\ny\n)\x81X\x01\0\0\0a"[..], &x, b"s"].concat(),
        [&b"cx\ny\n)}X\x01\0\0\0a"[..], &x, b"s\x92"].concat(),
    ] {
        let error = reason(read(&beside(&object)));
        assert!(error.contains("`x.y` is none of"), "{error}");
    }
    // The same containers are not gone through for each object.
    let room = [&b"\x80\x02X\0\0\x10\0"[..], &[b'x'; 1 << 20], b"0"].concat();
    let many = [&room, &b"]q\0("[..], &b"N\x85".repeat(20_000), b"e0("].concat();
    let many = [&many[..], &b"cx\ny\nh\0\x85R".repeat(20_000), b"t."].concat();
    let error = reason(read(&many));
    assert!(error.contains("again and again"), "{error}");
}

/// A file that is cut off, or has a byte changed, is refused or read, without a panic.
#[test]
fn damage_is_an_error() {
    let device = device();
    let whole = std::fs::read(data("model.pt")).unwrap();
    for cut in (0..whole.len()).step_by(37) {
        reason(pytorch::from_bytes(&whole[..cut], &device));
    }
    let elements = |bytes: &[u8]| -> Result<(Vec<String>, Vec<u8>)> {
        let all = pytorch::from_bytes(bytes, &device)?;
        Ok((all.keys().cloned().collect(), all["layouts.sliced"].to_bytes()?))
    };
    let expected = elements(&whole).unwrap();
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        // Checksums: what is read is what was saved.
        if let Ok(found) = elements(&bytes) {
            assert_eq!(found, expected, "byte {at}");
        }
    }
    // The pickle itself, in an archive that is whole.
    let pickle = pickle_of(&whole);
    for at in (0..pickle.len()).step_by(3) {
        let mut bytes = pickle.clone();
        bytes[at] ^= 1 << (at % 8);
        let _ = pytorch::from_bytes(&file(&bytes, 24), &device);
        reason(pytorch::from_bytes(&file(&pickle[..at], 24), &device));
    }
}

/// So is one of PyTorch before 1.6.
#[test]
fn damage_of_old_files_is_an_error() {
    let device = device();
    let whole = std::fs::read(data("legacy.pt")).unwrap();
    for at in (0..whole.len()).step_by(7) {
        reason(pytorch::from_bytes(&whole[..at], &device));
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let _ = pytorch::from_bytes(&bytes, &device);
    }
    let error = reason(pytorch::from_bytes(&[&whole[..], b"x"].concat(), &device));
    assert!(error.contains("1 bytes follow its storages"), "{error}");
    let start = &whole[..15];
    let x = tensor("FloatStorage", 2, 0, &[2], &[1]);
    let file = |version: u8, little: &[u8], object: &[u8], names: &[u8], rest: &[u8]| {
        let version = [&b"\x80\x02M"[..], &[version, 3], b"."].concat();
        let machine = [&b"\x80\x02}X\x0d\0\0\0little_endian"[..], little, b"s."].concat();
        [start, &version, &machine, object, names, rest].concat()
    };
    let (object, names) = (dict(&x), &b"](X\x01\0\0\x000e."[..]);
    let rest = [&2u64.to_le_bytes()[..], &1f32.to_le_bytes(), &2f32.to_le_bytes()].concat();
    let all = pytorch::from_bytes(&file(0xe9, b"\x88", &object, names, &rest), &device).unwrap();
    assert_eq!(all["w"].to_vec::<f32>().unwrap(), [1.0, 2.0]);
    // What is looked at is bounded by the pickle, however long storages are.
    let again = laughs(12, &tensor("FloatStorage", 1 << 16, 0, &[2], &[1]));
    let long = [&(1u64 << 16).to_le_bytes()[..], &vec![0; 4 << 16]].concat();
    for (bytes, expected) in [
        (file(0xe9, b"\x88", &again, names, &long), "again and again"),
        (file(0xe8, b"\x88", &object, names, &rest), "its version is not 1001"),
        (file(0xe9, b"\x89", &object, names, &rest), "little-endian"),
        (file(0xe9, b"N", &object, names, &rest), "little-endian"),
        (file(0xe9, b"\x88", &object, b"].", b""), "`w`: its storage `0` is missing"),
        (file(0xe9, b"\x88", &object, b"N.", &rest), "are no list"),
        (file(0xe9, b"\x88", &object, b"](Ne.", &rest), "is no string"),
        (file(0xe9, b"\x88", &dict(b"N"), names, &rest), "`0` is of no tensor"),
        (
            file(0xe9, b"\x88", &object, b"](X\x01\0\0\x000X\x01\0\0\x000e.", &rest.repeat(2)),
            "`0` is there twice",
        ),
        (file(0xe9, b"\x88", &object, names, &rest[..15]), "it ends at byte"),
        (
            file(0xe9, b"\x88", &object, names, &[&[9], &rest[1..]].concat()),
            "has 9 elements instead of 2",
        ),
        (file(0xe9, b"\x88", b"cos\nsystem\n.", names, &rest), "`os.system` is none of"),
    ] {
        let error = reason(pytorch::from_bytes(&bytes, &device));
        assert!(error.contains(expected), "`{error}` does not say `{expected}`");
    }
}

/// The pickle of a file.
fn pickle_of(file: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipArchive::new(Cursor::new(file)).unwrap();
    let mut pickle = Vec::new();
    std::io::copy(&mut zip.by_name("model/data.pkl").unwrap(), &mut pickle).unwrap();
    pickle
}

//! Saving and loading: round trips, a file PyTorch wrote, and every kind of damage.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use zyx_core::{DType, Device, Error, Runtime, Tensor};
use zyx_nn::{Forward, Init, Linear, Module, Relu, Sequential, safetensors};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

/// A directory of this test, empty at first, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("zyx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_dtypes_survive() {
    let d = &device();
    let mut tensors = BTreeMap::new();
    for &dtype in DType::ALL {
        let x = Tensor::new([0i64, 1, 100, 3, 77, 5], d).unwrap().cast(dtype);
        tensors.insert(format!("{dtype} \"x\"\n"), x.reshape([2, 3]).unwrap());
    }
    tensors.insert("scalar".into(), Tensor::new(2.5f64, d).unwrap());
    tensors.insert("empty".into(), Tensor::zeros([3, 0], DType::F16, d));
    let bytes = safetensors::to_bytes(&tensors).unwrap();
    let read = safetensors::from_bytes(&bytes, d).unwrap();
    assert!(read.keys().eq(tensors.keys()));
    for (name, tensor) in &tensors {
        assert_eq!(read[name].dtype(), tensor.dtype());
        assert_eq!(read[name].shape(), tensor.shape());
        assert_eq!(read[name].to_bytes().unwrap(), tensor.to_bytes().unwrap());
    }
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(header % 64, 56, "the data is aligned");
    let none = safetensors::from_bytes(&safetensors::to_bytes(&BTreeMap::new()).unwrap(), d);
    assert!(none.unwrap().is_empty());
}

#[test]
fn the_name_of_the_metadata_is_refused() {
    let d = &device();
    let tensors = [("__metadata__".to_owned(), Tensor::ones([1], DType::F32, d))].into();
    let error = safetensors::to_bytes(&tensors).unwrap_err().to_string();
    assert!(error.contains("`__metadata__`"), "{error}");
}

#[test]
fn a_file_written_by_pytorch_is_read() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pytorch.safetensors");
    let read = safetensors::load(file, &device()).unwrap();
    assert_eq!(read.len(), 8);
    assert_eq!(read["a.weight"].to_vec::<f32>().unwrap(), [1.5, -2.0, 3.0, 4.0]);
    assert_eq!(read["é\"x"].to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(read["flag"].to_vec::<bool>().unwrap(), [true, false]);
    assert_eq!(format!("{:?}", read["h"]), "tensor([1.00e-01, 6.55e+04], dtype=f16)");
    assert_eq!(format!("{}", read["b"]), "0.1");
    assert_eq!(read["empty"].shape().dims(), [0, 3]);
    assert_eq!(read["u"].to_vec::<u8>().unwrap(), [255]);
    assert_eq!(read["d"].to_vec::<f64>().unwrap(), [1e300]);
}

/// A file with this header text and that many bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &vec![0; data]].concat()
}

/// The message for a damaged file.
#[track_caller]
fn complaint(bytes: &[u8]) -> String {
    match safetensors::from_bytes(bytes, &device()) {
        Err(Error::Format { reason, .. }) => reason,
        other => panic!("expected a complaint about the format, got {other:?}"),
    }
}

#[test]
fn each_kind_of_damage_has_its_own_message() {
    let entry = |fields: &str| file(&format!("{{\"w\":{{{fields}}}}}"), 8);
    let good = r#""dtype":"F32","shape":[2],"data_offsets":[0,8]"#;
    assert!(safetensors::from_bytes(&entry(good), &device()).is_ok());
    let two = |a: &str, b: &str, data: usize| {
        let one = |name: &str, at: &str| {
            format!(r#""{name}":{{"dtype":"U8","shape":[4],"data_offsets":[{at}]}}"#)
        };
        file(&format!("{{{},{}}}", one("a", a), one("b", b)), data)
    };
    let cases: &[(Vec<u8>, &str)] = &[
        (vec![], "0 bytes, not even the 8"),
        (vec![1, 0, 0], "3 bytes, not even the 8"),
        (b"\x89PNG\r\n\x1a\nabcdefgh".to_vec(), "not a safetensors file"),
        (vec![100, 0, 0, 0, 0, 0, 0, 0, b'{'], "cut off in the header: 1 of its 100 bytes"),
        (u64::MAX.to_le_bytes().to_vec(), "claims a header of 18446744073709551615 bytes"),
        ([&4u64.to_le_bytes()[..], b"{\xff\xff}"].concat(), "not UTF-8"),
        (file("{\"w\":", 0), "not JSON: EOF while parsing a value"),
        (file("{} x", 0), "not JSON: trailing characters at line 1 column 4"),
        (file("[]", 0), "the header: invalid type: sequence, expected an object"),
        (file("{\"w\":7}", 0), "the entry of `w`: invalid type: integer `7`"),
        (entry(r#""dtype":"F32","shape":[2]"#), "the entry of `w`: missing field `data_offsets`"),
        (entry(r#""shape":[2],"data_offsets":[0,8]"#), "the entry of `w`: missing field `dtype`"),
        (entry(r#""dtype":"F32","data_offsets":[0,8]"#), "the entry of `w`: missing field `shape`"),
        (entry(&good.replace("\"F32\"", "32")), "the entry of `w`: expected value at"),
        (entry(&good.replace("F32", "F4_E2M1")), "the entry of `w`: unknown variant `F4_E2M1`"),
        (entry(&good.replace("F32", "F8_E8M0")), "dtype `F8_E8M0`, which is none of BOOL, U8"),
        (entry(&good.replace("F32", "F4").replace("[2]", "[16]")), "dtype `F4`, which is none of"),
        (entry(&format!("{good},\"dtype\":\"F32\"")), "the entry of `w`: duplicate field `dtype`"),
        (entry(&good.replace("F32", "F8_E4M3")), "8 bytes, which is not F8_E4M3 of shape [2]"),
        (
            entry(&good.replace("[2]", "2")),
            "the entry of `w`: invalid type: integer `2`, expected a sequence",
        ),
        (entry(&good.replace("[2]", "[-2]")), "the entry of `w`: invalid value: integer `-2`"),
        (entry(&good.replace("[2]", "[3]")), "8 bytes, which is not F32 of shape [3]"),
        (entry(&good.replace("[2]", "[4611686018427387906]")), "which is not F32 of shape"),
        (entry(&good.replace("[2]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]")), "17 axes"),
        (
            entry(&good.replace("[0,8]", "[0]")),
            "the entry of `w`: invalid length 1, expected a tuple of size 2",
        ),
        (entry(&good.replace("[0,8]", "[8,0]")), "ends at 0, before its start 8"),
        (entry(&good.replace("[0,8]", "[8,16]")), "8 bytes before `w` belong to no tensor"),
        (two("0,4", "2,6", 6), "`a` and `b` overlap"),
        (two("0,4", "5,9", 9), "1 bytes before `b` belong to no tensor"),
        (two("4,8", "0,4", 7), "cut off in the data: 7 of 8 bytes"),
        (two("4,8", "0,4", 11), "3 bytes follow the last tensor"),
        (file(&format!("{{\"w\":{{{good}}},\"w\":{{{good}}}}}"), 8), "`w` is there twice"),
    ];
    for (bytes, expected) in cases {
        let message = complaint(bytes);
        assert!(message.contains(expected), "`{message}` does not say `{expected}`");
    }
}

#[test]
fn no_prefix_and_no_flipped_bit_panics() {
    let d = &device();
    let tensors =
        [("a", Tensor::ones([3], DType::F32, d)), ("b", Tensor::ones([2], DType::I64, d))];
    let tensors = tensors.map(|(name, tensor)| (name.to_owned(), tensor)).into();
    let bytes = safetensors::to_bytes(&tensors).unwrap();
    for length in 0..bytes.len() {
        complaint(&bytes[..length]);
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let _ = safetensors::from_bytes(&damaged, d);
        }
    }
}

fn model(seed: u64, d: &Device) -> Sequential {
    let init = &mut Init::new(seed, d);
    let first = Linear::new(3, 4, init).unwrap();
    Sequential::new().then(first).then(Relu).then(Linear::new(4, 2, init).unwrap())
}

#[test]
fn a_model_is_saved_and_loaded() {
    let d = &device();
    let directory = Directory::new("model");
    let path = directory.0.join("model.safetensors");
    let (a, b) = (model(1, d), model(2, d));
    let x = Tensor::ones([1, 3], DType::F32, d);
    let output = |m: &Sequential| m.forward(&x).unwrap().to_vec::<f32>().unwrap();
    assert_ne!(output(&a), output(&b));
    a.save(&path).unwrap();
    b.load(&path).unwrap();
    assert_eq!(output(&a), output(&b));
    // Saving over an existing file works, and leaves nothing else behind.
    b.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 1);

    assert!(matches!(a.load(directory.0.join("none")), Err(Error::Io { .. })));
    assert!(matches!(a.save(directory.0.join("none/x")), Err(Error::Io { .. })));
    // The target is a directory: the rename fails, the temporary file goes.
    std::fs::create_dir(directory.0.join("taken")).unwrap();
    assert!(matches!(a.save(directory.0.join("taken")), Err(Error::Io { .. })));
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 2);
}

#[test]
fn a_file_of_another_model_is_refused() {
    let d = &device();
    let directory = Directory::new("other");
    let path = directory.0.join("model.safetensors");
    let a = model(1, d);
    let before = a.to_tensors();
    let refused = |change: &dyn Fn(&mut BTreeMap<String, Tensor>)| {
        let mut tensors = model(2, d).to_tensors();
        change(&mut tensors);
        safetensors::save(&tensors, &path).unwrap();
        let message = a.load(&path).unwrap_err().to_string();
        assert!(message.contains("model.safetensors"), "{message}");
        for (name, value) in a.to_tensors() {
            assert_eq!(value.to_bytes().unwrap(), before[&name].to_bytes().unwrap());
        }
        message
    };
    let message = refused(&|tensors| {
        tensors.remove("0.bias");
        tensors.insert("3.scale".into(), Tensor::ones([1], DType::F32, d));
    });
    assert!(message.contains("missing are: 0.bias; not part of the model are: 3.scale"));
    let message = refused(&|tensors| {
        tensors.insert("2.bias".into(), Tensor::ones([3], DType::F32, d));
    });
    assert!(message.contains("2.bias has shape [3], the model needs [2]"), "{message}");
    // Another dtype is converted.
    let mut halves = before.clone();
    halves.values_mut().for_each(|tensor| *tensor = tensor.cast(DType::F64));
    a.load_tensors(&halves).unwrap();
    assert_eq!(a.parameters()[0].dtype(), DType::F32);
}

#[test]
fn eight_bit_floats_are_codes_in_files() {
    use zyx_core::Float8;
    let text = |format: &str| {
        format!(r#"{{"w":{{"dtype":"F8_{format}","shape":[2,2],"data_offsets":[0,4]}}}}"#)
    };
    for (name, format, codes, values) in [
        ("E4M3", Float8::E4M3, [0x38u8, 0xaa, 0x7e, 0x01], [1.0, -0.3125, 448.0, 2f32.powi(-9)]),
        (
            "E5M2",
            Float8::E5M2,
            [0x3c, 0x7c, 0xc0, 0x01],
            [1.0, f32::INFINITY, -2.0, 2f32.powi(-16)],
        ),
    ] {
        let mut bytes = file(&text(name), 0);
        bytes.extend(codes);
        let device = device();
        let w = safetensors::from_bytes(&bytes, &device).unwrap().remove("w").unwrap();
        assert_eq!((w.dtype(), w.shape().dims()), (DType::F32, &[2, 2][..]));
        assert_eq!(w.to_vec::<f32>().unwrap(), values);
        // Written, the same codes; others as they are.
        let path =
            std::env::temp_dir().join(format!("f8-{name}-{}.safetensors", std::process::id()));
        let other = Tensor::new([0.1f64], &device).unwrap();
        let tensors = [("w".to_owned(), w), ("o".to_owned(), other)].into();
        let narrow = [("w".to_owned(), format)].into();
        safetensors::save_float8(&tensors, &narrow, &path).unwrap();
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written[written.len() - 4..], codes);
        assert!(String::from_utf8_lossy(&written).contains(&format!("\"F8_{name}\"")));
        let lazy = safetensors::open(&path).unwrap();
        assert_eq!((lazy.dtype("w"), lazy.dtype("o")), (Some(DType::F32), Some(DType::F64)));
        assert_eq!(lazy.load("w", &device).unwrap().to_vec::<f32>().unwrap(), values);
        assert_eq!(lazy.load("o", &device).unwrap().to_vec::<f64>().unwrap(), [0.1]);
        std::fs::remove_file(&path).unwrap();
        let absent = [("x".to_owned(), format)].into();
        let refused = safetensors::save_float8(&tensors, &absent, &path);
        assert!(refused.unwrap_err().to_string().contains("no tensor `x`") && !path.exists());
    }
}

/// A folder with `x` and `y` in one file, `z` in another, and their index.
fn shards(name: &str, d: &Device) -> Directory {
    let directory = Directory::new(name);
    let iota = |n: usize| Tensor::iota(n, DType::F32, d);
    let first = [("x".to_owned(), iota(2)), ("y".to_owned(), iota(3))].into();
    safetensors::save(&first, directory.0.join("model-1.safetensors")).unwrap();
    let second = [("z".to_owned(), iota(4))].into();
    safetensors::save(&second, directory.0.join("model-2.safetensors")).unwrap();
    index(
        &directory,
        r#""x":"model-1.safetensors","y":"model-1.safetensors","z":"model-2.safetensors""#,
    );
    directory
}

/// Writes an index with these tensors, and gives its path.
fn index(directory: &Directory, tensors: &str) -> PathBuf {
    let path = directory.0.join("model.safetensors.index.json");
    let text = format!(r#"{{"metadata":{{"total_size":36}},"weight_map":{{{tensors}}}}}"#);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_model_in_several_files_is_read_like_one() {
    let d = &device();
    let directory = shards("shards", d);
    let index = directory.0.join("model.safetensors.index.json");
    for path in [&directory.0, &index] {
        let all = safetensors::load(path, d).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(all["z"].to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
        let file = safetensors::open(path).unwrap();
        assert_eq!(file.names().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(file.shape("y"), Some([3].into()));
        assert_eq!(file.load("y", d).unwrap().to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0]);
        let error = file.load("w", d).unwrap_err().to_string();
        assert!(error.contains("index.json, `w`: there is no such tensor"), "{error}");
    }
    // Parameters of a module, too.
    let a = model(1, d);
    let tensors = a.to_tensors();
    let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
        tensors.into_iter().partition(|(name, _)| name.starts_with('0'));
    let directory = Directory::new("shards-model");
    safetensors::save(&one, directory.0.join("1.safetensors")).unwrap();
    safetensors::save(&other, directory.0.join("2.safetensors")).unwrap();
    let line = |number: u8| move |name: &String| format!(r#""{name}":"{number}.safetensors""#);
    let lines: Vec<String> = one.keys().map(line(1)).chain(other.keys().map(line(2))).collect();
    self::index(&directory, &lines.join(","));
    let b = model(2, d);
    b.load(&directory.0).unwrap();
    for (name, value) in b.to_tensors() {
        assert_eq!(value.to_bytes().unwrap(), a.to_tensors()[&name].to_bytes().unwrap(), "{name}");
    }
    // A file with everything comes first, and an empty folder is said to be one.
    safetensors::save(
        &[("w".to_owned(), Tensor::ones([1], DType::F32, d))].into(),
        directory.0.join("model.safetensors"),
    )
    .unwrap();
    assert_eq!(safetensors::open(&directory.0).unwrap().names().collect::<Vec<_>>(), ["w"]);
    let empty = Directory::new("shards-empty");
    let error = safetensors::load(&empty.0, d).unwrap_err();
    assert!(matches!(&error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains("neither model.safetensors nor"), "{error}");
}

#[test]
fn each_kind_of_wrong_index_has_its_own_message() {
    let d = &device();
    let directory = shards("wrong-index", d);
    let good = r#""x":"model-1.safetensors","y":"model-1.safetensors","z":"model-2.safetensors""#;
    std::fs::write(directory.0.join("other.bin"), b"").unwrap();
    std::fs::write(std::env::temp_dir().join("outside.safetensors"), b"").unwrap();
    let outside = std::env::temp_dir().join("outside.safetensors");
    let absolute = outside.display().to_string();
    for (tensors, expected) in [
        (
            good.replace("model-2", "model-3"),
            "`z` should be in `model-3.safetensors`, and there is no such file",
        ),
        (
            good.replace("model-2", "../outside"),
            "`z` is said to be in `../outside.safetensors`, which is no safetensors file of the folder",
        ),
        (good.replace("model-2.safetensors", &absolute), "`z` is said to be in `/"),
        (good.replace("model-2.safetensors", "other.bin"), "`z` is said to be in `other.bin`"),
        (
            good.replace("\"y\":\"model-1", "\"y\":\"model-2"),
            "`y` should be in `model-2.safetensors`, which does not have it; it is in `model-1.safetensors`",
        ),
        (
            good.replace("\"y\"", "\"v\""),
            "`v` should be in `model-1.safetensors`, which does not have it",
        ),
        (good.replace("\"y\"", "\"x\""), "`x` is listed twice"),
        (
            good.replace("\"model-2.safetensors\"", "7"),
            "the file of `z`: invalid type: integer `7`",
        ),
    ] {
        let path = index(&directory, &tensors);
        let error = safetensors::open(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Format { what, .. } if what.contains("index.json")),
            "{error}"
        );
        assert!(error.to_string().contains(expected), "`{error}` does not say `{expected}`");
    }
    std::fs::remove_file(outside).unwrap();
    // One name in two files.
    let second = [
        ("z".to_owned(), Tensor::ones([1], DType::F32, d)),
        ("x".to_owned(), Tensor::ones([1], DType::F32, d)),
    ];
    safetensors::save(&second.into(), directory.0.join("model-2.safetensors")).unwrap();
    let path = index(&directory, good);
    let error = safetensors::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("model-2.safetensors: `x` is in ")
            && error.contains("model-1.safetensors, too"),
        "{error}"
    );
    // A file that is damaged is named.
    std::fs::write(directory.0.join("model-2.safetensors"), b"damaged").unwrap();
    let error = safetensors::load(&path, d).unwrap_err().to_string();
    assert!(error.contains("model-2.safetensors: is cut off"), "{error}");
    for (text, expected) in [
        ("{", "not an index of tensors: EOF"),
        ("{}", "missing field `weight_map`"),
        (r#"{"weight_map":[]}"#, "`weight_map`: invalid type: sequence"),
        (r#"{"weight_map":{},"weight_map":{}}"#, "duplicate field `weight_map`"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = safetensors::load(&path, d).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` does not say `{expected}`");
    }
    std::fs::write(&path, b"\xff").unwrap();
    let error = safetensors::load(&path, d).unwrap_err();
    assert!(matches!(&error, Error::Format { reason, .. } if reason == "is not UTF-8"), "{error}");
}

//! Files that NumPy and the gguf package wrote (`data/make.py`), and damaged ones.

use std::path::PathBuf;
use zyx_core::{DType, Device, Error, Result, Runtime, Tensor};
use zyx_io::gguf::{Gguf, Value};
use zyx_io::{npy, npz};

fn device() -> Device {
    Runtime::default().device("reference").expect("always present")
}

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name].iter().collect()
}

#[test]
fn arrays_of_numpy() -> Result<()> {
    let device = device();
    let x = npy::load(data("columns.npy"), &device)?;
    assert_eq!((x.dtype(), x.shape().dims()), (DType::I32, &[2, 3][..]));
    assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    let x = npy::load(data("half.npy"), &device)?;
    assert_eq!((x.dtype(), x.rank()), (DType::F16, 0));
    assert_eq!(x.cast(DType::F32).item::<f32>()?, 1.5);
    for name in ["stored.npz", "deflated.npz"] {
        let all = npz::load(data(name), &device)?;
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(all["a"].shape().dims(), [3, 4]);
        assert_eq!(all["a"].to_vec::<f64>()?[11], 11.0);
        assert_eq!(all["b"].to_vec::<bool>()?, [true, false]);
    }
    Ok(())
}

#[test]
fn what_is_written_is_read() -> Result<()> {
    let device = device();
    for &dtype in DType::ALL {
        for dims in [&[][..], &[0], &[3], &[1, 2, 3]] {
            let n = dims.iter().product();
            let x = Tensor::iota(n, DType::I64, &device).cast(dtype).reshape(dims)?;
            let bytes = npy::to_bytes(&x);
            if dtype == DType::BF16 {
                assert!(bytes.is_err_and(|e| e.to_string().contains("bf16")));
                continue;
            }
            let y = npy::from_bytes(&bytes?, &device)?;
            assert_eq!((y.dtype(), y.shape()), (dtype, x.shape()));
            assert_eq!(y.to_bytes()?, x.to_bytes()?);
        }
    }
    let all = [
        ("x y".to_owned(), Tensor::ones([2], DType::F32, &device)),
        ("é".to_owned(), Tensor::zeros([0, 3], DType::U8, &device)),
    ];
    let read = npz::from_bytes(&npz::to_bytes(&all.clone().into())?, &device)?;
    assert_eq!(read.len(), 2);
    assert_eq!(read["é"].shape().dims(), [0, 3]);
    Ok(())
}

#[test]
fn quantised_blocks() -> Result<()> {
    let device = device();
    let file = Gguf::open(data("model.gguf"))?;
    assert_eq!(file.get("answer"), Some(Value::Unsigned(42)));
    assert_eq!(file.get("general.architecture"), Some(Value::Text("test".into())));
    let Some(Value::List(words)) = file.get("words") else { panic!("words are a list") };
    assert!(words.iter().eq(["one", "two"].map(|word| Value::Text(word.into()))));
    assert_eq!(file.load("whole", &device)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(file.shape("whole").expect("it is there").dims(), [2, 3]);
    assert_eq!(file.load("half", &device)?.dtype(), DType::F16);
    let expected = npz::load(data("model.npz"), &device)?;
    assert_eq!(expected.len(), 10);
    for (name, want) in expected {
        let got = file.load(&name, &device)?;
        assert_eq!(got.shape().dims()[0], 2, "{name}: two rows of a block");
        let (got, want) = (got.to_vec::<f32>()?, want.to_vec::<f32>()?);
        assert_eq!(got.len(), want.len(), "{name}");
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!((got - want).abs() <= 1e-6 * want.abs().max(1.0), "{name} {at}: {got} {want}");
        }
    }
    assert!(file.load("none", &device).is_err_and(|e| e.to_string().contains("no such")));
    Ok(())
}

/// A file that is cut off, or has a byte changed, is refused or read, without a panic.
#[test]
fn damage_is_an_error() {
    let device = device();
    let path = std::env::temp_dir().join(format!("zyx-io-{}.gguf", std::process::id()));
    for name in ["columns.npy", "stored.npz", "deflated.npz", "model.gguf"] {
        let whole = std::fs::read(data(name)).expect("the file is there");
        let read = |bytes: &[u8]| -> Result<()> {
            match name.rsplit('.').next() {
                Some("npy") => npy::from_bytes(bytes, &device).map(drop),
                Some("npz") => npz::from_bytes(bytes, &device).map(drop),
                _ => {
                    std::fs::write(&path, bytes).expect("a temporary file");
                    let file = Gguf::open(&path)?;
                    let names: Vec<String> = file.names().map(str::to_owned).collect();
                    names.iter().try_for_each(|name| file.load(name, &device).map(drop))
                }
            }
        };
        read(&whole).expect("it is whole");
        for cut in (0..whole.len()).step_by(7) {
            // What follows the last tensor of a model is padding.
            if name.ends_with("gguf") && cut + 32 > whole.len() {
                continue;
            }
            let error = read(&whole[..cut]).expect_err("a part is refused");
            assert!(matches!(error, Error::Format { .. }), "{name} of {cut}: {error}");
        }
        for at in (0..whole.len().min(1500)).step_by(3) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let _ = read(&bytes);
        }
    }
    let _ = std::fs::remove_file(path);
}

//! Whatever saves replaces a file at once, and keeps its mode and the links to it.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use zyx_core::{Device, Result, Runtime, Tensor};
use zyx_data::Checkpoint;
use zyx_io::{npy, npz};
use zyx_nn::{Init, Linear, Module, safetensors};
use zyx_optim::{Sgd, SgdOptions};

type Save = fn(&Device, usize, &Path) -> Result<()>;
type Load = fn(&Device, &Path) -> Result<usize>;

fn ones(device: &Device, n: usize) -> Tensor {
    Tensor::from_slice(&vec![n as u32; n], [n], device).unwrap()
}

/// The number of elements, all of which are that number.
fn number(x: &Tensor) -> Result<usize> {
    let all = x.to_vec::<u32>()?;
    assert!(all.iter().all(|&one| one as usize == all.len()), "a torn file");
    Ok(all.len())
}

fn named(device: &Device, n: usize) -> BTreeMap<String, Tensor> {
    [("x".to_owned(), ones(device, n))].into()
}

fn checkpoint(device: &Device) -> (Linear, Sgd) {
    let model = Linear::new(2, 3, &mut Init::new(0, device)).unwrap();
    let optimizer = Sgd::new(model.parameters(), SgdOptions::default()).unwrap();
    (model, optimizer)
}

const SAVERS: [(&str, Save, Load); 4] = [
    ("npy", |d, n, file| npy::save(&ones(d, n), file), |d, file| number(&npy::load(file, d)?)),
    (
        "npz",
        |d, n, file| npz::save(&named(d, n), file),
        |d, file| number(&npz::load(file, d)?["x"]),
    ),
    (
        "safetensors",
        |d, n, file| safetensors::save(&named(d, n), file),
        |d, file| number(&safetensors::load(file, d)?["x"]),
    ),
    (
        "checkpoint",
        |d, n, file| {
            let (model, optimizer) = checkpoint(d);
            let counters = [("n".to_owned(), n as i64)].into();
            Checkpoint { counters, ..Checkpoint::default() }.save(&model, &optimizer, file)
        },
        |d, file| {
            let (model, mut optimizer) = checkpoint(d);
            Ok(Checkpoint::load(&model, &mut optimizer, file)?.counters["n"] as usize)
        },
    ),
];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("zyx-io-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

#[cfg(unix)]
#[test]
fn mode_and_links_stay() {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let device = Runtime::default().device("reference").unwrap();
    for (name, save, load) in SAVERS {
        let folder = folder(name);
        let (file, link) = (folder.join("file"), folder.join("link"));
        save(&device, 3, &file).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        save(&device, 5, &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{name}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        assert_eq!(load(&device, &file).unwrap(), 5, "{name}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{name}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn threads_save_and_load_one_file() {
    let device = Runtime::default().device("reference").unwrap();
    for (name, save, load) in SAVERS {
        let folder = folder(&format!("threads-{name}"));
        let (file, done) = (folder.join("file"), AtomicBool::new(false));
        save(&device, 1, &file).unwrap();
        std::thread::scope(|scope| {
            let (file, done, device) = (&file, &done, &device);
            let savers = [100, 2000].map(|n| {
                scope.spawn(move || (0..25).for_each(|i| save(device, n + i, file).unwrap()))
            });
            let loader = scope.spawn(move || {
                while !done.load(Relaxed) {
                    assert!(load(device, file).unwrap() > 0);
                    if cfg!(windows) {
                        // Wine replaces no file that is open: leave it a chance.
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                }
            });
            // The loader ends even if a saver failed.
            let saved = savers.map(|saver| saver.join().is_ok());
            done.store(true, Relaxed);
            loader.join().unwrap();
            assert_eq!(saved, [true; 2], "{name}");
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{name}");
        fs::remove_dir_all(folder).unwrap();
    }
}

//! Models in several files: `model.safetensors.index.json` says which file has which tensor.

use super::header::members;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use zyx_core::{Error, Result, files};

/// Names in the layout of the model hub.
const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The longest text that names a file.
const MAX_PATH: usize = 4096;

/// What a path leads to.
pub(super) enum Found {
    /// One file with all tensors.
    File(PathBuf),
    /// An index of several.
    Index(Index),
}

/// An index that was read.
#[derive(Debug)]
pub(super) struct Index {
    /// The path of the index.
    pub(super) path: PathBuf,
    text: String,
    /// The names of the files, sorted; they are beside the index.
    pub(super) files: Vec<String>,
}

/// The member of an index that is needed. Its tensors are gone through where they are in the text.
#[derive(serde::Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    weight_map: &'a RawValue,
}

/// What is at a path: a file, an index by its name (`.json`), or a folder with one of both, in
/// which a file with everything comes first.
pub(super) fn find(path: &Path) -> Result<Found> {
    if path.is_dir() {
        let (whole, index) = (path.join(WHOLE), path.join(INDEX));
        if whole.is_file() {
            return Ok(Found::File(whole));
        }
        if index.is_file() {
            return Index::read(index).map(Found::Index);
        }
        let reason = format!("the folder has neither {WHOLE} nor {INDEX}");
        let source = io::Error::new(ErrorKind::NotFound, reason);
        return Err(Error::Io { what: path.display().to_string(), source });
    }
    match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        true => Index::read(path.to_owned()).map(Found::Index),
        false => Ok(Found::File(path.to_owned())),
    }
}

impl Index {
    fn read(path: PathBuf) -> Result<Index> {
        let what = path.display().to_string();
        let Ok(text) = String::from_utf8(files::read(&path)?) else {
            return Err(Error::Format { what, reason: "is not UTF-8".to_owned() });
        };
        let mut index = Index { path, text, files: Vec::new() };
        let files = index.named_files().map_err(|reason| Error::Format { what, reason })?;
        index.files = files.into_iter().collect();
        Ok(index)
    }

    /// Calls `tensor` with each tensor and the name of its file, in the order of the index.
    pub(super) fn each(
        &self,
        mut tensor: impl FnMut(&str, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        let Members { weight_map } = serde_json::from_str(&self.text)
            .map_err(|error| format!("is not an index of tensors: {error}"))?;
        members(weight_map.get(), "`weight_map`", |name, file| {
            if file.get().len() > MAX_PATH {
                let n = file.get().len();
                return Err(format!("the file of `{name}` has {n} bytes, more than {MAX_PATH}"));
            }
            let file: String = serde_json::from_str(file.get())
                .map_err(|error| format!("the file of `{name}`: {error}"))?;
            tensor(&name, &file)
        })
    }

    /// The files it names. All are there, and none is outside of the folder.
    fn named_files(&self) -> Result<BTreeSet<String>, String> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let mut files = BTreeSet::new();
        self.each(|name, file| {
            if files.contains(file) {
                return Ok(());
            }
            let path = Path::new(file);
            let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
            if !inside || !file.ends_with(".safetensors") {
                return Err(format!(
                    "`{name}` is said to be in `{file}`, which is no safetensors file of the folder"
                ));
            }
            if !folder.join(path).is_file() {
                return Err(format!("`{name}` should be in `{file}`, and there is no such file"));
            }
            files.insert(file.to_owned());
            Ok(())
        })?;
        Ok(files)
    }
}

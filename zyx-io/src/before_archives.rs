//! Files of PyTorch before 1.6: five pickles one after the other (a number that says what this is,
//! the version, the machine, the object, the names of storages), then the storages in that order.

use crate::pickle::{Found, Pickle, TOO_MUCH};
use crate::pytorch::Storages;
use crate::reader::Reader;
use crate::room;
use std::ops::Range;
use zyx_core::Result;

/// The first of the pickles.
pub(crate) const START: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// The only version there has been.
const VERSION: i64 = 1001;

/// What running a pickle takes whatever the file.
const CONSTANT: usize = 64 << 10;

/// The name of a storage, and where it is.
type Place<'a> = (&'a str, Range<usize>);

/// The name of a tensor's storage, its elements and its bytes.
type Size<'a> = (&'a str, u64, Option<u64>);

/// The storages in a file that was read.
pub(crate) struct Places<'a> {
    bytes: &'a [u8],
    /// Sorted by name.
    places: Vec<Place<'a>>,
}

impl Places<'_> {
    fn place(&self, name: &str) -> Option<Range<usize>> {
        let at = self.places.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        Some(self.places[at].1.clone())
    }
}

impl Storages for Places<'_> {
    fn size(&self, name: &str) -> Option<u64> {
        self.place(name).map(|place| place.len() as u64)
    }

    fn read(&mut self, name: &str, _: &str) -> Result<Vec<u8>> {
        Ok(self.bytes[self.place(name).unwrap_or_default()].to_vec())
    }
}

type Parts<'a> = (Pickle<'a>, Vec<(String, Found)>, Places<'a>);

/// The object's pickle, the tensors in it, and their storages. It takes three times the bytes: twice
/// for the object, once for the names and what is listed by them. Then there is room for a storage.
pub(crate) fn read(bytes: &[u8]) -> Result<Parts<'_>, String> {
    let version = Pickle::run_all(after(bytes, START.len())?, CONSTANT)?;
    if version.number() != Some(VERSION) {
        return Err(format!("its version is not {VERSION}, the only one known"));
    }
    let at = START.len() + version.length;
    let machine = Pickle::run_all(after(bytes, at)?, CONSTANT)?;
    if machine.flag("little_endian") != Some(true) {
        return Err("it does not say that its byte order is little-endian".to_owned());
    }
    let at = at + machine.length;
    let mut object = Pickle::run(after(bytes, at)?, 2 * bytes.len() + CONSTANT)?;
    let found = object.tensors()?;
    let at = at + object.length;
    let charge = |room: usize, of: usize| room.checked_sub(of).ok_or(TOO_MUCH);
    let left = charge(bytes.len() + CONSTANT, found.len() * size_of::<Size<'_>>())?;
    let names = Pickle::run_all(after(bytes, at)?, left)?;
    let left = names.room;
    let mut rest = Reader::from(bytes, at + names.length);
    let names = names.texts().ok_or("the names of its storages are no list")?;
    // The tensors tell how long the elements of a storage are.
    let mut sizes: Vec<Size<'_>> = room(found.len())?;
    for (name, tensor) in &found {
        let view = object.view(*tensor).map_err(|reason| format!("`{name}`: {reason}"))?;
        sizes.push((view.storage, view.len as u64, view.storage_size()));
    }
    sizes.sort_unstable();
    charge(left, names.len() * size_of::<Place<'_>>())?;
    let mut places: Vec<Place<'_>> = room(names.len())?;
    for name in names {
        let name = name.ok_or("the name of a storage is no string")?;
        let at = sizes.partition_point(|(known, ..)| *known < name);
        let &(_, len, size) =
            sizes.get(at).filter(|(known, ..)| *known == name).ok_or_else(|| {
                format!("its storage `{name}` is of no tensor, so its size is not known")
            })?;
        let there = rest.u64()?;
        let size = size.and_then(|size| usize::try_from(size).ok()).filter(|_| there == len);
        let size = size
            .ok_or_else(|| format!("its storage `{name}` has {there} elements instead of {len}"))?;
        let start = rest.position();
        rest.take(size)?;
        places.push((name, start..rest.position()));
    }
    if rest.rest() > 0 {
        return Err(format!("{} bytes follow its storages", rest.rest()));
    }
    places.sort_unstable_by_key(|(name, _)| *name);
    if let Some(twice) = places.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("its storage `{}` is there twice", twice[0].0));
    }
    Ok((object, found, Places { bytes, places }))
}

/// What follows a place of a file.
fn after(bytes: &[u8], at: usize) -> Result<&[u8], String> {
    bytes.get(at..).ok_or_else(|| "it ends too early".to_owned())
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Storages are not looked into here, so most of these bytes take no memory.
    #[test]
    fn storages_may_be_longer_than_4_gib() {
        let n = 5u64 << 30;
        let start = [
            START,
            b"\x80\x02M\xe9\x03.\x80\x02}X\x0d\0\0\0little_endian\x88s.",
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nByteStorage\n",
            b"X\x01\0\0\x000X\x03\0\0\0cpu\x8a\x08",
            &n.to_le_bytes(),
            b"tQK\0K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR.](X\x01\0\0\x000e.",
            &n.to_le_bytes(),
        ]
        .concat();
        let mut bytes = vec![0; start.len() + n as usize];
        bytes[..start.len()].copy_from_slice(&start);
        let (_, found, storages) = read(&bytes).unwrap();
        assert_eq!((found.len(), storages.size("0")), (1, Some(n)));
    }
}

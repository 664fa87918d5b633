//! Buffer arguments as elements in byte slices.

use super::Binding;
use crate::ir::kernel::Kernel;
use crate::ir::op::Access;

/// The buffers of one run and where each argument lies in them. That an argument lies inside its
/// buffer was checked before.
pub(super) struct Memory<'a, 'b> {
    /// What is only read; the numbers of bindings go on here.
    inputs: &'a [&'a [u8]],
    buffers: &'a mut [&'b mut [u8]],
    params: &'a [Binding],
}

impl<'a, 'b> Memory<'a, 'b> {
    pub(super) fn new(
        inputs: &'a [&'a [u8]],
        buffers: &'a mut [&'b mut [u8]],
        params: &'a [Binding],
    ) -> Memory<'a, 'b> {
        Memory { inputs, buffers, params }
    }

    /// Element `index` of argument `slot`, whose elements have `1 << log2` bytes.
    #[inline(always)]
    pub(super) fn load(&self, slot: u16, log2: u8, index: usize) -> u64 {
        let Binding { buffer, offset } = self.params[slot as usize];
        let at = offset + (index << log2);
        let bytes: &[u8] = match self.buffers.get(buffer) {
            Some(buffer) => buffer,
            None => self.inputs[buffer - self.buffers.len()],
        };
        let bytes = &bytes[at..];
        match log2 {
            0 => bytes[0] as u64,
            1 => u16::from_le_bytes(first(bytes)) as u64,
            2 => u32::from_le_bytes(first(bytes)) as u64,
            _ => u64::from_le_bytes(first(bytes)),
        }
    }

    /// Overwrites an element by the low bytes of `bits`.
    #[inline]
    pub(super) fn store(&mut self, slot: u16, log2: u8, index: usize, bits: u64) {
        let Binding { buffer, offset } = self.params[slot as usize];
        let at = offset + (index << log2);
        let bytes = &mut self.buffers[buffer][at..];
        match log2 {
            0 => bytes[0] = bits as u8,
            1 => bytes[..2].copy_from_slice(&(bits as u16).to_le_bytes()),
            2 => bytes[..4].copy_from_slice(&(bits as u32).to_le_bytes()),
            _ => bytes[..8].copy_from_slice(&bits.to_le_bytes()),
        }
    }
}

/// For each argument the first that is bound to the same memory, itself if there is none before.
/// Arguments that are only read do not matter to one another.
///
/// # Errors
/// When two arguments overlap without being the same elements.
pub(super) fn homes(kernel: &Kernel, params: &[Binding]) -> Result<Vec<usize>, String> {
    let info = kernel.params();
    let bytes = |slot: usize| {
        let start = params[slot].offset as u64;
        start..start + info[slot].len * info[slot].dtype.size() as u64
    };
    let mut homes: Vec<usize> = (0..params.len()).collect();
    for slot in 0..params.len() {
        for earlier in 0..slot {
            let (a, b) = (bytes(earlier), bytes(slot));
            let read_only =
                info[slot].access == Access::Read && info[earlier].access == Access::Read;
            let apart = params[slot].buffer != params[earlier].buffer
                || a.start.max(b.start) >= a.end.min(b.end);
            if read_only || apart {
                continue;
            }
            if a.start != b.start || info[slot].dtype.size() != info[earlier].dtype.size() {
                return Err(format!("buffers {earlier} and {slot} overlap"));
            }
            homes[slot] = homes[slot].min(homes[earlier]);
        }
    }
    Ok(homes)
}

/// The first `N` bytes; the caller's bounds check has been done.
#[inline]
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("invariant: arguments lie inside their buffers")
}

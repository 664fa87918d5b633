//! Buffer arguments as elements in byte slices.

use super::Binding;

/// The buffers of one run and where each argument lies in them. That an argument lies inside its
/// buffer was checked before.
pub(super) struct Memory<'a, 'b> {
    buffers: &'a mut [&'b mut [u8]],
    params: &'a [Binding],
}

impl<'a, 'b> Memory<'a, 'b> {
    pub(super) fn new(buffers: &'a mut [&'b mut [u8]], params: &'a [Binding]) -> Memory<'a, 'b> {
        Memory { buffers, params }
    }

    /// Element `index` of argument `slot`, whose elements have `1 << log2` bytes.
    #[inline(always)]
    pub(super) fn load(&self, slot: u16, log2: u8, index: usize) -> u64 {
        let Binding { buffer, offset } = self.params[slot as usize];
        let at = offset + (index << log2);
        let bytes = &self.buffers[buffer][at..];
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

/// The first `N` bytes; the caller's bounds check has been done.
#[inline]
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("invariant: arguments lie inside their buffers")
}

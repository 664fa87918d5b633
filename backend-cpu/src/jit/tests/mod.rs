//! Compiled kernels against the IR interpreter, on every instruction set of this machine.

mod casts;
mod halves;
mod kernels;
mod ops;
mod order;
mod random;
mod speed;
#[cfg(target_arch = "x86_64")]
mod system;
#[cfg(target_arch = "aarch64")]
mod system_arm;

use super::target::Target;
use super::{CompiledKernel, Isa, assemble, compile_for};
use crate::blocks;
use crate::config::Config;
use crate::exec_memory::ExecMemory;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::sync::OnceLock;
use zyx_core::hal::Caps;
use zyx_core::ir::interp::{self, Options};
use zyx_core::ir::{Builder, Kernel, Op, Value, verify};
use zyx_core::legalize::legalize;
use zyx_core::tune::optimize;
use zyx_core::{DType, Scalar};

/// SplitMix64: small, seeded, the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The instruction sets that can be tested here.
pub(super) fn isas() -> Vec<Isa> {
    match Isa::detect() {
        Some(Isa::Avx512) => vec![Isa::Avx512, Isa::Avx2],
        Some(isa) => vec![isa],
        None => Vec::new(),
    }
}

/// The ways to run a kernel that are compared with the interpreter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Machine(Isa),
    Blocks,
}

impl Way {
    pub(super) fn vector_bytes(self) -> usize {
        match self {
            Way::Machine(isa) => isa.vector_bytes(),
            Way::Blocks => 8 * blocks::LANES,
        }
    }

    /// What the device says of itself when it is limited to this way and two threads.
    fn caps(self) -> Caps {
        let config = Config { level: None, threads: Some(2), ..Config::default() };
        match self {
            Way::Machine(isa) => config.caps(Some(isa)),
            Way::Blocks => config.caps(None),
        }
    }
}

/// All ways that can be tested here.
pub(super) fn ways() -> Vec<Way> {
    isas().into_iter().map(Way::Machine).chain([Way::Blocks]).collect()
}

pub(super) fn memory() -> &'static ExecMemory {
    static MEMORY: OnceLock<ExecMemory> = OnceLock::new();
    MEMORY.get_or_init(|| ExecMemory::new().expect("executable memory"))
}

/// Bytes that start at a multiple of 64, with some to spare on both sides that must not change.
pub(super) struct Buffer {
    lines: Vec<[u64; 8]>,
    len: usize,
}

#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "only its alignment matters")] [u64; 8]);

const CANARY: u64 = 0xdead_beef_0bad_cafe;

impl Buffer {
    pub(super) fn new(bytes: &[u8]) -> Self {
        const { assert!(align_of::<Line>() == 64) };
        // Two lines of canaries around, one more to align.
        let lines = vec![[CANARY; 8]; bytes.len().div_ceil(64) + 5];
        let mut it = Self { lines, len: bytes.len() };
        it.bytes_mut().copy_from_slice(bytes);
        it
    }

    pub(super) fn start(&self) -> usize {
        (self.lines.as_ptr() as usize + 128).next_multiple_of(64)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.start();
        // SAFETY: the lines include `len` bytes from `start` on, and are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(start as *mut u8, self.len) }
    }

    fn check(&self, name: &str) {
        let start = self.lines.as_ptr() as usize;
        let all = start..start + self.lines.len() * 64;
        let own = self.start()..self.start() + self.len;
        for at in all.clone().filter(|at| !own.contains(at)) {
            let expected = CANARY.to_le_bytes()[at % 8];
            // SAFETY: `at` lies in the lines.
            let found = unsafe { (at as *const u8).read() };
            assert_eq!(
                found,
                expected,
                "{name}: byte {} is written",
                at as isize - own.start as isize
            );
        }
    }
}

/// Runs all entries, cutting their ranges into `pieces`.
pub(super) fn execute(compiled: &CompiledKernel, args: &[u64], pieces: u64) {
    let mut scratch = Buffer::new(&vec![0; compiled.scratch_bytes()]);
    for &entry in compiled.entries() {
        // SAFETY: the caller gives an argument for each parameter and variable.
        let n = unsafe { compiled.len(entry, args) };
        for piece in 0..pieces {
            let (lo, hi) = (n * piece / pieces, n * (piece + 1) / pieces);
            // SAFETY: arguments and bounds were verified, and the scratch memory is its own.
            unsafe { compiled.run(entry, args, lo, hi, scratch.bytes_mut().as_mut_ptr()) };
        }
    }
}

/// The buffers after running the compiled kernel in so many pieces, or why it did not compile.
pub(super) fn run(
    kernel: &Kernel,
    way: Way,
    inputs: &[Vec<u8>],
    vars: &[u64],
    pieces: u64,
) -> Result<Vec<Vec<u8>>, String> {
    let mut buffers: Vec<Buffer> = inputs.iter().map(|bytes| Buffer::new(bytes)).collect();
    let args: Vec<u64> =
        buffers.iter().map(|it| it.start() as u64).chain(vars.iter().copied()).collect();
    match way {
        Way::Machine(isa) => {
            // Runs in several pieces also write around the caches wherever that is possible.
            let stream_from = if pieces > 1 { 0 } else { u64::MAX };
            let compiled = compile_for(kernel, Target { isa, stream_from }, memory());
            execute(&compiled.map_err(|error| error.to_string())?, &args, pieces);
        }
        Way::Blocks => {
            let program = blocks::compile(kernel).map_err(|error| error.to_string())?;
            for &entry in program.entries() {
                // SAFETY: there is an argument for each parameter and variable.
                let n = unsafe { program.len(entry, &args) };
                for piece in 0..pieces {
                    let (lo, hi) = (n * piece / pieces, n * (piece + 1) / pieces);
                    // SAFETY: arguments and bounds were verified.
                    unsafe { program.run(entry, &args, lo, hi) };
                }
            }
        }
    }
    for (slot, buffer) in buffers.iter().enumerate() {
        buffer.check(&format!("buffer {slot}"));
    }
    Ok(buffers.iter_mut().map(|it| it.bytes_mut().to_vec()).collect())
}

/// Compares with the interpreter in every way that this machine has.
pub(super) fn check(kernel: &Kernel, inputs: &[Vec<u8>], vars: &[u64], context: &str) {
    for way in ways() {
        check_way(kernel, way, inputs, vars, context);
    }
}

/// Compares with the interpreter; a kernel that differs is made smaller before it is shown.
pub(super) fn check_way(
    kernel: &Kernel,
    way: Way,
    inputs: &[Vec<u8>],
    vars: &[u64],
    context: &str,
) {
    if difference(kernel, way, inputs, vars).is_none() {
        return;
    }
    let kernel = shrink(kernel, &|it| difference(it, way, inputs, vars).is_some());
    let difference = difference(&kernel, way, inputs, vars).unwrap_or_default();
    let code = match way {
        Way::Machine(isa) => disassemble(&kernel, isa),
        Way::Blocks => format!("{:#?}", blocks::compile(&kernel)),
    };
    panic!("{context} on {way:?}: {difference}\n{kernel}\n{code}");
}

/// How compiled code and interpreter differ, if they do.
fn difference(kernel: &Kernel, way: Way, inputs: &[Vec<u8>], vars: &[u64]) -> Option<String> {
    if let Err(error) = verify(kernel) {
        return Some(error.to_string());
    }
    let mut expected = inputs.to_vec();
    let expanded = match way {
        Way::Machine(_) => kernel.clone(),
        Way::Blocks => blocks::expanded(kernel, &way.caps()),
    };
    if let Err(error) = interp::interpret(&expanded, &mut expected, vars, &Options::fast()) {
        return Some(error.to_string());
    }
    for pieces in [1, 3] {
        let found = match run(kernel, way, inputs, vars, pieces) {
            Ok(found) => found,
            Err(error) => return Some(error),
        };
        if let Err(difference) = compare(kernel, &expected, &found) {
            return Some(difference);
        }
    }
    None
}

/// Removes stores and whole regions as long as `fails` holds.
fn shrink(kernel: &Kernel, fails: &dyn Fn(&Kernel) -> bool) -> Kernel {
    let mut kernel = kernel.clone();
    loop {
        let ends = kernel.region_ends();
        let candidates: Vec<usize> = (0..kernel.ops().len())
            .filter(|&i| {
                kernel.ops()[i].opens_region() || matches!(kernel.ops()[i], Op::Store { .. })
            })
            .collect();
        let smaller = candidates.iter().find_map(|&i| {
            let it = without(&kernel, i, ends[i]);
            (verify(&it).is_ok() && fails(&it)).then_some(it)
        });
        match smaller {
            Some(it) => kernel = it,
            None => return kernel,
        }
    }
}

/// The kernel without ops `from ..= to`, which nothing else needs, and without what only they
/// needed.
fn without(kernel: &Kernel, from: usize, to: usize) -> Kernel {
    let mut builder = Builder::raw("smaller");
    let mut keep: Vec<bool> = kernel.ops().iter().map(|op| !op.is_pure()).collect();
    keep[from..=to].fill(false);
    for (i, op) in kernel.ops().iter().enumerate().rev() {
        let is_load = matches!(op, Op::Load { .. });
        if is_load {
            let used = kernel.ops()[i + 1..]
                .iter()
                .enumerate()
                .any(|(j, other)| keep[i + 1 + j] && other.operands().any(|x| x.idx() == i));
            keep[i] = used && !(from..=to).contains(&i);
        }
        if keep[i] {
            op.operands().for_each(|x| keep[x.idx()] = true);
        }
    }
    let mut map = vec![Value(0); kernel.ops().len()];
    for (value, op, ty) in kernel.iter().filter(|(value, ..)| keep[value.idx()]) {
        map[value.idx()] = match op {
            Op::Param { slot, access } => {
                builder.param(ty.dtype, kernel.params()[slot as usize].len, access)
            }
            Op::Var { slot } => {
                let it = kernel.vars()[slot as usize];
                builder.var(it.dtype, it.min, it.max)
            }
            op => builder.push(op.map(|x| map[x.idx()]), ty),
        };
    }
    builder.finish()
}

/// The first difference between two sets of buffers. NaNs are equal, zeros too.
fn compare(kernel: &Kernel, expected: &[Vec<u8>], found: &[Vec<u8>]) -> Result<(), String> {
    for (slot, info) in kernel.params().iter().enumerate() {
        let (a, b) = (elements(info.dtype, &expected[slot]), elements(info.dtype, &found[slot]));
        for (i, (a, b)) in a.into_iter().zip(b).enumerate() {
            let float = info.dtype.is_float();
            let (x, y) = (a.to_f64(), b.to_f64());
            let same = a == b || float && (x.is_nan() && y.is_nan() || x == 0.0 && y == 0.0);
            if !same {
                return Err(format!("buffer {slot} element {i}: {a:?} expected, {b:?} found"));
            }
        }
    }
    Ok(())
}

pub(super) fn elements(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let size = dtype.size();
    let read = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        Scalar::from_bits(dtype, u64::from_le_bytes(wide))
    };
    bytes.chunks_exact(size).map(read).collect()
}

pub(super) fn bytes_of(dtype: DType, elements: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let size = dtype.size();
    elements.into_iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect()
}

/// Interesting and random values of a dtype.
pub(super) fn values(dtype: DType, n: usize, random: &mut Random) -> Vec<u8> {
    let special: &[f64] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        127.0,
        128.0,
        255.0,
        256.0,
        32767.0,
        65504.0,
        65520.0,
        2147483647.0,
        2147483648.0,
        -2147483648.0,
        4294967296.0,
        9.3e18,
        -9.3e18,
        1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-40,
        3.4e38,
    ];
    let element = |random: &mut Random| match random.below(6) {
        0 => Scalar::from_f64(dtype, random.pick(special)).bits(),
        1 => Scalar::from_bits(dtype, random.next()).bits(),
        2 => {
            Scalar::from_bits(dtype, random.pick(&[0, 1, u64::MAX, 1 << (dtype.bits() - 1)])).bits()
        }
        _ => {
            let x = (random.next() % 4001) as f64 / 100.0 - 20.0;
            Scalar::from_f64(dtype, x).bits()
        }
    };
    bytes_of(dtype, (0..n).map(|_| element(random)))
}

/// Contents for all buffers of a kernel.
pub(super) fn inputs(kernel: &Kernel, random: &mut Random) -> Vec<Vec<u8>> {
    kernel.params().iter().map(|it| values(it.dtype, it.len as usize, random)).collect()
}

/// The kernel as the device gets it: passes chosen for it, what it lacks expanded.
pub(super) fn legal(kernel: &Kernel, way: Way) -> Kernel {
    let caps = way.caps();
    legalize(&optimize(kernel, &caps), &caps).expect("the CPU can do everything")
}

/// As [`legal`], for machine code.
pub(super) fn tuned(kernel: &Kernel, isa: Isa) -> Kernel {
    legal(kernel, Way::Machine(isa))
}

/// The code of a kernel as text.
pub(super) fn disassemble(kernel: &Kernel, isa: Isa) -> String {
    let Ok((code, entries, _)) = assemble(kernel, &crate::split::split(kernel), Target::of(isa))
    else {
        return "no code".to_owned();
    };
    let text = match isa {
        Isa::Neon { .. } => disassemble_arm(&code),
        _ => disassemble_x86(&code),
    };
    format!("entries {entries:?}\n{text}")
}

fn disassemble_x86(code: &[u8]) -> String {
    let mut formatter = IntelFormatter::new();
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut text = String::new();
    while decoder.can_decode() {
        let it = decoder.decode();
        if it.is_invalid() {
            break;
        }
        let mut line = String::new();
        formatter.format(&it, &mut line);
        text.push_str(&format!("{:5x}  {line}\n", it.ip()));
        if it.mnemonic() == iced_x86::Mnemonic::Int3 {
            break;
        }
    }
    text
}

/// Constants behind the code come out as instructions too.
fn disassemble_arm(code: &[u8]) -> String {
    let mut text = String::new();
    for (at, word) in (0..).step_by(4).zip(code.chunks_exact(4)) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        text.push_str(&format!("{at:5x}  {word:08x}  "));
        if let Some(decoded) = disarm64::decoder::decode(word) {
            disarm64::format_insn::format_insn_pc(at, &mut text, &decoded).expect("a string");
        }
        text.push('\n');
    }
    text
}

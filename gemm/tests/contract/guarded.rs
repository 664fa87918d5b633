//! Operands that lie between pages which nobody may touch: what reads or writes beside an operand ends the process.
//! `ONLY_SEED=n` runs that case alone.

use crate::case::{Case, Numbers, Rng};
use crate::{bytes, random_spec};
use zyx_gemm::pool::Pool;
use zyx_gemm::{Acc, DType, Plan, Spec};

const PAGE: usize = 4096;

/// So many bytes behind a page that nobody may touch, or in front of one.
struct Guarded {
    base: *mut u8,
    size: usize,
    first: *mut u8,
}

impl Guarded {
    fn new(bytes: usize, at_end: bool) -> Guarded {
        let inner = bytes.next_multiple_of(PAGE);
        let size = inner + 2 * PAGE;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: an anonymous mapping at an address of the system's choice touches no other memory;
        // its first and last page are within it.
        let base = unsafe {
            let base = libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0);
            assert!(base != libc::MAP_FAILED);
            for page in [base, base.wrapping_byte_add(size - PAGE)] {
                assert_eq!(libc::mprotect(page, PAGE, libc::PROT_NONE), 0);
            }
            base.cast::<u8>()
        };
        let before = if at_end { inner - bytes } else { 0 };
        Guarded { base, size, first: base.wrapping_add(PAGE + before) }
    }

    fn of(numbers: &Numbers, bytes: usize, at_end: bool) -> Guarded {
        let guarded = Guarded::new(bytes, at_end);
        // SAFETY: the numbers are at least so many bytes, and there is room for them.
        unsafe { guarded.first.copy_from_nonoverlapping(numbers.words.as_ptr().cast(), bytes) };
        guarded
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

/// Runs a case with all operands at the ends, or at the starts, of their memory.
fn check(case: &Case, pool: &Pool) {
    let Spec { a, b, c, .. } = case.spec;
    let sizes = [a, b, c].map(DType::size);
    let lens = case.lens();
    let want = case.expected(false);
    for (isa, extensions) in case.levels() {
        let options = case.options(isa, extensions, pool.n_threads());
        let plan = Plan::new(&case.spec, &options).unwrap();
        let packed = [0, 1].map(|side| plan.prepacked(&case.spec, &options, side));
        for at_end in [false, true] {
            let guarded: [Guarded; 3] =
                std::array::from_fn(|i| Guarded::of(&case.operands[i], lens[i] * sizes[i], at_end));
            let first = |i: usize| guarded[i].first.wrapping_add(case.starts[i] * sizes[i]);
            let compare = |what: &str| {
                let mut got = case.operands[2].clone();
                let to = got.words.as_mut_ptr().cast::<u8>();
                // SAFETY: both have this many bytes.
                unsafe { to.copy_from_nonoverlapping(guarded[2].first, lens[2] * sizes[2]) };
                case.compare(&got, &want, &format!("{isa:?}, {extensions:?}, {at_end}, {what}"));
            };
            // SAFETY: the operands span the specification.
            unsafe { plan.run(pool, (first(0), first(1), first(2)), false, None) }.unwrap();
            compare("plain");
            for (side, plan) in packed.iter().enumerate() {
                let Some(plan) = plan else { continue };
                let copy = Guarded::new(plan.packed_bytes(), at_end);
                let mut at = [first(0), first(1)];
                // SAFETY: the operands span the specification, and the copy is as long as the plan says.
                unsafe {
                    plan.pack(pool, at[side], copy.first);
                    at[side] = copy.first;
                    plan.run(pool, (at[0], at[1], first(2)), false, None).unwrap();
                }
                compare("packed");
            }
        }
    }
}

#[test]
fn nothing_beside_operands_is_touched() {
    let pool = Pool::new(Some(1));
    let only = std::env::var("ONLY_SEED").ok().and_then(|s| s.parse().ok());
    let n = if cfg!(debug_assertions) { 150 } else { 3000 };
    for seed in only.map_or(0..n, |s| s..s + 1) {
        let mut rng = Rng(seed);
        let spec = random_spec(&mut rng);
        let spec = match seed % 3 {
            0 => spec,
            1 => bytes(spec, rng.below(4)),
            _ => Spec { a: DType::BF16, b: DType::BF16, acc: Acc::F32, ..spec },
        };
        if std::env::var_os("SHOW_SEEDS").is_some() {
            eprintln!("seed {seed}: {spec:?}");
        }
        check(&Case::new(spec, &mut rng), &pool);
    }
}

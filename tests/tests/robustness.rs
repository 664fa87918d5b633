//! What the interpreter and the CPU must survive.

use zyx_backend_cpu::Cpu;
use zyx_tests::zyx_core::Reference;

mod cpu {
    use super::*;
    zyx_tests::robustness!("cpu", Cpu::default());

    /// In a process that knows nothing from earlier ones. The product takes longest, so it is the first.
    #[test]
    fn the_contraction_library_is_measured() {
        let test = "cpu::robustness::tuned_kernels_compute_the_same";
        let told = zyx_tests::stubs::alone(test, &[("ZYX_CACHE_DIR", std::ffi::OsStr::new(""))]);
        assert!(told.contains("searched contract_1x48x48x96_f32_f32"), "{told}");
    }
}

mod reference {
    use super::*;
    zyx_tests::robustness!("reference", Reference::default());
}

/// A device of many threads, whose races the interpreter finds.
mod many_threads {
    use super::*;

    fn reference() -> Reference {
        let mut reference = Reference::default();
        let caps = &mut reference.caps;
        (caps.simt, caps.threads, caps.vector_bytes) = (true, 132 * 2048, 16);
        (caps.max_groups, caps.unified_memory) = ([i32::MAX as u64, 65_535, 65_535], false);
        reference.options.shuffle = Some(1);
        reference
    }

    #[test]
    fn random_programs_with_dying_inputs() {
        zyx_tests::robust::donation::random_programs_with_dying_inputs("reference", reference);
    }
}

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

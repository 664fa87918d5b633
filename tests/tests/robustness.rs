//! What the interpreter and the CPU must survive.

use backend_cpu::Cpu;
use zyx_tests::zyx_core::Reference;

mod cpu {
    use super::*;
    zyx_tests::robustness!("cpu", Cpu::default());
}

mod reference {
    use super::*;
    zyx_tests::robustness!("reference", Reference::default());
}

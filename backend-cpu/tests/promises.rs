//! What is promised of size and of launches.

use zyx_backend_cpu::Cpu;

zyx_tests::promises!("cpu", Cpu::default());
zyx_tests::counts!("cpu", Cpu::default());

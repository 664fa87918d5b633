//! The conformance suite on the interpreter device, which is always present.

zyx_tests::conformance!("reference", zyx_tests::zyx_core::Reference::default());

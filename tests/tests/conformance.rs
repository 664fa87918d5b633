//! The conformance suite on the interpreter device, which is always present.

use zyx_tests::zyx_core::Reference;

zyx_tests::conformance!("reference", Reference::default());

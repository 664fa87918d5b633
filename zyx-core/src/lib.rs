//! The core of zyx.
#![forbid(unsafe_code)]

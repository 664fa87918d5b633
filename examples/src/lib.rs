//! What the example programs share: data sets, a progress line, charts and tables for a terminal.
//!
//! Nothing here is about zyx; the programs beside this crate are.
#![forbid(unsafe_code)]

pub mod chart;
pub mod dataset;
pub mod idx;
pub mod progress;
pub mod report;

//! What the page beside this file runs: a network that learns digits while one watches, and an encoder
//! that tells which sentences mean the same. `scripts/web.sh` builds it; see `index.html`.
#![cfg(target_arch = "wasm32")]

mod digits;
mod sentences;

pub use digits::Digits;
pub use sentences::Sentences;

use wasm_bindgen::prelude::*;

/// Errors and warnings reach the console as sentences.
#[wasm_bindgen(start)]
fn start() {
    console_error_panic_hook::set_once();
    // A second start leaves the logger of the first.
    let _ = console_log::init_with_level(log::Level::Warn);
}

/// An error of the library as one of JavaScript.
fn thrown(error: zyx::Error) -> JsError {
    JsError::new(&error.to_string())
}

//! `ImageDecoder`: files of images, decoded on the host.

use super::one;
use crate::run::Call;
use crate::value::Value;
use std::io::Cursor;
use zyx_core::{DType, Result, Tensor};

/// BMP, JPEG, PNG, PNM, TIFF and WebP as `u8 [height, width, channels]`. An image that would take more than 512 MiB is
/// refused.
pub(super) fn decoder(call: &Call<'_>) -> Result<Vec<Value>> {
    let bytes = match call.value(0)? {
        Value::Tensor(tensor) if tensor.dtype() == DType::U8 => {
            call.run.has_read.set(true);
            call.budget().ask(tensor.numel())?;
            tensor.to_bytes()?
        }
        value => call.read(value)?.ints().iter().map(|&x| x as u8).collect(),
    };
    let wrong = |error: &dyn std::fmt::Display| call.error(format!("its image: {error}"));
    let reader = image::ImageReader::new(Cursor::new(bytes));
    let reader = reader.with_guessed_format().map_err(|error| wrong(&error))?;
    let mut reader = reader;
    let mut limits = image::Limits::default();
    limits.max_alloc = limits.max_alloc.map(|most| most.min(call.budget().left() as u64));
    reader.limits(limits);
    let decoded = reader.decode().map_err(|error| wrong(&error))?;
    let area = u64::from(decoded.width()) * u64::from(decoded.height());
    call.budget().ask_for(area as usize, 8)?;
    let is_grey = !decoded.color().has_color();
    let pixels = decoded.into_rgb8();
    let (height, width) = (pixels.height() as usize, pixels.width() as usize);
    let mut pixels = pixels.into_raw();
    let channels = match call.string_or("pixel_format", "RGB")? {
        "RGB" => 3,
        "BGR" => {
            pixels.chunks_exact_mut(3).for_each(|pixel| pixel.swap(0, 2));
            3
        }
        "Grayscale" => {
            // Luma by Rec. 601, in 1 / 65536.
            let luma = |pixel: &[u8]| {
                let [r, g, b] = [0, 1, 2].map(|i| u32::from(pixel[i]));
                ((19_595 * r + 38_470 * g + 7_471 * b + (1 << 15)) >> 16) as u8
            };
            let luma = |pixel: &[u8]| if is_grey { pixel[0] } else { luma(pixel) };
            pixels = pixels.chunks_exact(3).map(luma).collect();
            1
        }
        other => {
            let formats = "RGB, BGR and Grayscale";
            return Err(call.error(format!("`pixel_format` is `{other}`; there are {formats}")));
        }
    };
    one(Tensor::from_bytes(&pixels, DType::U8, [height, width, channels], call.device())?)
}

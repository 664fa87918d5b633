//! What a trained classifier does, as text: images with their predictions.

use crate::dataset::Images;

/// Images side by side, with what they show and what they were taken for below.
pub fn samples(images: &Images, predicted: &[u8], which: &[usize]) -> String {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let [height, width] = images.size;
    let mut text = String::new();
    for y in 0..height {
        for &i in which {
            for &pixel in &images.image(i)[y * width..(y + 1) * width] {
                let shade = SHADES[(pixel.clamp(0.0, 1.0) * 4.0).round() as usize];
                // Two characters for a pixel are about square.
                text.extend([shade, shade]);
            }
            text += "  ";
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let caption = |&i: &usize| {
        let (label, guess) = (images.labels[i], predicted[i]);
        let verdict = if label == guess { "right" } else { "WRONG" };
        format!("{:<1$}", format!("{label} as {guess}: {verdict}"), 2 * width + 2)
    };
    let captions: String = which.iter().map(caption).collect();
    text + captions.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_drawn() {
        let images =
            Images { size: [1, 6], pixels: [[0.0; 6], [0.5; 6]].concat(), labels: vec![3, 4] };
        let text = samples(&images, &[3, 5], &[0, 1]);
        let dots = "▒".repeat(12);
        assert_eq!(text, format!("{:14}{dots}\n3 as 3: right 4 as 5: WRONG\n", ""));
    }
}

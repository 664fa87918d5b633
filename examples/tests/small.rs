//! The examples at a small size: they learn, and what they compute is right.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use examples::chargpt::{Options, train, write};
use zyx::Result;

#[test]
fn a_char_gpt_learns_and_writes() -> Result<()> {
    let device = zyx::device()?;
    let text = &include_str!("../data/alice.txt")[..40_000];
    let trained = train(text, Options::quick(), &device, None)?;
    let [before, after] = trained.held_out;
    assert!(before > 3.9 && after < 3.1, "{before} to {after}");
    let written = write(&trained, "Alice ", 60, 0.7, &device)?;
    assert!(written.starts_with("Alice ") && written.chars().count() == 66, "{written}");
    assert_eq!(write(&trained, "Alice ", 60, 0.7, &device)?, written, "equal seeds write equally");
    assert!(write(&trained, "\u{1F600}", 1, 0.7, &device).is_err());
    Ok(())
}

#[test]
fn a_club_is_divided() -> Result<()> {
    let club = examples::gcn::Club::shipped()?;
    assert_eq!((club.sides.len(), club.friends.len()), (34, 78));
    let guessed = examples::gcn::guess(&club, 200, &zyx::device()?, false)?;
    let wrong = (0..34).filter(|&i| club.sides[i] != guessed[i]).count();
    assert!(wrong <= 4, "{wrong} wrong: {guessed:?}");
    Ok(())
}

#[test]
fn a_recurrence_remembers() -> Result<()> {
    use examples::recurrence::{judge, train};
    let device = zyx::device()?;
    let (model, losses) = train(16, 120, &device, false)?;
    let error = judge(&model, 128, 16, &device)?;
    // Remembering nothing gives 1/6.
    assert!(losses[0] > 0.1 && error < 0.08, "{error} after {}", losses[0]);
    Ok(())
}

#[test]
fn a_pole_is_held_longer() -> Result<()> {
    let device = zyx::device()?;
    let trained = examples::cartpole::train(3000, 150.0, &device, false)?;
    // Pushing at random, a pole stands for about twenty steps.
    assert!(trained.best > 60.0, "{}", trained.best);
    Ok(())
}

#[cfg(feature = "text")]
mod text {
    use super::*;
    use examples::weights::{tokenizer, tokens};
    use examples::{bert::Bert, gpt2};
    use std::path::{Path, PathBuf};
    use tokenizers::Tokenizer;
    use zyx::nn::safetensors;
    use zyx::prelude::*;

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
    }

    fn near(actual: &Tensor, expected: &Tensor, bound: f32) -> Result<()> {
        let error = actual.sub(expected)?.abs().max(..)?.item::<f32>()?;
        assert!(error < bound, "{error}");
        Ok(())
    }

    const SENTENCES: [&str; 3] = [
        "Alice was beginning to get very tired.",
        "The Queen of Hearts!",
        "Off with his head, she said.",
    ];

    /// The tokenizer of the tiny encoder with other settings for padding and truncation.
    fn padding(padding: &str, truncation: &str) -> Tokenizer {
        let text = std::fs::read_to_string(folder("tiny-bert").join("tokenizer.json")).unwrap();
        assert!(text.contains(r#""truncation":null,"padding":null"#));
        let settings = format!(r#""truncation":{truncation},"padding":{padding}"#);
        let text = text.replace(r#""truncation":null,"padding":null"#, &settings);
        text.parse().unwrap()
    }

    fn padding_to(n: usize, side: &str) -> Tokenizer {
        let (length, multiple) = (format!(r#"{{"Fixed":{n}}}"#), r#""pad_to_multiple_of":null"#);
        let token = r#""pad_id":0,"pad_type_id":0,"pad_token":"[PAD]""#;
        let settings =
            format!(r#"{{"strategy":{length},"direction":"{side}",{multiple},{token}}}"#);
        padding(&settings, "null")
    }

    /// Most published encoders come with a tokenizer that pads, to 128 tokens for example. The
    /// similarities are those of `scripts/reference_bert.py`, which masks what is padded; with
    /// `--pad 32` and `--pad 0` it gives the same.
    #[test]
    fn bert_counts_no_padding_as_words() -> Result<()> {
        let device = zyx::device()?;
        let model = Bert::load(&folder("tiny-bert"), &device)?;
        let expected =
            [1.0, 0.906719, 0.829137, 0.906719, 1.0, 0.710383, 0.829137, 0.710383, 1.0f32];
        let expected = Tensor::from_slice(&expected, [3, 3], &device)?;
        let alone = |tokenizer: &Tokenizer| -> Result<Tensor> {
            let rows = SENTENCES.map(|sentence| model.embed(tokenizer, &[sentence]));
            let rows = rows.into_iter().collect::<Result<Vec<_>>>()?;
            Tensor::cat(&rows.iter().collect::<Vec<_>>(), 0)
        };
        let mut kinds = vec![padding("null", "null")];
        // The model has 32 positions.
        for n in [24, 32, 128] {
            for side in ["Right", "Left"] {
                kinds.push(padding_to(n, side));
                let padded = kinds[kinds.len() - 1].encode(SENTENCES[1], true).unwrap();
                assert_eq!((padded.get_ids().len(), padded.get_ids().contains(&0)), (n, true));
                assert_eq!(tokens(&kinds[kinds.len() - 1], SENTENCES[1], true)?.len(), 10);
            }
        }
        for tokenizer in kinds {
            for embeddings in [model.embed(&tokenizer, &SENTENCES)?, alone(&tokenizer)?] {
                near(&embeddings.matmul(&embeddings.t())?, &expected, 2e-6)?;
            }
        }
        Ok(())
    }

    #[test]
    fn bert_reads_the_beginning_of_what_is_too_long() -> Result<()> {
        let device = zyx::device()?;
        let model = Bert::load(&folder("tiny-bert"), &device)?;
        let long = "Down, down, down. Would the fall never come to an end! ".repeat(4);
        let cut = r#"{"direction":"Right","max_length":32,"strategy":"LongestFirst","stride":0}"#;
        let (whole, cut) = (padding("null", "null"), padding("null", cut));
        assert_eq!(tokens(&cut, &long, true)?.len(), 32);
        assert!(tokens(&whole, &long, true)?.len() > 32);
        let sentences = [SENTENCES[0], &long];
        near(&model.embed(&whole, &sentences)?, &model.embed(&cut, &sentences)?, 1e-6)?;
        let message = model.embed(&whole, &[]).unwrap_err().to_string();
        assert!(message.contains("no sentence"), "{message}");
        Ok(())
    }

    #[test]
    fn bert_has_a_position_at_least() -> Result<()> {
        let none = without_tensors(&folder("tiny-bert"), "positions");
        let config = none.join("config.json");
        let text = std::fs::read_to_string(&config).unwrap();
        let positions = "\"max_position_embeddings\": 32";
        assert!(text.contains(positions));
        let text = text.replace(positions, "\"max_position_embeddings\": 0");
        std::fs::write(&config, text).unwrap();
        let error = Bert::load(&none, &zyx::device()?).unwrap_err().to_string();
        std::fs::remove_dir_all(none).unwrap();
        assert!(error.contains("`max_position_embeddings` is 0"), "{error}");
        Ok(())
    }

    #[test]
    fn bert_embeds_as_the_reference_does() -> Result<()> {
        let device = zyx::device()?;
        let folder = folder("tiny-bert");
        let expected = safetensors::load(folder.join("expected.safetensors"), &device)?;
        let (model, tokenizer) = (Bert::load(&folder, &device)?, tokenizer(&folder)?);
        let first = tokenizer.encode(SENTENCES[0], true).unwrap();
        let tokens = expected["tokens"].select_index(0, 0)?.to_vec::<i64>()?;
        let ids: Vec<i64> = first.get_ids().iter().map(|&id| i64::from(id)).collect();
        assert_eq!(ids, tokens[..ids.len()]);
        near(&model.embed(&tokenizer, &SENTENCES)?, &expected["embeddings"], 1e-5)?;
        // Padding does not matter.
        let alone = model.embed(&tokenizer, &SENTENCES[1..2])?;
        near(&alone, &expected["embeddings"].slice(0, 1..2)?, 1e-5)
    }

    /// A new folder with what `from` has beside its tensors.
    fn without_tensors(from: &Path, name: &str) -> PathBuf {
        let to = std::env::temp_dir().join(format!("zyx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir(&to).unwrap();
        std::fs::copy(from.join("config.json"), to.join("config.json")).unwrap();
        to
    }

    #[test]
    fn tensors_of_a_folder_may_be_in_several_files() -> Result<()> {
        let device = zyx::device()?;
        let whole = folder("tiny-bert");
        let parts = without_tensors(&whole, "shards");
        let tensors = safetensors::load(whole.join("model.safetensors"), &device)?;
        let mut lines = Vec::new();
        for (number, name) in ["1.safetensors", "2.safetensors"].into_iter().enumerate() {
            let part = tensors.iter().enumerate().filter(|(i, _)| i % 2 == number);
            let part = part.map(|(_, (key, x))| (key.clone(), x.clone())).collect();
            safetensors::save(&part, parts.join(name))?;
            lines.extend(part.keys().map(|key| format!("\"{key}\":\"{name}\"")));
        }
        let index = format!("{{\"weight_map\":{{{}}}}}", lines.join(","));
        std::fs::write(parts.join("model.safetensors.index.json"), index).unwrap();
        let (a, b) = (Bert::load(&whole, &device)?, Bert::load(&parts, &device)?);
        let (a, b) = (a.to_tensors(), b.to_tensors());
        assert!(a.keys().eq(b.keys()));
        for (name, x) in a {
            assert_eq!(x.to_bytes()?, b[&name].to_bytes()?, "{name}");
        }
        std::fs::remove_dir_all(parts).unwrap();
        // Or what PyTorch saved; here of another model.
        let saved = without_tensors(&whole, "saved");
        let message = |folder| Bert::load(folder, &device).unwrap_err().to_string();
        assert!(message(&saved).contains("neither model.safetensors nor"), "{}", message(&saved));
        let linear = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zyx-io/tests/data/weights.pt");
        std::fs::copy(linear, saved.join("pytorch_model.bin")).unwrap();
        assert!(message(&saved).contains("lacks [\"word.weight\""), "{}", message(&saved));
        std::fs::remove_dir_all(saved).unwrap();
        Ok(())
    }

    #[test]
    fn gpt2_writes_as_the_reference_does() -> Result<()> {
        let device = zyx::device()?;
        let folder = folder("tiny-gpt2");
        let expected = safetensors::load(folder.join("expected.safetensors"), &device)?;
        let (model, tokenizer) = (gpt2::Gpt2::load(&folder, &device)?, tokenizer(&folder)?);
        let start = tokens(&tokenizer, "Alice was beginning to", false)?;
        let ids: Vec<i64> = start.iter().map(|&id| i64::from(id)).collect();
        assert_eq!(ids, expected["tokens"].to_vec::<i64>()?);
        let input = Tensor::from_slice(&start, [1, start.len()], &device)?;
        near(&model.logits(&input)?.squeeze(0)?, &expected["logits"], 1e-3)?;
        let mut seen = 0;
        let written = model.write(&start, 12, 0.0, 0, |_| seen += 1)?;
        let written: Vec<i64> = written.into_iter().map(i64::from).collect();
        assert_eq!((written, seen), (expected["written"].to_vec::<i64>()?, 12));
        assert_eq!(model.write(&start, 1000, 0.0, 0, |_| ())?.len(), model.context());
        let message = gpt2::Gpt2::load(&folder.join("none"), &device).unwrap_err().to_string();
        assert!(message.contains("config.json"), "{message}");
        Ok(())
    }
}

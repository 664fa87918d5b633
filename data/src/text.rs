//! Text by characters: [`CharVocabulary`] numbers them, [`TextWindows`] are samples of a text for
//! a model that predicts the next one.

use crate::dataset::{Array, Dataset};
use std::collections::{BTreeMap, BTreeSet};
use zyx_core::{Error, Result};

/// The characters of a text, in order, and their numbers.
///
/// ```
/// use zyx::data::CharVocabulary;
/// let vocabulary = CharVocabulary::of("hello");
/// assert_eq!(vocabulary.len(), 4);
/// let tokens = vocabulary.encode("hole")?;
/// assert_eq!(vocabulary.decode(&tokens), "hole");
/// assert!(vocabulary.encode("x").is_err());
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharVocabulary {
    characters: Vec<char>,
    numbers: BTreeMap<char, i64>,
}

impl CharVocabulary {
    /// All characters of a text.
    pub fn of(text: &str) -> CharVocabulary {
        let characters: Vec<char> = text.chars().collect::<BTreeSet<char>>().into_iter().collect();
        let numbers = characters.iter().copied().zip(0..).collect();
        CharVocabulary { characters, numbers }
    }

    /// Number of characters.
    pub fn len(&self) -> usize {
        self.characters.len()
    }

    /// Whether there is none.
    ///
    /// ```
    /// use zyx::data::CharVocabulary;
    /// assert!(CharVocabulary::of("").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.characters.is_empty()
    }

    /// The numbers of a text's characters.
    ///
    /// # Errors
    /// When it has a character that is not in the vocabulary.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>> {
        let number = |c: char| {
            self.numbers.get(&c).copied().ok_or_else(|| {
                let reason = format!("{c:?} is not in the vocabulary");
                Error::Format { what: "text".to_owned(), reason }
            })
        };
        text.chars().map(number).collect()
    }

    /// The text of these numbers; what is no number of a character is left out.
    pub fn decode(&self, tokens: &[i64]) -> String {
        let character = |&token: &i64| self.characters.get(usize::try_from(token).ok()?).copied();
        tokens.iter().filter_map(character).collect()
    }
}

/// All windows of a sequence of tokens: a sample is `len` tokens and the `len` tokens that follow
/// each of them.
///
/// ```
/// use zyx::data::{Dataset, TextWindows};
/// let windows = TextWindows::new(vec![5, 6, 7, 8], 2);
/// assert_eq!(windows.len(), 2);
/// let (input, target) = windows.get(1)?;
/// assert_eq!((input.data, target.data), (vec![6, 7], vec![7, 8]));
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextWindows {
    tokens: Vec<i64>,
    window: usize,
}

impl TextWindows {
    /// The windows of `window` tokens.
    pub fn new(tokens: Vec<i64>, window: usize) -> TextWindows {
        TextWindows { tokens, window }
    }
}

impl Dataset for TextWindows {
    type Sample = (Array<i64>, Array<i64>);

    fn len(&self) -> usize {
        self.tokens.len().saturating_sub(self.window)
    }

    fn get(&self, index: usize) -> Result<(Array<i64>, Array<i64>)> {
        let end = index.saturating_add(self.window);
        match self.tokens.get(index..end.saturating_add(1)) {
            Some(window) => Ok((
                Array::from_list(window[..self.window].to_vec()),
                Array::from_list(window[1..].to_vec()),
            )),
            None => {
                let reason = format!("window {index} of {}", self.len());
                Err(Error::Format { what: "text".to_owned(), reason })
            }
        }
    }
}

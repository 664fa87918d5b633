//! What surrounds a model in training: data sets, batches made by worker threads, metrics, a
//! trainer whose checkpoints survive a kill, and logs that TensorBoard opens.
//!
//! A crate of its own: `nn` and `optim` must not know each other, a trainer knows both; and files,
//! threads and image formats are nothing that a program which only computes should carry. Nothing
//! here knows how tensors are computed: it uses the public interfaces alone.
//!
//! Reading order: [`Dataset`] (what can be learned from), [`augment`] (random changes of samples), [`Loader`] (batches), [`Trainer`] (steps,
//! checkpoints), [`metrics`], [`EventWriter`]; with the feature `chart`, curves of losses.
#![forbid(unsafe_code)]

pub mod augment;
#[cfg(feature = "chart")]
pub mod chart;
mod checkpoint;
mod csv;
mod dataset;
mod events;
#[cfg(feature = "image")]
mod folder;
mod idx;
mod loader;
pub mod metrics;
mod progress;
mod text;
mod trainer;

pub use augment::Mixup;
pub use checkpoint::{Checkpoint, State};
pub use csv::{Csv, CsvOptions};
pub use dataset::{
    Array, Augmented, Collate, Dataset, Indexed, Samples, Subset, sample_rng, split,
};
pub use events::EventWriter;
#[cfg(feature = "image")]
pub use folder::{FolderOptions, ImageFolder};
pub use idx::{Idx, IdxImages};
pub use loader::{Batches, Loader, LoaderOptions};
pub use progress::Progress;
pub use text::{CharVocabulary, TextWindows};
pub use trainer::{Schedule, Trainer, TrainerOptions};

//! What a device reports when it fails.

/// A failure of a device or its driver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No memory left.
    #[error(
        "out of device memory: {requested} bytes asked for on {device}, {in_use} in use{}",
        table(live)
    )]
    OutOfMemory {
        /// The device's spec.
        device: String,
        /// Bytes asked for.
        requested: usize,
        /// Bytes allocated at that moment, as far as known.
        in_use: usize,
        /// Size and number of the live buffers, those that take most memory first; a backend
        /// leaves it empty, the core knows them.
        live: Vec<(usize, usize)>,
    },
    /// No buffer of the device can be that long, however much memory is left.
    #[error(
        "a buffer of {requested} bytes on {device}, where one has at most {longest}: split the \
         tensor, or compute it on another device"
    )]
    TooLong {
        /// The device's spec.
        device: String,
        /// Bytes asked for.
        requested: usize,
        /// Most bytes that a buffer has there.
        longest: usize,
    },
    /// The device is gone; nothing on it can be used any more.
    #[error("device {device} is lost: {reason}")]
    Lost {
        /// The device's spec.
        device: String,
        /// What the driver says.
        reason: String,
    },
    /// There is no driver, or it has no such device: nothing is broken.
    #[error("{context}: {reason}")]
    Absent {
        /// What was being done.
        context: String,
        /// What there is, and what to install.
        reason: String,
    },
    /// The user wants the program to stop.
    #[error("interrupted")]
    Interrupted,
    /// The driver refused.
    #[error("{context}: {reason}")]
    Driver {
        /// What was being done.
        context: String,
        /// What the driver says.
        reason: String,
    },
}

impl DeviceError {
    /// No memory left for so many bytes on the device with this spec, beside those in use.
    pub fn out_of_memory(device: &str, requested: usize, in_use: usize) -> DeviceError {
        DeviceError::OutOfMemory { device: device.to_owned(), requested, in_use, live: Vec::new() }
    }

    /// A write to memory that something else owns, or that the host is looking at.
    pub fn not_writable(context: &str) -> DeviceError {
        let reason = "memory that is lent or that the host looks at is never written".to_owned();
        DeviceError::Driver { context: context.to_owned(), reason }
    }

    /// Whether less memory at once may succeed.
    pub fn is_about_memory(&self) -> bool {
        matches!(self, DeviceError::OutOfMemory { .. } | DeviceError::TooLong { .. })
    }
}

/// Rows of live buffers, as text.
fn table(live: &[(usize, usize)]) -> String {
    let row = |&(bytes, n): &(usize, usize)| format!("\n  {n} x {bytes} bytes = {}", n * bytes);
    let rows: String = live.iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("; live buffers:{rows}") }
}

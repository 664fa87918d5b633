//! Launches of a device: checked against what their programs declare, then handed to the backend as
//! one list.

use super::buffer::Pinned;
use super::device::Device;
use super::erased::{Program, RawBuffer};
use super::stats::Counters;
use super::trace::Arguments;
use crate::error::Result;
use crate::hal::{Arg, Command, DeviceError, DeviceKind, Mode, Recording, Watch};
use smallvec::SmallVec;

/// One launch of a list: a program, its arguments and its dependencies.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What to run.
    pub program: &'a Program,
    /// Buffers with byte offsets by slot, then scalar bits by slot.
    pub args: &'a [Arg<'a, Pinned>],
    /// Earlier launches of the list that must be done before this one.
    pub after: &'a [u32],
}

impl Device {
    /// Runs launches in order, as one submission.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// use zyx::internals::hal::Arg;
    /// use zyx::internals::runtime::Launch;
    /// let fill = device.program(&"kernel fill
    ///     buffer 0 : i32[2] write
    ///     scalar 0 : i32 0..=9
    ///     %p param 0 write : i32
    ///     %x var 0 : i32
    ///     %n const 2 : i64
    ///     %i loop parallel %n
    ///     %s store %p[%i], %x : i32
    ///     %e end %i".parse()?)?;
    /// let buffer = device.alloc(8)?;
    /// let pin = buffer.pin()?;
    /// let run = |x| {
    ///     let args = [Arg::Buffer(&pin, 0), Arg::Scalar(x)];
    ///     device.submit(&[Launch { program: &fill, args: &args, after: &[] }])
    /// };
    /// run(7)?;
    /// let mut bytes = [0; 8];
    /// device.read(&buffer, &mut bytes)?;
    /// assert_eq!(bytes, [7, 0, 0, 0, 7, 0, 0, 0]);
    /// assert!(run(10).unwrap_err().to_string().contains("scalar 0 is 10, not in 0..=9"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When arguments do not fit what a program declares or belong to another device: then nothing
    /// runs. At the first launch that the driver refuses; earlier ones may have been queued.
    pub fn submit(&self, launches: &[Launch<'_>]) -> Result<()> {
        self.submit_recorded(&mut Recording::default(), launches, (false, &[]))
    }

    /// As [`Device::submit`]. `recording` is for this list alone: programs and dependencies are the
    /// same whenever it is passed. `in_place` if the last launch writes over values that are needed if the list
    /// fails. `about` is what a trace says of each launch, if that is known.
    pub(crate) fn submit_recorded(
        &self,
        recording: &mut Recording,
        launches: &[Launch<'_>],
        (in_place, about): (bool, &[Arguments]),
    ) -> Result<()> {
        let _span = self.span("launch", &[("launches", launches.len())]);
        self.check_process()?;
        for (at, launch) in launches.iter().enumerate() {
            self.check_launch(at, launch)?;
        }
        Counters::add(&self.counters().launches, launches.len() as u64);
        self.buffers().advance();
        let args: SmallVec<[Arg<'_, RawBuffer>; 16]> = launches
            .iter()
            .flat_map(|launch| launch.args)
            .map(|arg| match *arg {
                Arg::Buffer(buffer, offset) => Arg::Buffer(buffer.raw(), offset),
                Arg::Scalar(bits) => Arg::Scalar(bits),
            })
            .collect();
        let mut rest = args.as_slice();
        let commands: SmallVec<[Command<'_, Program, RawBuffer>; 4]> = launches
            .iter()
            .map(|launch| {
                let (args, others) = rest.split_at(launch.args.len());
                rest = others;
                Command { program: launch.program, args, after: launch.after }
            })
            .collect();
        let mut stream = self.stream();
        let mut profile = self.profiling();
        let long = commands.iter().any(|command| command.program.parts() > 1);
        let measured = profile.is_some() || self.is_traced();
        if !measured && !long {
            // The CPU executes commands synchronously, so a request can stop it between two of them.
            let is_cpu = self.info().kind == DeviceKind::Cpu;
            let apart = in_place && is_cpu && Watch::here().may_stop();
            let (before, rest) = commands.split_at(if apart { commands.len() - 1 } else { 0 });
            if apart {
                self.raw().replay(&mut stream, &mut Recording::default(), before)?;
            }
            // Queued launches cannot be taken back.
            let _mode = (apart || !is_cpu).then(Mode::whole);
            return Ok(self.raw().replay(&mut stream, recording, rest)?);
        }
        let mut count = 0;
        for (at, command) in commands.iter().enumerate() {
            let _mode = (in_place && at + 1 == commands.len()).then(Mode::whole);
            for args in part_arguments(command) {
                let part = Command { args: args.as_deref().unwrap_or(command.args), ..*command };
                count += 1;
                if measured {
                    let (time, name) =
                        (self.raw().replay_timed(&mut stream, &part)?, command.program.name());
                    self.record_launch(name, time, about.get(at));
                    if let Some(profile) = &mut *profile {
                        profile.add(name, time);
                    }
                } else {
                    self.raw().replay_alone(&mut stream, &part)?;
                }
            }
        }
        Counters::add(&self.counters().launches, count - commands.len() as u64);
        Ok(())
    }

    /// Checks that a launch, one of a list, is this device's and that its arguments fit.
    fn check_launch(&self, at: usize, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let foreign = launch.args.iter().find_map(|arg| match arg {
            Arg::Buffer(buffer, _) if buffer.device() != self => Some(buffer.device()),
            _ => None,
        });
        let context = || format!("launching {}", launch.program.name());
        let reason = if let Some(device) = foreign {
            self.foreign("a buffer", device.spec())
        } else if !launch.program.is_of(self.home()) {
            self.foreign("a program", "another device")
        } else if launch.after.iter().any(|&earlier| earlier as usize >= at) {
            format!("launch {at} waits for one that is not earlier in the list")
        } else {
            let Some(signature) = launch.program.signature() else { return Ok(()) };
            return signature.check(launch.args, |pin| pin.extent()).map_err(|error| match error {
                DeviceError::Driver { reason, .. } => {
                    DeviceError::Driver { context: context(), reason }
                }
                other => other,
            });
        };
        Err(DeviceError::Driver { context: context(), reason })
    }

    /// Runs a program alone, waits, and gives the time the device took.
    pub(super) fn run_timed(
        &self,
        program: &Program,
        args: &[Arg<'_, Pinned>],
    ) -> Result<std::time::Duration> {
        let args: Vec<Arg<'_, RawBuffer>> = args
            .iter()
            .map(|arg| match *arg {
                Arg::Buffer(buffer, offset) => Arg::Buffer(buffer.raw(), offset),
                Arg::Scalar(bits) => Arg::Scalar(bits),
            })
            .collect();
        self.run_raw(program, &args)
    }

    /// As [`Device::run_timed`], with blocks of memory that the caller took.
    pub(super) fn run_raw(
        &self,
        program: &Program,
        args: &[Arg<'_, RawBuffer>],
    ) -> Result<std::time::Duration> {
        let whole = Command { program, args, after: &[] };
        let mut time = std::time::Duration::ZERO;
        for args in part_arguments(&whole) {
            let part = Command { args: args.as_deref().unwrap_or(whole.args), ..whole };
            time += self.raw().replay_timed(&mut self.stream(), &part)?;
        }
        Ok(time)
    }
}

/// The arguments of each launch that a command takes, `None` for those it has.
fn part_arguments<'a>(
    command: &Command<'a, Program, RawBuffer>,
) -> impl Iterator<Item = Option<Vec<Arg<'a, RawBuffer>>>> {
    let (args, parts) = (command.args, command.program.parts());
    (0..parts).map(move |part| {
        (parts > 1).then(|| args.iter().copied().chain([Arg::Scalar(part)]).collect())
    })
}

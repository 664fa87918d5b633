//! Lists the devices of this machine that the compiled-in backends can use.
//!
//! `cargo run --release --example devices --features opencl,cuda,vulkan`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use zyx::internals::hal::{Caps, Progress};
use zyx::prelude::*;

fn main() {
    for info in Device::list() {
        let memory = match info.memory {
            0 => "memory of the host".to_owned(),
            bytes => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
        };
        println!("{:<12} {:<12} {} ({memory})", info.spec, info.kind, info.name);
        match Device::open(&info.spec) {
            Ok(device) => println!("{:<12} {}{}", "", describe(device.caps()), groups(&device)),
            Err(error) => println!("{:<12} cannot be used: {error}", ""),
        }
    }
    match zyx::device() {
        Ok(device) => println!("default: {device}"),
        Err(error) => println!("default: none, {error}"),
    }
}

/// The progress that groups of threads may expect, and the messages between groups that a test saw where the driver promises some.
fn groups(device: &Device) -> String {
    if device.caps().progress == Progress::None {
        return String::new();
    }
    let (Ok(litmus), Ok(progress)) = (device.litmus(), device.progress()) else {
        return String::new();
    };
    let seen = [
        (litmus.intact, "intact"),
        (litmus.earlier, "from earlier groups"),
        (litmus.later, "from later groups"),
        (litmus.ordered, "in order"),
    ];
    let seen: Vec<&str> = seen.iter().filter(|x| x.0).map(|x| x.1).collect();
    format!("; progress {progress:?}, messages {}", seen.join(", "))
}

/// What a device can do, in a line.
fn describe(caps: &Caps) -> String {
    let names = |set: zyx::internals::DTypeSet| {
        let all = DType::ALL.iter().filter(|&&dtype| set.contains(dtype));
        all.map(|dtype| dtype.to_string()).collect::<Vec<_>>().join(" ")
    };
    let mut text = format!("computes {}", names(caps.compute));
    if caps.simt {
        let shared = caps.shared_bytes >> 10;
        text.push_str(&format!("; groups of {}, {shared} KiB shared", caps.max_local));
        if caps.max_buffers < usize::MAX {
            text.push_str(&format!(", {} buffers a kernel", caps.max_buffers));
        }
    } else {
        text.push_str(&format!("; {} threads, {}-byte vectors", caps.threads, caps.vector_bytes));
    }
    if caps.subgroup.1 > 0 {
        text.push_str(&format!("; subgroups of {} to {}", caps.subgroup.0, caps.subgroup.1));
    }
    text
}

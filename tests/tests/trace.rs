//! Traces are valid files of the Trace Event Format that tell what the profile and the counters tell.

mod common;

use common::device;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use zyx_tests::zyx_core::{DType, Device, Result, Rng, Tensor, Trace};

/// A file that goes with this.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("zyx-{name}-{}.json", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    /// The events of the trace in the file.
    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).expect("the trace is there");
        let whole: Value = serde_json::from_str(&text).expect("a trace is JSON");
        whole["traceEvents"].as_array().expect("a list of events").clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Process and thread.
type Track = (u64, u64);

/// A span in nanoseconds: where it starts, where it ends, and the event.
type Span<'a> = (u64, u64, &'a Value);

fn nanoseconds(x: &Value) -> u64 {
    (x.as_f64().expect("a time in microseconds") * 1e3).round() as u64
}

/// Spans by track, in the order of their starts, an outer one before what it contains.
fn spans(events: &[Value]) -> BTreeMap<Track, Vec<Span<'_>>> {
    let mut tracks: BTreeMap<Track, Vec<Span<'_>>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let [pid, tid] = ["pid", "tid"].map(|key| event[key].as_u64().expect("a number"));
        let start = nanoseconds(&event["ts"]);
        let end = start + nanoseconds(&event["dur"]);
        tracks.entry((pid, tid)).or_default().push((start, end, event));
    }
    let longest_first = |span: &Span<'_>| (span.0, std::cmp::Reverse(span.1));
    tracks.values_mut().for_each(|spans| spans.sort_by_key(longest_first));
    tracks
}

/// The name of a process, or of one of its threads.
fn named(events: &[Value], what: &str, (pid, tid): Track) -> String {
    let is_it =
        |event: &&Value| event["name"] == what && event["pid"] == pid && event["tid"] == tid;
    let found = events.iter().filter(|event| event["ph"] == "M").find(is_it);
    let name = found.and_then(|event| event["args"]["name"].as_str());
    name.expect("every process and thread has a name").to_owned()
}

/// Every span of a track is within another one or beside it.
fn check_nesting(spans: &[Span<'_>]) {
    let mut open: Vec<u64> = Vec::new();
    for &(start, end, event) in spans {
        while open.last().is_some_and(|&outer| outer <= start) {
            open.pop();
        }
        assert!(open.last().is_none_or(|&outer| end <= outer), "it leaves what it is in: {event}");
        open.push(end);
    }
}

fn step(device: &Device, n: usize) -> Result<f32> {
    let x = Tensor::randn([n, n], DType::F32, &mut Rng::seed(n as u64), device)?;
    let y = x.matmul(&x)?.gelu().softmax(-1)?.sum(..)?;
    y.item::<f32>()
}

#[test]
fn a_trace_is_valid_and_equals_the_profile() -> Result<()> {
    let (device, file) = (device(), Scratch::new("profile"));
    let trace = Trace::create(&file.0)?;
    device.set_profiling(true);
    device.set_trace(Some(&trace));
    let before = device.stats();
    for n in [64, 64, 96] {
        step(&device, n)?;
    }
    let spent = device.stats().since(&before);
    let profile = device.profile();
    device.set_trace(None);
    step(&device, 32)?; // not traced
    trace.flush()?;

    let events = file.events();
    let tracks = spans(&events);
    let (mut launches, mut moved) = (BTreeMap::<String, (u64, u64)>::new(), 0);
    for (&track, spans) in &tracks {
        named(&events, "process_name", (track.0, 0));
        check_nesting(spans);
        match named(&events, "thread_name", track).as_str() {
            "launches" => {
                let disjoint = |pair: &[Span<'_>]| pair[0].1 <= pair[1].0;
                assert!(spans.windows(2).all(disjoint), "one launch after the other");
                for (start, end, event) in spans {
                    let name = event["name"].as_str().expect("a name").to_owned();
                    let (count, time) = launches.entry(name).or_default();
                    (*count, *time) = (*count + 1, *time + (end - start));
                    let args = &event["args"];
                    let number = |key: &str| args[key].as_f64().unwrap_or_default();
                    assert!(number("bytes") > 0.0 && number("predicted_us") > 0.0, "{event}");
                    assert!(number("least_us") <= number("predicted_us"), "{event}");
                    if event["name"].as_str().is_some_and(|name| name.starts_with("contract")) {
                        let n = if args["reads"].as_str().unwrap_or_default().contains("96") {
                            96
                        } else {
                            64
                        };
                        assert_eq!(number("operations"), 2.0 * f64::from(n * n * n), "{event}");
                    }
                }
            }
            "transfers" => {
                moved += spans
                    .iter()
                    .map(|s| s.2["args"]["bytes"].as_u64().expect("bytes"))
                    .sum::<u64>();
            }
            _ => {}
        }
    }
    assert_eq!(launches.values().map(|(count, _)| count).sum::<u64>(), spent.launches);
    assert_eq!(moved, spent.bytes_moved);
    for (name, &(count, time)) in &launches {
        let row = profile
            .iter()
            .find(|row| *row.name == **name)
            .expect("a traced launch is in the profile");
        assert_eq!(row.launches, count, "{name}");
        assert!(row.time.as_nanos().abs_diff(time.into()) <= u128::from(2 * count), "{name}");
    }
    assert_eq!(profile.len(), launches.len());
    assert!(device.profile().len() > launches.len(), "the last step was not traced");

    // The host: one realize for each step, with planning inside where a plan was new.
    let host: Vec<Span<'_>> =
        tracks.iter().filter(|(track, _)| track.0 == 0).flat_map(|(_, s)| s.clone()).collect();
    let count = |name: &str| host.iter().filter(|span| span.2["name"] == name).count() as u64;
    assert_eq!(count("plan"), spent.plan_misses);
    assert_eq!((count("realize"), count("read")), (3, spent.copies));
    let within = |inner: &Span<'_>, outer: &Span<'_>| outer.0 <= inner.0 && inner.1 <= outer.1;
    let realizes: Vec<&Span<'_>> = host.iter().filter(|span| span.2["name"] == "realize").collect();
    for span in host
        .iter()
        .filter(|s| ["plan", "capture", "match", "launch"].iter().any(|name| s.2["name"] == *name))
    {
        assert!(realizes.iter().any(|outer| within(span, outer)), "{}", span.2);
    }
    // A launch is on the device while the host is launching.
    let launching: Vec<&Span<'_>> = host.iter().filter(|span| span.2["name"] == "launch").collect();
    for spans in
        tracks.iter().filter(|(track, _)| track.1 == 1 && track.0 > 0).map(|(_, spans)| spans)
    {
        for span in spans {
            assert!(launching.iter().any(|outer| within(span, outer)), "{}", span.2);
        }
    }
    Ok(())
}

#[test]
fn the_file_is_whole_after_each_call() -> Result<()> {
    let (device, file) = (device(), Scratch::new("whole"));
    let trace = Trace::create(&file.0)?;
    device.set_trace(Some(&trace));
    let mut last = file.events().len();
    for n in [16, 24, 24] {
        step(&device, n)?;
        let now = file.events().len();
        assert!(now > last, "a step is in the file when it is done");
        last = now;
    }
    Ok(())
}

#[test]
fn threads_and_devices_have_tracks_of_their_own() -> Result<()> {
    let (a, b, file) = (device(), device(), Scratch::new("threads"));
    let trace = Trace::create(&file.0)?;
    for device in [&a, &b] {
        device.set_trace(Some(&trace));
    }
    std::thread::scope(|scope| {
        for device in [&a, &b, &a] {
            scope.spawn(move || (0..4).try_for_each(|_| step(device, 20).map(drop)));
        }
    });
    let events = file.events();
    let tracks = spans(&events);
    assert_eq!(tracks.keys().filter(|track| track.0 == 0).count(), 3);
    tracks.values().for_each(|spans| check_nesting(spans));
    Ok(())
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    let path = std::env::temp_dir().join("zyx-no-such-folder").join("trace.json");
    let error = Trace::create(path).unwrap_err().to_string();
    assert!(error.contains("zyx-no-such-folder"), "{error}");
}

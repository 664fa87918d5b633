//! The thread pool: one job at a time, split over `[0, n)` by an atomic counter.
//!
//! Guarantees: a dispatch allocates nothing; the calling thread takes part, so a job finishes even
//! if no worker ever wakes; chunks are handed out dynamically, so uneven tasks balance; a call from
//! inside a task, or while another thread's job is running, is executed by the caller alone; a
//! panic in a task stops the hand-out, reaches the caller, and leaves the pool usable; [`Pool::run`]
//! returns only when no worker can still touch the closure.
//!
//! Why our own: waking a sleeping thread costs 20 to 80 us, as much as a matrix product of
//! 256 x 256 x 256. Workers therefore spin for a while after each job before they sleep, which
//! general-purpose pools do not do, and a dispatch to a spinning worker costs one cache line moved.
//!
//! How it works: `state` is one word with four parts, the number of the job (epoch), whether it is
//! open to be joined, how many workers are in it, and how many chunks have been handed out. The
//! caller, alone inside thanks to `busy`, writes the job while it is closed and empty, then opens
//! it. A worker joins and takes its first chunk by one compare-exchange, which succeeds only if the
//! job is open. The caller closes it when the chunks have run out and waits for the workers inside
//! to leave; late workers find the door closed. State and job share a cache line on purpose: moving
//! a line between cores is the whole cost of a dispatch, 70 ns each way where this was written.

use crate::fork;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long an idle worker looks for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(100);

/// A worker looks at the clock once in this many polls.
const POLLS_PER_CLOCK: u32 = 32;

/// How many sleepers a thread wakes itself; each woken worker wakes as many again.
const WAKE_FANOUT: usize = 2;

/// The most threads of a pool; the state has room for this many workers.
const MAX_THREADS: usize = 1 << 12;

/// The part of the state that counts the chunks handed out; the low half, so it can be added to.
const CHUNKS: u64 = (1 << 32) - 1;
/// The most chunks a job may have: the counter overshoots by at most one per thread.
const MAX_CHUNKS: usize = 1 << 31;
/// One worker inside, and the part of the state that counts them.
const WORKER: u64 = 1 << 32;
const WORKERS: u64 = 0xfff << 32;
const OPEN: u64 = 1 << 44;
const SHUTDOWN: u64 = 1 << 45;
/// One job. The epoch wraps: a worker that slept through exactly 2^18 jobs skips one, no harm.
const EPOCH: u64 = 1 << 46;

thread_local! {
    /// Whether this thread is executing a task; calls from there run inline.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

type Task<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// What the current job is. Written only while no worker is inside.
#[derive(Clone, Copy)]
struct Job {
    task: *const Task<'static>,
    n: usize,
    grain: usize,
    chunks: usize,
}

/// State and job on one cache line, and nothing else on it or the adjacent prefetched one.
#[repr(align(128))]
struct Gate {
    state: AtomicU64,
    job: UnsafeCell<Job>,
}

struct Shared {
    gate: Gate,
    /// Number of set flags in `asleep`, so that a dispatch to a hot pool looks at one word.
    sleepers: AtomicUsize,
    panicked: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    asleep: Vec<AtomicBool>,
    threads: RwLock<Vec<Thread>>,
}

// SAFETY: `job` is written by the thread that holds `busy`, while the job is closed and `WORKERS`
// is zero, and read by workers that joined after the releasing store that opened it.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer in `job` is dereferenced only between open and close of the job, during
// which `Pool::run` keeps the closure borrowed.
unsafe impl Send for Shared {}

/// A fixed set of threads that execute the chunks of one job at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    n_workers: AtomicUsize,
    /// The generation of the process that the workers belong to.
    generation: AtomicUsize,
    busy: AtomicBool,
    jobs: AtomicU64,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.n_threads()).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller included; `None` means one per available core.
    ///
    /// Threads that the system refuses to start are done without: the pool is then smaller.
    pub fn new(threads: Option<usize>) -> Pool {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let n_workers = threads.unwrap_or(available).clamp(1, MAX_THREADS) - 1;
        let shared = Arc::new(Shared {
            gate: Gate {
                state: AtomicU64::new(0),
                job: UnsafeCell::new(Job { task: &|_| {}, n: 0, grain: 1, chunks: 0 }),
            },
            sleepers: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            asleep: (0..n_workers).map(|_| AtomicBool::new(false)).collect(),
            threads: RwLock::default(),
        });
        let (workers, n_workers, jobs) = (Mutex::default(), AtomicUsize::new(0), AtomicU64::new(0));
        let generation = AtomicUsize::new(fork::generation());
        let pool =
            Pool { shared, workers, n_workers, generation, busy: AtomicBool::new(false), jobs };
        pool.start();
        pool
    }

    /// Starts the workers, as many as the system gives.
    fn start(&self) {
        let start = |i: usize| {
            let shared = self.shared.clone();
            let name = format!("zyx-cpu-{i}");
            std::thread::Builder::new().name(name).spawn(move || worker(&shared, i)).ok()
        };
        let workers: Vec<_> = (0..self.shared.asleep.len()).map_while(start).collect();
        self.n_workers.store(workers.len(), Ordering::Relaxed);
        *self.shared.threads.write().unwrap_or_else(PoisonError::into_inner) =
            workers.iter().map(|w| w.thread().clone()).collect();
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers;
    }

    /// In the child of a fork: starts workers in place of those that the parent has. The caller holds `busy`.
    #[cold]
    fn start_again(&self, generation: usize) {
        self.forget();
        let shared = &*self.shared;
        // No worker is inside: the parent forked while no job ran.
        shared.gate.state.fetch_and(!(WORKERS | OPEN), Ordering::SeqCst);
        shared.asleep.iter().for_each(|flag| flag.store(false, Ordering::Relaxed));
        shared.sleepers.store(0, Ordering::SeqCst);
        self.start();
        self.generation.store(generation, Ordering::Release);
    }

    /// Drops the handles of workers of another process, which cannot be joined.
    fn forget(&self) {
        let workers = &mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(workers).into_iter().for_each(std::mem::forget);
    }

    /// Jobs so far: calls of [`run`](Pool::run) that were not made within a task, and those that
    /// were [counted](Pool::count_job).
    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Counts a job that the caller does without the pool, as it is too short to be shared.
    pub fn count_job(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of threads that can take part in a job, the caller included.
    pub fn n_threads(&self) -> usize {
        self.n_workers.load(Ordering::Relaxed) + 1
    }

    /// Calls `task` with ranges that together cover `0..n` exactly once, each of at most `grain`
    /// elements, on several threads at once.
    ///
    /// Everything written by the tasks is visible when this returns. With one thread, one chunk,
    /// from inside a task, or while another thread uses the pool, the caller does it all itself,
    /// in one call `task(0..n)`.
    ///
    /// # Panics
    /// If a task panics, with the payload of one of the panics, after all threads have left the
    /// job. Chunks not yet handed out at that moment are not executed.
    pub fn run(&self, n: usize, grain: usize, task: &(dyn Fn(Range<usize>) + Sync)) {
        let grain = grain.max(1);
        if n == 0 {
            return;
        }
        if !IN_TASK.get() {
            self.count_job();
        }
        if n <= grain || self.n_threads() == 1 || IN_TASK.get() || !self.acquire() {
            return task(0..n);
        }
        let generation = fork::generation();
        if self.generation.load(Ordering::Relaxed) != generation {
            self.start_again(generation);
        }
        let job = self.open(n, grain, task);
        IN_TASK.set(true);
        work(&self.shared, job, 0);
        IN_TASK.set(false);
        self.close();
        let panic = if self.shared.panicked.load(Ordering::Relaxed) {
            self.shared.panicked.store(false, Ordering::Relaxed);
            self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
        } else {
            None
        };
        self.busy.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    fn acquire(&self) -> bool {
        self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn open(&self, n: usize, grain: usize, task: &Task<'_>) -> Job {
        let shared = &*self.shared;
        let grain = grain.max(n.div_ceil(MAX_CHUNKS));
        let chunks = n.div_ceil(grain);
        // SAFETY: only the lifetime changes. The pointer is dereferenced by threads inside the job
        // only, and `run` does not return, nor unwind, before `close` has seen the last one leave.
        let task = unsafe { std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task) };
        let job = Job { task, n, grain, chunks };
        // SAFETY: we hold `busy`, the job is closed and no worker is inside: nobody reads it.
        unsafe { *shared.gate.job.get() = job };
        let state = shared.gate.state.load(Ordering::Relaxed);
        // The caller has the first chunk. SeqCst: ordered against a worker that announces its sleep and then looks at the state.
        shared.gate.state.store((state & !CHUNKS).wrapping_add(EPOCH) | OPEN | 1, Ordering::SeqCst);
        shared.wake(chunks - 1);
        job
    }

    fn close(&self) {
        let state = &self.shared.gate.state;
        let mut now = state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut polls = 0_u32;
        while now & WORKERS != 0 {
            relax(&mut polls);
            now = state.load(Ordering::Acquire);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if *self.generation.get_mut() != fork::generation() {
            return self.forget();
        }
        self.shared.gate.state.fetch_or(SHUTDOWN, Ordering::SeqCst);
        let workers = self.workers.get_mut().unwrap_or_else(PoisonError::into_inner);
        for worker in workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its tasks, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Wakes sleepers, if there are any and `chunks` of work for them.
    fn wake(&self, chunks: usize) {
        if chunks == 0 || self.sleepers.load(Ordering::SeqCst) == 0 {
            return;
        }
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        let mut left = chunks.min(WAKE_FANOUT);
        for (flag, thread) in self.asleep.iter().zip(&*threads) {
            if left == 0 {
                break;
            }
            if flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::AcqRel) {
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
                thread.unpark();
                left -= 1;
            }
        }
    }

    /// Whether a worker that has seen the jobs up to `seen` has something to do in this state.
    fn calls(state: u64, seen: u64) -> bool {
        state & SHUTDOWN != 0 || (state & OPEN != 0 && state / EPOCH != seen)
    }

    /// Waits, spinning and then asleep, for a job after `seen` or the end of the pool.
    fn wait(&self, index: usize, seen: u64) -> u64 {
        let mut since = None;
        let mut polls = 0_u32;
        loop {
            let state = self.gate.state.load(Ordering::Acquire);
            if Shared::calls(state, seen) {
                return state;
            }
            std::hint::spin_loop();
            polls += 1;
            if polls.is_multiple_of(POLLS_PER_CLOCK) {
                let now = Instant::now();
                if now.duration_since(*since.get_or_insert(now)) > SPIN {
                    self.sleep(index, seen);
                    since = None;
                }
            }
        }
    }

    fn sleep(&self, index: usize, seen: u64) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        self.asleep[index].store(true, Ordering::SeqCst);
        // Either this load sees the new job, or its publisher sees our flag and unparks us.
        while !Shared::calls(self.gate.state.load(Ordering::SeqCst), seen)
            && self.asleep[index].load(Ordering::Acquire)
        {
            std::thread::park();
        }
        if self.asleep[index].swap(false, Ordering::AcqRel) {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The life of a worker: join each job once, leave, wait.
fn worker(shared: &Shared, index: usize) {
    IN_TASK.set(true);
    let mut seen = 0;
    loop {
        let state = shared.wait(index, seen);
        if state & SHUTDOWN != 0 {
            return;
        }
        let join = |s| (s & OPEN != 0 && s / EPOCH == state / EPOCH).then_some(s + WORKER + 1);
        let joined = shared.gate.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, join);
        if let Ok(before) = joined {
            let first = (before & CHUNKS) as usize;
            // SAFETY: this worker has joined the job, which stays as it is until it has left.
            let job = unsafe { *shared.gate.job.get() };
            shared.wake(job.chunks.saturating_sub(first + 1));
            work(shared, job, first);
            shared.gate.state.fetch_sub(WORKER, Ordering::Release);
        }
        seen = state / EPOCH;
    }
}

/// Executes chunks of the open job, in which the calling thread is, until none is left; `chunk` is
/// the first of them, already taken.
fn work(shared: &Shared, job: Job, mut chunk: usize) {
    let Job { task, n, grain, chunks } = job;
    // SAFETY: `Pool::run` keeps the closure borrowed until every thread has left the job.
    let task = unsafe { &*task };
    while chunk < chunks {
        let start = chunk * grain;
        let range = start..n.min(start.saturating_add(grain));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(range))) {
            *shared.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
            shared.panicked.store(true, Ordering::Relaxed);
        }
        if shared.panicked.load(Ordering::Relaxed) {
            return;
        }
        chunk = (shared.gate.state.fetch_add(1, Ordering::Relaxed) & CHUNKS) as usize;
    }
}

/// One turn of a short wait: the core's pause, now and then the scheduler's.
///
/// The thread waited for may have been preempted, and this core may be the one it needs.
fn relax(polls: &mut u32) {
    *polls += 1;
    if polls.is_multiple_of(1 << 10) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn covers(pool: &Pool, n: usize, grain: usize) {
        let hits: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(0)).collect();
        pool.run(n, grain, &|range| {
            for i in range {
                hits[i].fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1), "n {n} grain {grain}");
    }

    #[test]
    fn every_index_is_visited_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(Some(threads));
            assert_eq!(pool.n_threads(), threads);
            for n in [0, 1, 2, 3, 7, 64, 1000] {
                for grain in [0, 1, 2, 3, 63, 64, 5000, usize::MAX] {
                    covers(&pool, n, grain);
                }
            }
        }
    }

    #[test]
    fn many_short_jobs_with_and_without_sleep() {
        let pool = Pool::new(Some(4));
        for i in 0..20_000 {
            covers(&pool, 5, 1);
            if i % 5_000 == 0 {
                std::thread::sleep(3 * SPIN);
            }
        }
    }

    #[test]
    fn several_threads_take_part_even_when_asleep() {
        let pool = Pool::new(Some(3));
        for _ in 0..3 {
            std::thread::sleep(5 * SPIN);
            // Each task waits for the others: this ends only if three threads are inside.
            let inside = AtomicU32::new(0);
            pool.run(3, 1, &|_| {
                inside.fetch_add(1, Ordering::SeqCst);
                while inside.load(Ordering::SeqCst) < 3 {
                    std::thread::yield_now();
                }
            });
        }
    }

    #[test]
    fn nested_calls_run_inline() {
        let pool = Pool::new(Some(3));
        let total = AtomicU32::new(0);
        pool.run(8, 1, &|_| {
            let id = std::thread::current().id();
            pool.run(16, 1, &|range| {
                assert_eq!(std::thread::current().id(), id);
                total.fetch_add(range.len() as u32, Ordering::Relaxed);
            });
        });
        assert_eq!(total.load(Ordering::Relaxed), 8 * 16);
    }

    #[test]
    fn concurrent_callers_all_finish() {
        let pool = Pool::new(Some(3));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| covers(&pool, 17, 2)));
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(Some(4));
        for bad in 0..20 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(20, 1, &|range| assert!(!range.contains(&bad), "task {bad} fails"));
            }));
            let payload = caught.unwrap_err();
            assert_eq!(*payload.downcast::<String>().unwrap(), format!("task {bad} fails"));
            covers(&pool, 100, 3);
        }
    }
}

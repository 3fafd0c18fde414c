//! tokio: a spawned future per task, a semaphore per group, two workers.
//!
//!     out      spawned by a thread that is no worker
//!     in       spawned by a task on a worker: into its own queue, tokio's fast path
//!     back     by a task that takes the permit before it spawns (submit waits)
//!     workers  no future per task, but four per group that read from one channel of 1024 slots
//!
//! usage: tokio-peer w1 out|in|back|workers, w2, w3 out|back
//! SPDX-License-Identifier: MIT
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, Mutex, Notify, Semaphore};

const TASKS: usize = 1_000_000;
const GROUPS: usize = 64;
const LIMIT: usize = 4;
const WARM_UPS: usize = 1;
const ROUNDS: usize = 3;
const FLOOD: usize = 200_000;
const FLOOD_LIMIT: usize = 2;
const TICKS: usize = 1000;
const TICK: Duration = Duration::from_millis(2);
const SETTLE: Duration = Duration::from_millis(1500);

fn status_kb(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0.0)
}

#[inline(never)]
fn burn(steps: u64) -> u64 {
    let mut x = steps | 1;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    x
}

/// Steps that take 50 us.
fn burn_calibrate() -> u64 {
    let mut best = u128::MAX;
    for _ in 0..40 {
        let begin = Instant::now();
        black_box(burn(200_000));
        best = best.min(begin.elapsed().as_nanos());
    }
    (200_000u128 * 50_000 / best) as u64
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[inline(never)]
fn empty() {
    black_box(());
}

/// Counts tasks down; the last one notifies.
struct Left {
    count: AtomicUsize,
    none: Notify,
}

impl Left {
    fn new(count: usize) -> Arc<Self> {
        Arc::new(Left { count: AtomicUsize::new(count), none: Notify::new() })
    }

    fn done(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.notify_one();
        }
    }

    async fn wait(&self) {
        while self.count.load(Ordering::Acquire) != 0 {
            self.none.notified().await;
        }
    }
}

// ---- w1 -------------------------------------------------------------------------------------------

async fn w1_spawn(left: Arc<Left>, back: bool) -> Instant {
    let group: Vec<_> = (0..GROUPS).map(|_| Arc::new(Semaphore::new(LIMIT))).collect();
    let begin = Instant::now();
    for i in 0..TASKS {
        let permits = group[i % GROUPS].clone();
        let left = left.clone();
        if back {
            let permit = permits.acquire_owned().await.unwrap();
            tokio::spawn(async move {
                empty();
                drop(permit);
                left.done();
            });
        } else {
            tokio::spawn(async move {
                let permit = permits.acquire().await.unwrap();
                empty();
                drop(permit);
                left.done();
            });
        }
    }
    begin
}

async fn w1_workers(left: Arc<Left>) -> Instant {
    let mut group = Vec::new();
    for _ in 0..GROUPS {
        let (sender, receiver) = mpsc::channel::<fn()>(1024);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..LIMIT {
            let (receiver, left) = (receiver.clone(), left.clone());
            tokio::spawn(async move {
                loop {
                    let task = { receiver.lock().await.recv().await };
                    let Some(task) = task else { break };
                    task();
                    left.done();
                }
            });
        }
        group.push(sender);
    }
    let begin = Instant::now();
    for i in 0..TASKS {
        group[i % GROUPS].send(empty).await.unwrap();
    }
    begin
}

async fn w1_round(variant: &'static str) -> f64 {
    let left = Left::new(TASKS);
    let begin = match variant {
        "workers" => w1_workers(left.clone()).await,
        _ => w1_spawn(left.clone(), variant == "back").await,
    };
    left.wait().await;
    begin.elapsed().as_nanos() as f64 / TASKS as f64
}

fn w1(variant: &'static str) {
    let runtime = runtime();
    let mut ns = Vec::new();
    for round in 0..WARM_UPS + ROUNDS {
        let took = match variant {
            "out" => runtime.block_on(w1_round(variant)),
            _ => runtime.block_on(async { tokio::spawn(w1_round(variant)).await.unwrap() }),
        };
        if round >= WARM_UPS {
            ns.push(took);
        }
    }
    ns.sort_by(f64::total_cmp);
    let (ns, peak_mb) = (ns[ROUNDS / 2], status_kb("VmHWM") / 1024.0);
    println!("RESULT w1 tokio-{variant} ns_per_task={ns:.1} peak_mb={peak_mb:.1}");
}

// ---- w2 -------------------------------------------------------------------------------------------

async fn w2() {
    let permits = Arc::new(Semaphore::new(1));
    let hold = permits.clone().acquire_owned().await.unwrap();
    let before = status_kb("VmRSS");
    for _ in 0..TASKS {
        let permits = permits.clone();
        tokio::spawn(async move {
            let permit = permits.acquire().await.unwrap();
            empty();
            drop(permit);
        });
    }
    tokio::time::sleep(SETTLE).await;
    let bytes = (status_kb("VmRSS") - before) * 1024.0 / TASKS as f64;
    println!("RESULT w2 tokio bytes_each={bytes:.1}");
    drop(hold);
}

// ---- w3 -------------------------------------------------------------------------------------------

/// With `back` a task takes the permit before it spawns the next; else all of the flood is there at once.
fn w3_flood(runtime: &Runtime, back: bool) {
    let steps = burn_calibrate();
    let permits = Arc::new(Semaphore::new(FLOOD_LIMIT));
    if back {
        runtime.spawn(async move {
            for _ in 0..FLOOD {
                let permit = permits.clone().acquire_owned().await.unwrap();
                tokio::spawn(async move {
                    black_box(burn(steps));
                    drop(permit);
                });
            }
        });
        return;
    }
    for _ in 0..FLOOD {
        let permits = permits.clone();
        runtime.spawn(async move {
            let permit = permits.acquire().await.unwrap();
            black_box(burn(steps));
            drop(permit);
        });
    }
}

fn sorted_us(ns: &[AtomicU64]) -> Vec<f64> {
    let mut us: Vec<f64> = ns.iter().map(|n| n.load(Ordering::Relaxed) as f64 / 1e3).collect();
    us.sort_by(f64::total_cmp);
    us
}

fn w3(variant: &'static str) {
    let runtime = runtime();
    let permits = Arc::new(Semaphore::new(FLOOD_LIMIT));
    let left = Left::new(TICKS);
    let ns: Arc<Vec<_>> = Arc::new((0..TICKS).map(|_| AtomicU64::new(0)).collect());
    let tick_ns: Arc<Vec<_>> = Arc::new((0..TICKS).map(|_| AtomicU64::new(0)).collect());
    w3_flood(&runtime, variant == "back");
    let base = Instant::now();
    for i in 0..TICKS {
        let tick = base + TICK * (i as u32 + 1);
        std::thread::sleep(tick.saturating_duration_since(Instant::now()));
        let (permits, left) = (permits.clone(), left.clone());
        let (ns, tick_ns) = (ns.clone(), tick_ns.clone());
        let submitted = Instant::now();
        runtime.spawn(async move {
            let permit = permits.acquire().await.unwrap();
            let started = Instant::now();
            ns[i].store((started - submitted).as_nanos() as u64, Ordering::Relaxed);
            tick_ns[i].store((started - tick).as_nanos() as u64, Ordering::Relaxed);
            drop(permit);
            left.done();
        });
    }
    runtime.block_on(left.wait());
    let (us, tick_us) = (sorted_us(&ns), sorted_us(&tick_ns));
    let p99 = TICKS * 99 / 100;
    println!(
        "RESULT w3 tokio-{variant} p50_us={:.1} p99_us={:.1} max_us={:.1} tick_p99_us={:.1}",
        us[TICKS / 2], us[p99], us[TICKS - 1], tick_us[p99]
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let variant: &'static str = Box::leak(args.get(2).cloned().unwrap_or_default().into_boxed_str());
    match args.get(1).map(String::as_str) {
        Some("w1") => w1(variant),
        Some("w2") => runtime().block_on(w2()),
        Some("w3") => w3(variant),
        _ => std::process::exit(2),
    }
    std::process::exit(0); // whatever still runs
}

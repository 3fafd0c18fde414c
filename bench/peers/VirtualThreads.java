// Java, 21 or later: a virtual thread per task, a fair semaphore per group. usage: VirtualThreads w1|w2|w3
// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

final class VirtualThreads {
    static final int TASKS = 1_000_000, GROUPS = 64, LIMIT = 4;
    static final int WARM_UPS = 5; // more than the others: the code is compiled as it runs
    static final int ROUNDS = 3;
    static final int FLOOD = 200_000, FLOOD_LIMIT = 2, TICKS = 1000, TICK_NS = 2_000_000;

    static volatile long sink;

    static double statusKb(String key) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith(key + ":"))
                return Double.parseDouble(line.replaceAll("[^0-9]", ""));
        return 0;
    }

    static long burn(long steps) {
        long x = steps | 1;
        for (long i = 0; i < steps; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    /** Steps that take 50 us. */
    static long burnCalibrate() {
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 400; i++) {
            long begin = System.nanoTime();
            sink = burn(200_000);
            best = Math.min(best, System.nanoTime() - begin);
        }
        return 200_000L * 50_000L / best;
    }

    static void print(String format, Object... args) {
        System.out.println("RESULT " + String.format(Locale.ROOT, format, args));
        System.out.flush();
    }

    static double w1Round(Semaphore[] group) throws InterruptedException {
        CountDownLatch left = new CountDownLatch(TASKS);
        long begin = System.nanoTime();
        for (int i = 0; i < TASKS; i++) {
            Semaphore permits = group[i % GROUPS];
            Thread.startVirtualThread(() -> {
                permits.acquireUninterruptibly();
                permits.release();
                left.countDown();
            });
        }
        left.await();
        return (System.nanoTime() - begin) / (double) TASKS;
    }

    static void w1() throws Exception {
        Semaphore[] group = new Semaphore[GROUPS];
        double[] ns = new double[ROUNDS];
        Arrays.setAll(group, i -> new Semaphore(LIMIT, true));
        for (int round = -WARM_UPS; round < ROUNDS; round++) {
            double took = w1Round(group);
            if (round >= 0)
                ns[round] = took;
        }
        Arrays.sort(ns);
        print("w1 java-vt ns_per_task=%.1f peak_mb=%.1f", ns[ROUNDS / 2], statusKb("VmHWM") / 1024);
    }

    static void w2() throws Exception {
        Semaphore permits = new Semaphore(1, true);
        double before = statusKb("VmRSS");
        permits.acquire();
        for (int i = 0; i < TASKS; i++)
            Thread.startVirtualThread(() -> {
                permits.acquireUninterruptibly();
                permits.release();
            });
        while (permits.getQueueLength() < TASKS)
            Thread.sleep(20);
        print("w2 java-vt bytes_each=%.1f", (statusKb("VmRSS") - before) * 1024 / TASKS);
    }

    static void w3() throws Exception {
        long steps = burnCalibrate();
        Semaphore a = new Semaphore(FLOOD_LIMIT, true), b = new Semaphore(FLOOD_LIMIT, true);
        CountDownLatch left = new CountDownLatch(TICKS);
        double[] us = new double[TICKS], tickUs = new double[TICKS];
        for (int i = 0; i < FLOOD; i++)
            Thread.startVirtualThread(() -> {
                a.acquireUninterruptibly();
                sink = burn(steps);
                a.release();
            });
        long next = System.nanoTime();
        for (int i = 0; i < TICKS; i++) {
            next += TICK_NS;
            for (long wait; (wait = next - System.nanoTime()) > 0;)
                LockSupport.parkNanos(wait);
            final int number = i;
            final long tick = next, submitted = System.nanoTime();
            Thread.startVirtualThread(() -> {
                b.acquireUninterruptibly();
                long started = System.nanoTime();
                us[number] = (started - submitted) / 1e3;
                tickUs[number] = (started - tick) / 1e3;
                b.release();
                left.countDown();
            });
        }
        left.await();
        Arrays.sort(us);
        Arrays.sort(tickUs);
        print("w3 java-vt p50_us=%.1f p99_us=%.1f max_us=%.1f tick_p99_us=%.1f", us[TICKS / 2],
              us[TICKS * 99 / 100], us[TICKS - 1], tickUs[TICKS * 99 / 100]);
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
        case "w1" -> w1();
        case "w2" -> w2();
        case "w3" -> w3();
        default -> Runtime.getRuntime().halt(2);
        }
        Runtime.getRuntime().halt(0); // whatever still runs
    }
}

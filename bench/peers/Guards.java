// Java's Semaphore for w5, fair and not.
// SPDX-License-Identifier: MIT
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;

public final class Guards {
    private static final int PERMITS = 4, CALLS = 2_000_000, WARM_UPS = 4, MEASURED = 5;

    private static void run(Semaphore semaphore) {
        for (int i = 0; i < CALLS; i++) {
            semaphore.acquireUninterruptibly();
            semaphore.release();
        }
    }

    private static double roundNs(Semaphore semaphore, int threads) throws InterruptedException {
        CountDownLatch go = new CountDownLatch(1);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                try {
                    go.await();
                } catch (InterruptedException e) {
                    return;
                }
                run(semaphore);
            });
            all[i].start();
        }
        Thread.sleep(5);
        long begin = System.nanoTime();
        go.countDown();
        for (Thread thread : all)
            thread.join();
        return (double) (System.nanoTime() - begin) / CALLS;
    }

    public static void main(String[] args) throws InterruptedException {
        for (boolean fair : new boolean[] { false, true })
            for (int threads = 1; threads <= 2; threads++) {
                Semaphore semaphore = new Semaphore(PERMITS, fair);
                double[] ns = new double[MEASURED];
                for (int i = -WARM_UPS; i < MEASURED; i++) {
                    double one = roundNs(semaphore, threads);
                    if (i >= 0)
                        ns[i] = one;
                }
                Arrays.sort(ns);
                System.out.printf(Locale.ROOT, "RESULT w5 %s bulkhead_ns_%d=%.2f%n",
                        fair ? "java-fair" : "java-unfair", threads, ns[MEASURED / 2]);
            }
    }
}

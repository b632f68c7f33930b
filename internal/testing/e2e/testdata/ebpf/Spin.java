// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

public final class Spin {
    private static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private static long sink;

    static void hotWork() {
        for (long end = threads.getCurrentThreadCpuTime() + 30_000_000; threads.getCurrentThreadCpuTime() < end; )
            for (int i = 0; i < 100_000; i++) sink += (long) i * i ^ sink;
    }

    static void coldWork() {
        for (long end = threads.getCurrentThreadCpuTime() + 10_000_000; threads.getCurrentThreadCpuTime() < end; )
            for (int i = 0; i < 100_000; i++) sink -= (long) i * i ^ sink;
    }

    public static void main(String[] args) throws InterruptedException {
        for (long end = System.nanoTime() + 180_000_000_000L; System.nanoTime() < end; ) {
            long began = System.nanoTime();
            hotWork();
            coldWork();
            Thread.sleep(3 * (System.nanoTime() - began) / 1_000_000);
        }
    }
}

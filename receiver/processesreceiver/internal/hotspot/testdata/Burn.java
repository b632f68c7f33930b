// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;

/** Burn computes, allocates, and waits for a lock until its standard input ends. */
public class Burn {
    static final Object lock = new Object();
    static volatile long sink;

    static void hot() {
        long x = sink;
        for (int i = 0; i < 5_000_000; i++) {
            x += x * 31 + i;
        }
        sink = x;
    }

    static void allocate() {
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            kept.add(new byte[10_000]);
        }
        sink += kept.size();
    }

    static void hold() {
        synchronized (lock) {
            pause(30);
        }
    }

    static void pause(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void repeat(Runnable work) {
        Thread thread = new Thread(() -> {
            while (true) {
                work.run();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        repeat(() -> {
            hot();
            allocate();
            pause(3);
        });
        repeat(Burn::hold);
        repeat(Burn::hold);
        System.out.println("ready");
        while (System.in.read() >= 0) {
            System.out.println("read");
        }
    }
}

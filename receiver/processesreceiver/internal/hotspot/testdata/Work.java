// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.File;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Work does the same again and again in one thread: it allocates, hashes, sorts, locks, and reads a file. For each byte of its standard
 * input it prints how often it has done so, and the processor time of that thread. */
public class Work {
    static final Object lock = new Object();
    static final Object[] kept = new Object[512];
    static volatile long done;
    static volatile long cpu;

    static void once(int n, RandomAccessFile file, byte[] buffer) throws Exception {
        Map<String, Integer> words = new HashMap<>();
        for (int i = 0; i < 300; i++) {
            synchronized (lock) {
                words.merge("word " + (n * 31 + i) % 200, i, Integer::sum);
            }
        }
        int[] numbers = new int[3000];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (n + i) * 0x9E3779B9;
        }
        Arrays.sort(numbers);
        file.seek(0);
        file.read(buffer);
        kept[n % kept.length] = words;
    }

    public static void main(String[] args) throws Exception {
        File path = File.createTempFile("work", null);
        path.deleteOnExit();
        RandomAccessFile file = new RandomAccessFile(path, "rw");
        byte[] buffer = new byte[4096];
        file.write(buffer);
        Thread worker = new Thread(() -> {
            try {
                for (int n = 0;; n++) {
                    once(n, file, buffer);
                    done = n + 1;
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println("ready");
        while (System.in.read() >= 0) {
            long before = done;
            System.out.println(before + " " + ManagementFactory.getThreadMXBean().getThreadCpuTime(worker.getId()));
        }
    }
}

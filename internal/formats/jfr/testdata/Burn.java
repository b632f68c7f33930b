// Computes in two threads, allocates and waits for a monitor, for as many milliseconds as its argument has.
public class Burn {
    static long sum;

    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + Long.parseLong(args[0]);
        Thread other = new Thread(() -> work(end), "worker");
        other.start();
        work(end);
        other.join();
        System.out.println(sum);
    }

    static void work(long end) {
        while (System.currentTimeMillis() < end) {
            compute();
        }
    }

    static synchronized void compute() {
        byte[] bytes = new byte[1 << 16];
        for (int i = 0; i < 1_000_000; i++) {
            sum += i ^ bytes[i & 0xffff];
        }
    }
}

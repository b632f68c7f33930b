import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

// Computes in two threads, allocates and waits for a monitor, for as many milliseconds as its argument has. Then it keeps objects, uses a
// file and a socket, and collects garbage.
public class Burn {
    static long sum;
    static List<byte[]> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + Long.parseLong(args[0]);
        Thread other = new Thread(() -> work(end), "worker");
        other.start();
        work(end);
        other.join();
        keep();
        file();
        socket();
        System.gc();
        System.out.println(sum + kept.size());
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

    static void keep() {
        for (int i = 0; i < 1000; i++) {
            kept.add(new byte[20_000]);
        }
    }

    static void file() throws Exception {
        File file = File.createTempFile("burn", null);
        try (FileOutputStream to = new FileOutputStream(file)) {
            for (int i = 0; i < 10; i++) {
                to.write(new byte[1000]);
            }
        }
        try (FileInputStream from = new FileInputStream(file)) {
            sum += drain(from);
        }
        file.delete();
    }

    static void socket() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
                Socket accepted = server.accept()) {
            OutputStream to = accepted.getOutputStream();
            to.write(new byte[5000]);
            accepted.shutdownOutput();
            sum += drain(client.getInputStream());
        }
    }

    static long drain(InputStream from) throws Exception {
        byte[] buffer = new byte[777];
        long bytes = 0;
        for (int n = from.read(buffer); n >= 0; n = from.read(buffer)) {
            bytes += n;
        }
        return bytes;
    }
}

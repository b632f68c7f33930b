// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// TestProcessesThatSIGQUITWouldEnd are refused before anything is done to them, and go on.
func TestProcessesThatSIGQUITWouldEnd(t *testing.T) {
	home := javas(t)[0]
	for _, option := range []string{"-Xrs", "-XX:+DisableAttachMechanism"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			process, java := start(t, home, user(), option)
			_, err := inspect(t, process)
			require.ErrorIs(t, err, ErrDisabled)
			require.ErrorContains(t, err, option)
			assert.NoError(t, java.Process.Signal(syscall.Signal(0)))
		})
	}
	sleep := exec.Command("sleep", "60")
	require.NoError(t, sleep.Start())
	defer func() { _, _, _ = sleep.Process.Kill(), sleep.Wait(), 0 }()
	process, err := target.Open("/proc", int64(sleep.Process.Pid))
	require.NoError(t, err)
	defer process.Close()
	_, err = inspect(t, process)
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestProgramsThatAreNotHotSpot are left alone, although they have loaded what a JVM has: OpenJ9, and a program in Go,
// which handles SIGQUIT by ending.
func TestProgramsThatAreNotHotSpot(t *testing.T) {
	program := programtest.Start(t, programtest.Build(t, []string{"CGO_ENABLED=0"}))
	process, err := target.Open("/proc", int64(program.PID))
	require.NoError(t, err)
	defer process.Close()
	library := func(name string) target.Mapping {
		return target.Mapping{IsExecutable: true, Path: "/opt/java/lib/" + name}
	}
	_, err = Inspect(process, []target.Mapping{library("server/libjvm.so")})
	require.ErrorIs(t, err, ErrDisabled)
	_, err = Inspect(process, []target.Mapping{library("j9vm/libjvm.so"), library("default/libj9vm29.so")})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "OpenJ9")
	program.Next(t) // it goes on
}

// TestRootOfTheJVM: links in the file system of the JVM lead nowhere else.
func TestRootOfTheJVM(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root of a process")
	}
	outside, root := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	program := profiletest.FileBytes(t, programtest.Build(t, []string{"CGO_ENABLED=0"}))
	require.NoError(t, os.WriteFile(filepath.Join(root, "program"), program, 0o700))
	command := exec.Command("/program", "/")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	collectortest.StartProgram(t, command)
	process, err := target.Open("/proc", int64(command.Process.Pid))
	require.NoError(t, err)
	defer process.Close()
	vm := &VM{PID: 1}
	for _, link := range []string{outside, "../../../../../../../.." + outside, "/proc/1/root" + outside,
		fmt.Sprintf("/proc/%d/cwd", os.Getpid())} {
		require.NoError(t, os.Symlink(link, filepath.Join(root, "tmp")))
		err := vm.with(process, time.Second, func(s *session) error {
			_, err := s.readFile("secret", allocate)
			return err
		})
		require.ErrorIs(t, err, ErrNoRecorder, "%s: not even the folder is found", link)
		require.NoError(t, os.Remove(filepath.Join(root, "tmp")))
	}
}

// TestOthersRecordingsStay: ours begins and ends beside another one.
func TestOthersRecordingsStay(t *testing.T) {
	homes := javas(t)
	process, _ := start(t, homes[len(homes)-1], 0)
	vm, err := inspect(t, process)
	require.NoError(t, err)
	execute := func(command string) (answer string) {
		require.NoError(t, vm.with(process, patience, func(s *session) (err error) {
			answer, err = s.execute(command)
			return err
		}))
		return answer
	}
	execute("JFR.start name=theirs settings=default")
	recording := &Recording{VM: vm, Timeout: patience}
	require.NoError(t, recording.Start(process, &settings, time.Minute))
	assert.Contains(t, execute("JFR.check"), "name=theirs")
	_, err = recording.Dump(process, allocate)
	require.NoError(t, err)
	require.NoError(t, recording.Stop(process))
	assert.Contains(t, execute("JFR.check"), "name=theirs")
	assert.NotContains(t, execute("JFR.check"), recordingName)
}

// TestAHangingJVM costs one time-out: stopped before it listens, and while it is asked.
func TestAHangingJVM(t *testing.T) {
	process, java := start(t, javas(t)[0], user())
	vm, err := inspect(t, process)
	require.NoError(t, err)
	recording := &Recording{VM: vm, Timeout: 300 * time.Millisecond}
	hang := func() {
		require.NoError(t, java.Process.Signal(syscall.SIGSTOP))
		began := time.Now()
		require.ErrorIs(t, recording.Start(process, &settings, time.Minute), ErrNoAnswer)
		assert.Less(t, time.Since(began), 5*time.Second)
		_, err := inspect(t, process)
		require.ErrorIs(t, err, ErrNoAnswer, "a stopped process is not asked at all")
		require.NoError(t, java.Process.Signal(syscall.SIGCONT))
	}
	hang()
	recording.Timeout = patience
	require.NoError(t, recording.Start(process, &settings, time.Minute), "it goes on when the JVM does")
	recording.Timeout = 300 * time.Millisecond
	hang()
}

// hostile is this process as a JVM that answers what it likes, with a folder as its /tmp.
func hostile(t *testing.T) (dir string, with func(func(*session) error) error) {
	dir = t.TempDir()
	tmp, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(tmp) })
	vm := &VM{UID: os.Geteuid(), GID: os.Getegid(), PID: 7}
	return dir, func(fn func(*session) error) error {
		return fn(&session{vm: vm, tmp: tmp, deadline: time.Now().Add(300 * time.Millisecond)})
	}
}

// answering listens as a JVM and answers each command.
func answering(t *testing.T, dir string, answer func(net.Conn)) {
	listener, err := net.Listen("unix", filepath.Join(dir, ".java_pid7"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 4<<10))
			answer(connection)
			_ = connection.Close()
		}
	}()
}

// A JVM that is late writes its file when nobody waits for it any more. The next exchange removes it.
func TestLateDumps(t *testing.T) {
	vm := &VM{UID: os.Geteuid(), GID: os.Getegid(), PID: int64(os.Getpid())}
	listener, err := net.Listen("unix", fmt.Sprintf("/tmp/.java_pid%d", vm.PID))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	names := make(chan string)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			command := make([]byte, 4<<10)
			n, _ := connection.Read(command)
			_, name, _ := strings.Cut(strings.TrimRight(string(command[:n]), "\x00"), "filename=")
			names <- name // a moment before it is written
			_ = os.WriteFile(name, chunk(chunkHeader, 1, 1, ""), 0o600)
			_, _ = connection.Write([]byte("0\n"))
			_ = connection.Close()
		}
	}()
	own, err := target.Open("/proc", vm.PID)
	require.NoError(t, err)
	t.Cleanup(own.Close)
	recording := &Recording{VM: vm, Timeout: 100 * time.Millisecond}
	_, err = recording.Dump(own, allocate)
	require.ErrorIs(t, err, ErrNoAnswer)
	late := <-names
	require.Eventually(t, func() bool { _, err := os.Stat(late); return err == nil }, patience, time.Millisecond)
	next := &Recording{VM: vm, Timeout: patience}
	next.Replace(recording)
	go func() { <-names }()
	_, err = next.Dump(own, allocate)
	require.NoError(t, err)
	require.NoFileExists(t, late)
	require.Empty(t, next.late)
}

func TestHostileAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(net.Conn)
		want   error
	}{
		"none":      {func(net.Conn) { time.Sleep(time.Second) }, ErrNoAnswer},
		"no number": {func(c net.Conn) { _, _ = c.Write([]byte("hello\n")) }, ErrMalformed},
		"endless": {func(c net.Conn) {
			for err := error(nil); err == nil; {
				_, err = c.Write(make([]byte, 64<<10))
			}
		}, ErrMalformed},
		"slow": {func(c net.Conn) {
			for err := error(nil); err == nil; time.Sleep(50 * time.Millisecond) {
				_, err = c.Write([]byte("0"))
			}
		}, ErrNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, with := hostile(t)
			answering(t, dir, test.answer)
			require.ErrorIs(t, with(func(s *session) error {
				_, err := s.execute("JFR.check")
				return err
			}), test.want)
		})
	}
}

// TestHostileFiles: what has the name of a socket or of a recording is not followed, waited for, or believed.
func TestHostileFiles(t *testing.T) {
	dir, with := hostile(t)
	other, _ := hostile(t)
	answering(t, other, func(net.Conn) { t.Error("connected to another socket") })
	require.NoError(t, os.Symlink(filepath.Join(other, ".java_pid7"), filepath.Join(dir, ".java_pid7")))
	secret := filepath.Join(other, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, ".attach_pid7")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("recording"), 0o600))
	require.NoError(t, with(func(s *session) error {
		_, err := s.execute("JFR.check")
		require.Error(t, err)
		_, err = s.create("link")
		require.ErrorIs(t, err, unix.EEXIST)
		for _, name := range []string{"link", "fifo", "."} {
			_, err := s.readFile(name, allocate)
			require.Error(t, err, name)
		}
		content, err := s.readFile("file", allocate)
		require.NoError(t, err)
		assert.Equal(t, "recording", string(content))
		_, err = s.readFile("file", func(int64) ([]byte, error) { return nil, assert.AnError })
		require.ErrorIs(t, err, assert.AnError)
		s.vm = &VM{UID: s.vm.UID + 1}
		_, err = s.readFile("file", allocate)
		require.ErrorIs(t, err, ErrMalformed, "of another user")
		return nil
	}))
	content := profiletest.FileBytes(t, secret)
	assert.Equal(t, "secret", string(content))
}

// TestAsUser: the rights of the thread are those of the user, and those of the process stay.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorIs(t, asUser(65534, 65534, func() error {
		groups, err := unix.Getgroups()
		assert.NoError(t, err)
		assert.Empty(t, groups)
		_, err = os.ReadFile(file)
		return err
	}), os.ErrPermission)
	for range 20 {
		_, err := os.ReadFile(file)
		require.NoError(t, err)
	}
}

func chunk(size, start, duration uint64, body string) []byte {
	b := make([]byte, chunkHeader)
	copy(b, chunkMagic)
	binary.BigEndian.PutUint64(b[sizeAt:], size)
	binary.BigEndian.PutUint64(b[startNanosAt:], start)
	binary.BigEndian.PutUint64(b[durationAt:], duration)
	return append(b, body...)
}

func TestNewChunks(t *testing.T) {
	first, second := chunk(chunkHeader+1, 100, 50, "a"), chunk(chunkHeader+2, 150, 60, "bc")
	both := append(append([]byte{}, first...), second...)
	for since, want := range map[uint64]string{0: string(both), 100: string(both), 101: string(second),
		150: string(second), 151: ""} {
		chunks, until, err := newChunks(both, since)
		require.NoError(t, err)
		assert.Equal(t, want, string(chunks), fmt.Sprint(since))
		assert.Equal(t, max(since, map[bool]uint64{true: 210, false: 0}[want != ""]), until)
	}
	for _, bad := range [][]byte{
		both[:len(both)-1], []byte("x"), chunk(1<<40, 0, 0, ""), chunk(0, 0, 0, ""), chunk(chunkHeader, 1<<63, 0, ""),
	} {
		_, until, err := newChunks(bad, 7)
		require.ErrorIs(t, err, ErrMalformed)
		assert.EqualValues(t, 7, until)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("0\nStarted recording 1."))
	f.Add([]byte("1\nno"))
	f.Add(chunk(chunkHeader+1, 100, 50, "a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var chunks []byte
		profiletest.RequireCost(t, profiletest.BoundOf(len(data), 1<<20, 8), func() {
			if _, err := parseAnswer(data); err != nil {
				_ = err.Error()
			}
			chunks, _, _ = newChunks(data, 0)
		})
		require.LessOrEqual(t, len(chunks), len(data))
	})
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

const (
	// maxAnswerBytes bounds an answer. Those to our commands have a few hundred bytes, and a line for each recording.
	maxAnswerBytes = 256 << 10
	// pollInterval is how often a JVM that was told to listen is looked at.
	pollInterval = 20 * time.Millisecond
)

// session is an open JVM: its /tmp, and until when it must have answered.
type session struct {
	vm       *VM
	target   *target.Target
	tmp      int
	deadline time.Time
}

// with calls fn as the JVM's user, with its /tmp open.
func (vm *VM) with(t *target.Target, timeout time.Duration, fn func(*session) error) error {
	root, err := t.OpenPath("root")
	if err != nil {
		return fmt.Errorf("open the JVM's file system: %w", err)
	}
	defer func() { _ = root.Close() }()
	// As the JVM resolves it: links that lead elsewhere stay within its root.
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	tmp, err := unix.Openat2(int(root.Fd()), "tmp", &how)
	if err != nil {
		return fmt.Errorf("open the JVM's /tmp for its socket: %w: %w", ErrNoRecorder, err)
	}
	defer func() { _ = unix.Close(tmp) }()
	return asUser(vm.UID, vm.GID, func() error {
		return fn(&session{vm: vm, target: t, tmp: tmp, deadline: time.Now().Add(timeout)})
	})
}

// execute sends a command and returns the answer.
func (s *session) execute(command string) (string, error) {
	socket, err := s.listen()
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(socket) }()
	answer, err := s.exchange(socket, []byte("1\x00jcmd\x00"+command+"\x00\x00\x00"))
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if err != nil {
		return "", err
	}
	return parseAnswer(answer)
}

// exchange sends a request to a socket that is open as a path: whatever takes its name meanwhile is not connected to.
// It reads the answer up to the end, which the JVM makes when the command is done.
func (s *session) exchange(socket int, request []byte) ([]byte, error) {
	dialer := net.Dialer{Deadline: s.deadline} // it connects in this thread
	connection, err := dialer.Dial("unix", fmt.Sprintf("/proc/self/fd/%d", socket))
	if err != nil {
		return nil, fmt.Errorf("connect to the JVM: %w", err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(s.deadline); err != nil {
		return nil, err
	}
	if _, err := connection.Write(request); err != nil {
		return nil, fmt.Errorf("send a command to the JVM: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(connection, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the JVM's answer: %w", err)
	}
	if len(answer) > maxAnswerBytes {
		return nil, fmt.Errorf("an answer of more than %d bytes: %w", maxAnswerBytes, ErrMalformed)
	}
	return answer, nil
}

// parseAnswer returns the text of an answer. A command that fails has another number than 0.
func parseAnswer(answer []byte) (string, error) {
	line, text, _ := bytes.Cut(answer, []byte("\n"))
	code, err := strconv.Atoi(string(line))
	if err != nil {
		return "", fmt.Errorf("an answer of %d bytes without a number: %w", len(answer), ErrMalformed)
	}
	if code != 0 {
		return "", &commandError{text: string(text)}
	}
	return string(text), nil
}

// commandError is the JVM's answer to a failed command.
type commandError struct{ text string }

func (e *commandError) Error() string { return "the JVM answered: " + shortened(e.text) }

// listen returns the JVM's socket, opened as a path, after it has told the JVM to open it if there is none.
func (s *session) listen() (int, error) {
	socket, err := s.openSocket()
	if !errors.Is(err, unix.ENOENT) {
		return socket, err
	}
	name := fmt.Sprintf(".attach_pid%d", s.vm.PID)
	file, err := s.create(name)
	switch {
	case err == nil:
		_ = unix.Close(file)
		defer func() { _ = unix.Unlinkat(s.tmp, name, 0) }()
	case !errors.Is(err, unix.EEXIST): // somebody else attaches
		return -1, err
	}
	// The directory of the process stands for it: another one with its number does not get the signal.
	if err := unix.PidfdSendSignal(s.target.Fd(), unix.SIGQUIT, nil, 0); err != nil {
		return -1, fmt.Errorf("signal the JVM to listen: %w", err)
	}
	for time.Now().Before(s.deadline) {
		time.Sleep(pollInterval)
		if socket, err = s.openSocket(); !errors.Is(err, unix.ENOENT) {
			return socket, err
		}
	}
	return -1, fmt.Errorf("it has not opened /tmp/.java_pid%d after SIGQUIT: %w", s.vm.PID, ErrNoAnswer)
}

// openSocket opens the JVM's socket as a path, without following a link.
func (s *session) openSocket() (int, error) {
	name := fmt.Sprintf(".java_pid%d", s.vm.PID)
	fd, err := unix.Openat(s.tmp, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /tmp/%s of the JVM: %w", name, err)
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil && (stat.Mode&unix.S_IFMT != unix.S_IFSOCK || int(stat.Uid) != s.vm.UID) {
		err = fmt.Errorf("/tmp/%s is not a socket of the JVM: %w", name, ErrMalformed)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// create creates a file in /tmp, which must not exist.
func (s *session) create(name string) (int, error) {
	fd, err := unix.Openat(s.tmp, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("write to the JVM's /tmp: mount a writable /tmp with free space: %w: %w", ErrNoRecorder, err)
	}
	return fd, err
}

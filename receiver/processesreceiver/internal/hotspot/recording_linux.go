// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// recordingName is that of our recordings. Others are never touched.
const recordingName = "otelcol-profiles"

// ErrEnded is returned for a recording that somebody else has ended.
var ErrEnded = errors.New("the recording was ended")

// Recording is our recording of a JVM.
type Recording struct {
	VM *VM
	// Timeout bounds each exchange with the JVM.
	Timeout time.Duration
	// since is when the last chunk that was read ended, in nanoseconds since 1970, and before what it was at the last
	// dump.
	since, before uint64
	// late are the files of dumps that did not end in time: the JVM writes them later.
	late []string
}

// maxLate bounds the files that are remembered: the JVM executes one command after another.
const maxLate = 64

// with calls fn as VM.with does, after it has removed the files of late dumps.
func (r *Recording) with(t *target.Target, fn func(*session) error) error {
	return r.VM.with(t, r.Timeout, func(s *session) error {
		r.late = slices.DeleteFunc(r.late, func(name string) bool { return unix.Unlinkat(s.tmp, name, 0) == nil })
		return fn(s)
	})
}

// Replace has the recording remove what another one of the JVM has left.
func (r *Recording) Replace(other *Recording) { r.late = other.late }

// Start starts the recording, of which the JVM keeps the last maxAge. One that was left from before is ended first: its
// settings may be others.
func (r *Recording) Start(t *target.Target, settings *Settings, maxAge time.Duration) error {
	return r.with(t, func(s *session) error {
		found, err := s.execute("JFR.check")
		if err != nil {
			return noRecorder(err)
		}
		if strings.Contains(found, "name="+recordingName) {
			if _, err := s.execute("JFR.stop name=" + recordingName); err != nil {
				return err
			}
		}
		name := temporaryName(".jfc")
		if err := s.write(name, settings.file()); err != nil {
			return err
		}
		defer func() { _ = unix.Unlinkat(s.tmp, name, 0) }()
		answer, err :=
			s.execute(fmt.Sprintf("JFR.start name=%s settings=/tmp/%s disk=true dumponexit=false maxage=%ds maxsize=%d",
				recordingName, name, int64(maxAge/time.Second), settings.MaxRecordingBytes))
		if err == nil && !strings.Contains(answer, "Started recording") {
			err = &commandError{text: answer}
		}
		return noRecorder(err)
	})
}

// noRecorder is in the answers of a JVM that has no Flight Recorder, or cannot start it.
func noRecorder(err error) error {
	if failed, ok := errors.AsType[*commandError](err); ok {
		return fmt.Errorf("%w: %w", ErrNoRecorder, failed)
	}
	return err
}

// Dump has the recording written, and returns its new chunks. read is called with the size of the file, which it may
// refuse, and returns the buffer for it.
func (r *Recording) Dump(t *target.Target, allocate func(size int64) ([]byte, error)) (chunks []byte, err error) {
	var whole []byte
	err = r.with(t, func(s *session) (err error) {
		name := temporaryName(".jfr")
		defer func() {
			if unlinkErr := unix.Unlinkat(s.tmp, name, 0); unlinkErr != nil && errors.Is(err, ErrNoAnswer) &&
				len(r.late) < maxLate {
				r.late = append(r.late, name)
			}
		}()
		answer, err := s.execute(fmt.Sprintf("JFR.dump name=%s filename=/tmp/%s", recordingName, name))
		switch failed, isFailed := errors.AsType[*commandError](err); {
		case isFailed && isEnded(failed.text), err == nil && isEnded(answer):
			return ErrEnded
		case isFailed:
			return fmt.Errorf("%w: %w", ErrNoRecorder, failed)
		case err != nil:
			return err
		}
		if whole, err = s.readFile(name, allocate); errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%w: %w", ErrNoRecorder, &commandError{text: answer})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.before = r.since
	chunks, r.since, err = newChunks(whole, r.since)
	return chunks, err
}

// Again has the next dump return the chunks of the last one, too, as long as the JVM keeps them.
func (r *Recording) Again() { r.since = r.before }

// isEnded reports whether an answer means that the JVM does not have our recording.
func isEnded(answer string) bool {
	return strings.Contains(answer, "Could not find") || strings.Contains(answer, "No recordings to dump")
}

// Stop ends the recording.
func (r *Recording) Stop(t *target.Target) error {
	return r.with(t, func(s *session) error {
		_, err := s.execute("JFR.stop name=" + recordingName)
		return err
	})
}

// temporaryName returns a name that nobody can know in advance.
func temporaryName(extension string) string { return recordingName + "-" + rand.Text() + extension }

func (s *session) write(name, content string) error {
	fd, err := s.create(name)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = unix.Unlinkat(s.tmp, name, 0)
		return fmt.Errorf("write to the JVM's /tmp: %w: %w", ErrNoRecorder, err)
	}
	return nil
}

// readFile reads a regular file of the JVM's user.
func (s *session) readFile(name string, allocate func(size int64) ([]byte, error)) ([]byte, error) {
	fd, err := unix.Openat(s.tmp, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { _ = file.Close() }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || int(stat.Uid) != s.vm.UID {
		return nil, fmt.Errorf("the recording is not a regular file of the JVM: %w", ErrMalformed)
	}
	buffer, err := allocate(stat.Size)
	if err != nil {
		return nil, err
	}
	if n, err := io.ReadFull(file, buffer); err != nil {
		return nil, fmt.Errorf("read the recording, %d of %d bytes: %w: %w", n, len(buffer), ErrMalformed, err)
	}
	return buffer, nil
}

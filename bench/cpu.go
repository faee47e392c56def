package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/PID/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuOf sums the CPU time, user and system, that processes of this machine have taken. /proc/PID/schedstat tells the
// same as stat's utime + stime, in nanoseconds instead of ticks; kernels without it leave the ticks.
func cpuOf(pids []uint32) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		d, err := schedstat(pid)
		if err != nil {
			if d, err = stat(pid); err != nil {
				return 0, fmt.Errorf("no CPU time of backends: %w", err)
			}
		}
		sum += d
	}
	return sum, nil
}

func schedstat(pid uint32) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	ns, err := strconv.ParseInt(string(first), 10, 64)
	if err == nil && ns == 0 {
		err = errors.New("schedstat counts nothing")
	}
	return time.Duration(ns), err
}

func stat(pid uint32) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command's name, field 2, ends at the last ")"; utime and stime are fields 14 and 15.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

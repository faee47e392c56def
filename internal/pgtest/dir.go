package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	dirPrefix = "rea-pgtest-"
	lockName  = "lock"
)

// makeDir makes the server's folder. Whoever holds the returned file owns the folder.
func makeDir() (string, *os.File, error) {
	dir, err := os.MkdirTemp(tempDir(), dirPrefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(dir, lockName))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	tryLock(lock)
	if err := giveAway(dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("pgtest: %w", err), lock.Close(), os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// memory is a file system in memory on Linux. Copying databases there takes a tenth of the
// time, where a disk is slow or busy with other tests.
const memory = "/dev/shm"

// roomy is what a test run may need: some hundred databases of 10 MB, and the write-ahead log.
const roomy = 4 << 30

// tempDir is the folder that TMPDIR names, else memory if it is roomy, else the system's
// folder for temporary files. It is /tmp where the server's user could not walk into that.
func tempDir() string {
	dir := os.TempDir()
	if os.Getenv("TMPDIR") == "" && freeBytes(memory) >= roomy {
		dir = memory
	}
	if os.Geteuid() != 0 {
		return dir
	}
	for parent := dir; ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if parent == filepath.Dir(parent) {
			return dir
		}
	}
}

// sweep removes the folders of runs that were killed. Errors are left to the next
// sweep: a folder may belong to another user, or go away while we look.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(tempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		// A young folder may be one that has not been locked yet, or whose server is just going down.
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if tryLock(lock) {
			_ = os.RemoveAll(dir)
		}
		lock.Close()
	}
}

package pgtest

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes make a child that a Ctrl-C on the terminal does not reach, that stops when we die,
// and that is not root, because postgres refuses to be.
func attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if uid, gid, drop := servant(); drop {
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}

// servant is the user that runs the server when we are root.
func servant() (uid, gid int, drop bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if errors.Join(err, err2) == nil && uid != 0 {
			return uid, gid, true
		}
	}
	return 65534, 65534, true
}

// giveAway hands dir to the user that runs the server.
func giveAway(dir string) error {
	if uid, gid, drop := servant(); drop {
		return os.Chown(dir, uid, gid)
	}
	return nil
}

// tryLock reports whether this process now holds f. The lock ends with the process.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func freeBytes(dir string) uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}

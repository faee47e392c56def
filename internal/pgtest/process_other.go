//go:build !linux

package pgtest

import (
	"os"
	"syscall"
)

// attributes are the system's own: only Linux can tie a server to the life of its parent.
func attributes() *syscall.SysProcAttr { return nil }

func giveAway(string) error { return nil }

// tryLock never succeeds, so sweep leaves every folder alone.
func tryLock(*os.File) bool { return false }

func freeBytes(string) uint64 { return 0 }

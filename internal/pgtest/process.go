package pgtest

import (
	"os/exec"
	"runtime"
)

// process is a running postgres. done closes when it has ended.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts cmd from an operating system thread that lives as long as the command: Linux
// sends the death signal of attributes when the starting thread ends, not the whole program.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			// How it ended does not matter: whoever waits knows from the log.
			_ = cmd.Wait()
		}
	}()
	return p, <-started
}

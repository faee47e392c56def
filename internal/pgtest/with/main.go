// Command with runs another command beside a throw-away PostgreSQL server:
//
//	go run ./internal/pgtest/with -- go test ./...
//
// The command finds the server in REA_TEST_DATABASE_URL. Where that is set already, it runs on that server.
// With -install, PostgreSQL is first installed from Debian's packages if there is none and we are root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/realtime-event-archive/rea/internal/pgtest"
)

func main() {
	mayInstall := flag.Bool("install", false, "install PostgreSQL with apt-get where it is missing and we are root")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: with [-install] -- command [argument ...]")
		os.Exit(2)
	}
	code, err := run(flag.Args(), *mayInstall)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string, mayInstall bool) (code int, err error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if os.Getenv(pgtest.EnvURL) == "" {
		server, err := start(mayInstall)
		if err != nil {
			return 1, err
		}
		defer func() {
			if stop := server.Stop(); stop != nil {
				code, err = max(code, 1), errors.Join(err, stop)
			}
		}()
		os.Setenv(pgtest.EnvURL, server.URL("postgres"))
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return wait(cmd.Process, ended, signals)
}

func start(mayInstall bool) (*pgtest.Server, error) {
	if _, err := pgtest.Binaries(""); errors.Is(err, pgtest.ErrNoServer) && mayInstall {
		if err := install(); err != nil {
			return nil, fmt.Errorf("%w (%w)", pgtest.ErrNoServer, err)
		}
	}
	return pgtest.Start(context.Background(), pgtest.Options{})
}

// wait passes signals on until the command has ended, and gives it ten seconds after the first.
func wait(p *os.Process, ended <-chan error, signals <-chan os.Signal) (int, error) {
	var late <-chan time.Time
	for {
		select {
		case sig := <-signals:
			// Fails only when the command has ended, which the next round sees.
			_ = p.Signal(sig)
			if late == nil {
				late = time.After(10 * time.Second)
			}
		case <-late:
			_ = p.Kill()
		case err := <-ended:
			return exitCode(err)
		}
	}
}

// exitCode follows the shell: 128 + n for a command that died of signal n.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 1, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

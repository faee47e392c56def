// Command rea is the command line of the Real-time Event Archive. See package internal/cli.
//
//	rea demo
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/realtime-event-archive/rea/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first Ctrl-C asks the command to end, a second one ends the process
	code := cli.Run(ctx, os.Args[1:], cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv})
	stop()
	os.Exit(code)
}

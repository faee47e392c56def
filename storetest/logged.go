package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// logged keeps what an archive warns of.
type logged struct {
	mu       sync.Mutex
	warnings []string
}

func (l *logged) logger() *slog.Logger { return slog.New(l) }

func (l *logged) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.warnings)
}

func (l *logged) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.warnings) == 0 {
		return ""
	}
	return l.warnings[len(l.warnings)-1]
}

// Enabled is for slog, as the methods that follow.
func (l *logged) Enabled(context.Context, slog.Level) bool { return true }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%s", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings = append(l.warnings, b.String())
	return nil
}

func (l *logged) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *logged) WithGroup(string) slog.Handler { return l }

package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// warnings writes what the libraries log as lines for people.
type warnings struct {
	app   *app
	attrs []slog.Attr
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.app.warned++
	text := strings.TrimPrefix(r.Message, "rea: ")
	add := func(attr slog.Attr) bool {
		text += ", " + attr.Key + " " + attr.Value.String()
		return true
	}
	for _, attr := range w.attrs {
		add(attr)
	}
	r.Attrs(add)
	w.app.say("warning: " + safe(oneLine.Replace(w.app.withoutSecrets(text))))
	return nil
}

func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w.app, slices.Concat(w.attrs, attrs)}
}

func (w *warnings) WithGroup(string) slog.Handler { return w }

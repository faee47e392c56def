package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/realtime-event-archive/rea"
)

// warnings writes what the libraries log as lines for people.
type warnings struct {
	app   *app
	talks bool      // it says what goes well, too
	timed bool      // with the time
	heard *sync.Map // nil, or names of projections that something was said about
	attrs []slog.Attr
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || w.talks && level >= slog.LevelInfo
}

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.app.warned++
	text := strings.TrimPrefix(r.Message, "rea: ")
	add := func(attr slog.Attr) bool {
		if w.heard != nil && (attr.Key == "projection" || attr.Key == "what") {
			w.heard.Store(strings.TrimPrefix(attr.Value.String(), "projection "), true)
		}
		text += ", " + attr.Key + " " + attr.Value.String()
		return true
	}
	for _, attr := range w.attrs {
		add(attr)
	}
	r.Attrs(add)
	kind := "warning: "
	if r.Level < slog.LevelWarn {
		kind = ""
	}
	line := kind + safe(oneLine.Replace(w.app.withoutSecrets(text)))
	if w.timed {
		line = rea.FormatTime(r.Time) + " " + line
	}
	w.app.say(line)
	return nil
}

func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w.app, w.talks, w.timed, w.heard, slices.Concat(w.attrs, attrs)}
}

func (w *warnings) WithGroup(string) slog.Handler { return w }

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/transfer"
)

type appendFlags struct {
	data, batch, expect, actor, reason, correlation, key, metadata string
	version                                                        int
	correction                                                     bool
}

func (a *app) appendCommand() *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append TYPE ID {EVENT | --batch FILE}",
		Short: "Store an event, or a batch of events, of one aggregate",
		Long: `Store an event of one aggregate, or with --batch several, all or nothing. TYPE/ID as one
word is the same as TYPE ID.

--data, --metadata and --batch take JSON, @FILE, or - for standard input. A batch is a JSON
array of {"event_type", "event_version", "payload"}, of which the type is required.
A repeat with the same --key and the same content stores nothing and gives the first result.`,
		Example: `  rea append order 10086 PaymentReceived --data '{"amount": 9980}' --expect 2 --actor 42 --reason webhook --key req-9
  rea append order 10086 NoteAdded --data @note.json
  echo '[{"event_type": "OrderPlaced"}, {"event_type": "PaymentReceived"}]' | rea append order 10087 --batch - --expect none`,
		Args: appendArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.append(cmd, splitRef(args), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "payload, a JSON object ({})")
	flags.StringVar(&f.batch, "batch", "", "events, a JSON array, in place of EVENT")
	flags.IntVar(&f.version, "version", 0, "version of the payload's form (1)")
	flags.StringVar(&f.expect, "expect", "", "last seq that you believe in; none: the aggregate must not exist")
	flags.StringVar(&f.actor, "actor", "", "who does it")
	flags.StringVar(&f.reason, "reason", "", "why")
	flags.StringVar(&f.correlation, "correlation", "", "id that groups events of several aggregates")
	flags.StringVar(&f.key, "key", "", "idempotency key: the same request is stored once")
	flags.StringVar(&f.metadata, "metadata", "", "anything else, a JSON object")
	flags.BoolVar(&f.correction, "correction", false, "a step that is otherwise illegal, on purpose; needs --actor and --reason")
	return cmd
}

func appendArgs(cmd *cobra.Command, args []string) error {
	flags, n := cmd.Flags(), len(splitRef(args))
	switch {
	case !flags.Changed("batch") && n == 2:
		return usagef("EVENT is missing: %s TYPE ID EVENT, or --batch with several events", cmd.CommandPath())
	case !flags.Changed("batch"):
		return between(3, 3)(cmd, splitRef(args))
	case flags.Changed("data"), flags.Changed("version"):
		return usagef("--batch holds whole events, with their payloads and versions: --data and --version are for a single EVENT")
	case n == 3:
		return usagef("--batch holds the events: leave EVENT out")
	}
	return between(2, 2)(cmd, splitRef(args))
}

func (a *app) append(cmd *cobra.Command, args []string, f appendFlags) error {
	ctx := cmd.Context()
	options, err := a.appendOptions(ctx, cmd, f)
	if err != nil {
		return err
	}
	events, err := a.newEvents(ctx, cmd, args, f)
	if err != nil {
		return err
	}
	role := "writer"
	if f.correction {
		role = "operator"
	}
	archive, _, err := a.open(ctx, opening{role: role})
	if err != nil {
		return err
	}
	defer archive.Close()
	var receipt rea.Receipt
	err = archive.Do(ctx, func(tx *rea.Tx) error {
		receipt, err = tx.With(options...).Append(ctx, rea.Ref{Type: args[0], ID: args[1]}, events)
		return err
	})
	if err != nil {
		return err
	}
	return a.printReceipt(receipt, cmd.Flags().Changed("batch"))
}

func (a *app) appendOptions(ctx context.Context, cmd *cobra.Command, f appendFlags) ([]rea.Option, error) {
	var options []rea.Option
	for _, text := range []struct {
		flag, value string
		option      func(string) rea.Option
	}{
		{"actor", f.actor, rea.By}, {"reason", f.reason, rea.Because},
		{"correlation", f.correlation, rea.Correlate}, {"key", f.key, rea.Once},
	} {
		if !cmd.Flags().Changed(text.flag) {
			continue
		}
		if text.value == "" {
			return nil, usagef("--%s is empty: leave it out, or give it a value", text.flag)
		}
		options = append(options, text.option(text.value))
	}
	if cmd.Flags().Changed("expect") {
		expect, err := parseExpect(f.expect)
		if err != nil {
			return nil, err
		}
		options = append(options, rea.Expect(expect))
	}
	if cmd.Flags().Changed("metadata") {
		metadata, err := a.content(ctx, "--metadata", f.metadata)
		if err != nil {
			return nil, err
		}
		options = append(options, rea.Metadata(metadata))
	}
	if f.correction {
		options = append(options, rea.Correction())
	}
	if f.data == "-" && f.metadata == "-" || f.batch == "-" && f.metadata == "-" {
		return nil, usagef("standard input can be read once: --metadata and another flag want it")
	}
	return options, nil
}

func parseExpect(text string) (int64, error) {
	if text == "none" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, usagef("--expect is the last seq that you believe in, or none, not %q", text)
	}
	return seq, nil
}

func (a *app) newEvents(ctx context.Context, cmd *cobra.Command, args []string, f appendFlags) ([]rea.NewEvent, error) {
	if cmd.Flags().Changed("batch") {
		text, err := a.content(ctx, "--batch", f.batch)
		if err != nil {
			return nil, err
		}
		return transfer.ParseBatch(text)
	}
	event := rea.NewEvent{Type: args[2], Version: f.version}
	if cmd.Flags().Changed("version") && (f.version < 1 || f.version > math.MaxInt32) {
		return nil, usagef("--version counts from 1, not %d", f.version)
	}
	if cmd.Flags().Changed("data") {
		text, err := a.content(ctx, "--data", f.data)
		if err != nil {
			return nil, err
		}
		event.Payload = text
	}
	return []rea.NewEvent{event}, nil
}

// content gives the value of a flag that takes JSON, @FILE, or - for standard input.
func (a *app) content(ctx context.Context, flag, value string) (json.RawMessage, error) {
	var text []byte
	var err error
	switch {
	case value == "-":
		text, err = io.ReadAll(io.LimitReader(a.stdin(ctx), maxContent+1))
	case value != "" && value[0] == '@':
		var file *os.File
		if file, err = os.Open(a.env.path(value[1:])); err == nil {
			defer file.Close()
			text, err = io.ReadAll(io.LimitReader(file, maxContent+1))
		}
	default:
		text = []byte(value)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(text) > maxContent {
		return nil, &rea.LimitError{What: flag, Limit: maxContent, Problem: fmt.Sprintf("is more than %d bytes long", maxContent)}
	}
	if text == nil {
		text = []byte{} // nil would be an absent payload
	}
	return text, nil
}

// maxContent bounds what is read of a file: a batch may hold several large payloads, or one with many escapes.
const maxContent = 8 * rea.MaxPayloadBytes

func (a *app) printReceipt(receipt rea.Receipt, batch bool) error {
	if a.table() {
		for _, stored := range receipt.Events {
			line := fmt.Sprintf("%s seq %d", refText(receipt.Aggregate), stored.Seq)
			if stored.Status != "" {
				line += " " + safe(stored.Status)
			}
			if receipt.Duplicate {
				line += " (already stored)"
			}
			if _, err := fmt.Fprintln(a.env.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	}
	type row struct {
		ID        int64   `json:"id"`
		Seq       int64   `json:"seq"`
		Status    *string `json:"status"`
		Duplicate bool    `json:"duplicate"`
	}
	out := a.list()
	for _, stored := range receipt.Events {
		r := row{ID: stored.ID, Seq: stored.Seq, Status: given(stored.Status), Duplicate: receipt.Duplicate}
		if !batch {
			return a.object(r)
		}
		if err := out.add(r); err != nil {
			return err
		}
	}
	return out.close()
}

// refText is type/id in full, for output; rea.Ref's own form is shortened, for messages.
func refText(r rea.Ref) string { return safe(r.Type) + "/" + safe(r.ID) }

// given is nil for an absent text.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

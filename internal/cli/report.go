package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
	"github.com/realtime-event-archive/rea/internal/transfer"
)

// report says on standard error why a command did not do what it was asked, as one line, or as
// {"error":{...}} where the output is JSON, and gives the exit code.
func (a *app) report(ctx context.Context, args []string, err error) int {
	if errors.As(err, new(partialError)) {
		return exitPartial
	}
	err = a.permission(ctx, err)
	message := a.text(err)
	code, exit := classify(ctx, err)
	if code == "interrupted" && !errors.As(err, new(*stoppedError)) {
		message = "interrupted"
	}
	if a.wantsJSON(args) {
		fmt.Fprintf(a.env.Stderr, "%s\n", jsonSafe(errorJSON(code, message, err)))
		return exit
	}
	var wrong *catalog.Error
	if errors.As(err, &wrong) {
		fmt.Fprintf(a.env.Stderr, "%s: %s in the catalog\n%s", a.command, numbered(len(wrong.Problems), "problem"), safeLines(wrong.Detail()))
		return exit
	}
	for _, word := range strings.Fields(a.command) { // "rea append: append to order/1" says it twice
		message = strings.TrimPrefix(strings.TrimPrefix(message, word+": "), word+" to ")
	}
	fmt.Fprintf(a.env.Stderr, "%s: %s\n", a.command, safe(message))
	return exit
}

// text is the message of an error on one line, without passwords, and without what each layer says of itself.
func (a *app) text(err error) string {
	message := connectText(err)
	if message == "" {
		message = strings.TrimPrefix(err.Error(), "rea: ")
	}
	return oneLine.Replace(strings.TrimSpace(a.withoutSecrets(message)))
}

// oneLine joins the lines of messages of drivers and of cobra, and errors of REA's within others.
var oneLine = strings.NewReplacer(":\n\t", ": ", "\n\n", "; ", "\n\t", "; ", "\n", "; ", ": rea: ", ": ", "(rea: ", "(")

// stoppedError says what a command that was interrupted has done.
type stoppedError struct {
	done string
	err  error
}

func (e *stoppedError) Error() string { return "interrupted: " + e.done }
func (e *stoppedError) Unwrap() error { return e.err }

// connectionError says that a database could not be opened.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// classify gives the code word of an error and its exit code.
func classify(ctx context.Context, err error) (code string, exit int) {
	var usage *usageError
	if errors.As(err, &usage) {
		return "usage", exitUsage
	}
	if errors.As(err, new(*stuckError)) {
		return "stuck", exitPartial
	}
	switch code = rea.Code(err); code {
	case "":
	case "unknown_type":
		if unread := new(rea.UnknownTypeError); errors.As(err, &unread) && unread.Seq > 0 {
			return code, exitFailed // a stored event is not refused, its state cannot be told
		}
		return code, exitRefused
	case "no_schema", "not_found", "no_such_seq", "retry", "read_only", "needs_rebuild":
		return code, exitFailed
	default:
		return code, exitRefused
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		return "interrupted", exitFailed
	case errors.As(err, new(*catalog.Error)), errors.As(err, new(*catalogError)):
		return "catalog", exitFailed
	case errors.As(err, new(*rea.UpcastError)):
		return "upcast", exitFailed
	case errors.As(err, new(*connectionError)):
		return "connection", exitFailed
	case errors.As(err, new(*permissionError)):
		return "permission", exitFailed
	case errors.As(err, new(*refusedError)), errors.As(err, new(*rea.DependentsError)):
		return "refused", exitRefused
	case errors.Is(err, transfer.ErrBusy):
		return "busy", exitFailed
	case errors.As(err, new(*transfer.NotRejectsError)):
		return "not_rejects", exitRefused
	}
	return "failed", exitFailed
}

// field is one member of the JSON of an error, in order.
type field struct {
	name  string
	value any
}

func errorJSON(code, message string, err error) []byte {
	fields := append([]field{{"code", code}, {"message", message}}, errorFields(err)...)
	var b bytes.Buffer
	b.WriteString(`{"error":{`)
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", f.name, marshal(f.value))
	}
	b.WriteString("}}")
	return b.Bytes()
}

// errorFields are the fields of rea's typed errors, under the names that SQL's DETAIL has too.
func errorFields(err error) []field {
	var (
		conflict  *rea.ConflictError
		reused    *rea.KeyReusedError
		payload   *rea.PayloadError
		limit     *rea.LimitError
		hole      *rea.HoleError
		immutable *rea.ImmutableError
		schema    *rea.SchemaError
		missing   *rea.NotFoundError
		noSeq     *rea.NoSuchSeqError
		confirm   *rea.NotConfirmedError
		unasked   *unconfirmedError
		illegal   *rea.TransitionError
		unknown   *rea.UnknownStatusError
		unread    *rea.UnknownTypeError
		upcast    *rea.UpcastError
		value     *rea.ProjectionError
		views     *rea.DependentsError
		stuck     *stuckError
		guarded   *rea.GuardedError
		unknownOf *rea.NoBaselineError
		wrong     *catalog.Error
	)
	switch {
	case errors.As(err, &conflict):
		return append(refFields(conflict.Aggregate), field{"expected", conflict.Expected}, field{"actual", conflict.Actual})
	case errors.As(err, &illegal):
		legal := illegal.Legal
		if legal == nil {
			legal = []string{}
		}
		return append(refFields(illegal.Aggregate), field{"event_type", illegal.Event}, field{"status", given(illegal.Status)}, field{"seq", illegal.Seq}, field{"legal", legal})
	case errors.As(err, &unknown):
		return []field{{"statuses", unknownRows(unknown.Statuses)}}
	case errors.As(err, &reused):
		return append(refFields(reused.Aggregate), field{"key", reused.Key}, field{"seq", reused.Seq})
	case errors.As(err, &payload):
		return append(refFields(payload.Aggregate), field{"path", payload.Path})
	case errors.As(err, &limit):
		fields := append(refFields(limit.Aggregate), field{"what", limit.What})
		if limit.Limit != 0 {
			fields = append(fields, field{"limit", limit.Limit})
		}
		if limit.Path != "" {
			fields = append(fields, field{"path", limit.Path})
		}
		return fields
	case errors.As(err, &hole):
		return append(refFields(hole.Aggregate), field{"seq", hole.Seq}, field{"actual", hole.Actual})
	case errors.As(err, &immutable):
		return []field{{"operation", immutable.Operation}}
	case errors.As(err, &schema):
		return []field{{"found", schema.Found}, {"known", schema.Known}}
	case errors.As(err, &missing):
		return refFields(missing.Aggregate)
	case errors.As(err, &noSeq):
		return append(refFields(noSeq.Aggregate), field{"last", noSeq.Last})
	case errors.As(err, &confirm):
		return []field{{"events", confirm.Events}, {"given", confirm.Given}}
	case errors.As(err, &unasked):
		return []field{{"events", unasked.events}}
	case errors.As(err, &unread):
		return append(refFields(unread.Aggregate), field{"event_type", unread.Event}, field{"event_version", unread.Version}, field{"seq", unread.Seq})
	case errors.As(err, &upcast):
		return append(refFields(upcast.Aggregate), field{"event_type", upcast.Event}, field{"event_version", upcast.Version}, field{"seq", upcast.Seq})
	case errors.As(err, &value):
		return append(refFields(value.Aggregate), field{"projection", value.Projection}, field{"table", value.Table}, field{"column", value.Column},
			field{"column_type", value.Type}, field{"event_type", value.Event}, field{"seq", value.Seq})
	case errors.As(err, &guarded):
		return []field{{"table", guarded.Table}, {"operation", guarded.Operation}, {"rows", guarded.Rows}, {"ids", append([]string{}, guarded.IDs...)}}
	case errors.As(err, &unknownOf):
		return append(refFields(unknownOf.Aggregate), field{"table", unknownOf.Table})
	case errors.As(err, &views):
		return []field{{"projection", views.Projection}, {"dependents", views.Dependents}, {"recreate_views", views.Again}}
	case errors.As(err, &stuck):
		return []field{{"projection", stuck.p.Name}, {"state", stuck.p.State}, {"position", stuck.p.Position}}
	case errors.As(err, &wrong):
		return []field{{"problems", wrong.Problems}}
	}
	return nil
}

func refFields(r rea.Ref) []field {
	if r == (rea.Ref{}) {
		return nil
	}
	return []field{{"aggregate_type", r.Type}, {"aggregate_id", r.ID}}
}

// wantsJSON also answers where the flags could not be parsed.
func (a *app) wantsJSON(args []string) bool {
	if a.started {
		return a.format != formatTable
	}
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case slices.Contains([]string{"--json", "--json=true", "-ojson", "-ojsonl", "-o=json", "-o=jsonl", "--output=json", "--output=jsonl"}, arg):
			return true
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			return strings.HasPrefix(args[i+1], "json")
		}
	}
	return false
}

func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("rea: marshal %T: %v", v, err)) // every value here comes from JSON, or is plain data
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

// localFile is the database that needs no name.
const localFile = "rea.db"

// database is what --db and the environment name.
type database struct {
	postgres string // connection URL; "": SQLite
	path     string // of the SQLite file, as it was given
	from     string // --db or the variable that names it; "": nothing does, it is localFile
}

// String is the name without passwords.
func (d database) String() string {
	if d.postgres == "" {
		return "sqlite:" + d.path
	}
	return redact(d.postgres)
}

// rea is the beginning of a command on this database, as a shell takes it, with a word before it where the same
// database has to be named again by hand: a password is never printed.
func (d database) rea() (note, command string) {
	switch {
	case d.from != "--db":
		return "", "rea"
	case d.postgres != "" && d.String() != d.postgres:
		return " (with the same --db)", "rea"
	}
	return "", "rea --db " + quote(d.String())
}

// quote writes a word so that a shell takes it as it is.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r) || r > 0x7f && shown(r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// resolve finds the database; makes says that the command may make sqlite:rea.db here.
func (a *app) resolve(makes bool) (database, error) {
	if flag := a.db; flag != "" {
		return a.parse("--db", flag)
	}
	for _, name := range []string{"REA_DATABASE_URL", "DATABASE_URL"} {
		if value := a.env.Getenv(name); value != "" {
			return a.parse(name, value)
		}
	}
	if _, err := os.Stat(a.env.path(localFile)); err != nil && !makes {
		return database{}, usagef("no database: name one with --db sqlite:FILE or --db postgres://USER@HOST/NAME, set REA_DATABASE_URL or DATABASE_URL, or make ./%s with `rea init`", localFile)
	}
	return database{path: localFile}, nil
}

// parse reads the URL that from gave. Its messages show no part of it that may be a password.
func (a *app) parse(from, text string) (database, error) {
	scheme, rest, found := strings.Cut(text, ":")
	switch scheme = strings.ToLower(scheme); {
	case !found || strings.ContainsAny(scheme, " /@="):
		return database{}, usagef("%s has no scheme: want sqlite:FILE or postgres://USER@HOST/NAME", from)
	case scheme == "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" || path == ":memory:" {
			return database{}, usagef("%s names no file: want sqlite:FILE", from)
		}
		if strings.Contains(path, "?") {
			return database{}, usagef("%s has parameters after ?, which sqlite:FILE does not take", from)
		}
		return database{path: path, from: from}, nil
	case scheme == "postgres" || scheme == "postgresql":
		a.secrets = append(a.secrets, passwords(text)...)
		if _, err := url.Parse(text); err != nil {
			return database{}, usagef("%s is no valid URL: want postgres://USER@HOST/NAME, with %%40 for @ and the like in a password", from)
		}
		return database{postgres: text, from: from}, nil
	default:
		return database{}, usagef("%s has the scheme %q: REA works with sqlite and postgres", from, scheme)
	}
}

// opening says how a command opens its database.
type opening struct {
	makes   bool         // the command may make the database
	role    string       // the kind of role that has the rights for it, in PostgreSQL
	prefix  string       // --role-prefix
	page    int          // rea.Config.PageEvents
	catalog *rea.Catalog // to apply, to run, or to fold by; nil: none
	logger  *slog.Logger // nil: warnings alone are said

	retryAfter time.Duration // rea.Config.RetryAfter
	stallAfter int           // rea.Config.StallAfter
	recreate   bool          // rea.Config.RecreateViews
}

// open opens the resolved database.
func (a *app) open(ctx context.Context, o opening) (*rea.Archive, database, error) {
	d, err := a.resolve(o.makes)
	if err != nil {
		return nil, d, err
	}
	a.role = o.role
	if o.logger == nil {
		o.logger = slog.New(&warnings{app: a})
	}
	config := rea.Config{Logger: o.logger, PageEvents: o.page, Catalog: o.catalog, NoSnapshots: true,
		RetryAfter: o.retryAfter, StallAfter: o.stallAfter, RecreateViews: o.recreate}
	if d.postgres != "" {
		pool, err := a.connect(ctx, d)
		if err != nil {
			return nil, d, openError(err)
		}
		archive, err := postgres.New(pool, postgres.Config{Config: config, RolePrefix: o.prefix})
		if err != nil {
			return nil, d, err
		}
		return archive.Archive, d, nil
	}
	if o.prefix != "" {
		return nil, d, noRoles()
	}
	path := a.env.path(d.path)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !o.makes {
		_, command := d.rea()
		return nil, d, &connectionError{fmt.Errorf("%s does not exist: make it with `%s migrate up`", d, command)}
	}
	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: config})
	if err != nil {
		return nil, d, openError(err)
	}
	return archive.Archive, d, nil
}

// sayWhich names the database of a command that changes what is not data: DATABASE_URL is often set for another program.
func (a *app) sayWhich() {
	if d, err := a.resolve(true); err == nil && d.from == "DATABASE_URL" {
		a.say("using DATABASE_URL")
	}
}

func openError(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return usagef("the database URL cannot be used: %s", err)
	}
	if rea.Code(err) != "" {
		return err
	}
	return &connectionError{err}
}

// redact gives a PostgreSQL URL without its passwords.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://..."
	}
	if query := u.Query(); query.Has("password") || query.Has("sslpassword") {
		for _, name := range []string{"password", "sslpassword"} {
			if query.Has(name) {
				query.Set(name, "xxxxx")
			}
		}
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}

// passwords finds every spelling of a password in a URL, also in one that does not parse.
func passwords(text string) []string {
	list := []string{text}
	if u, err := url.Parse(text); err == nil {
		if password, ok := u.User.Password(); ok {
			list = append(list, password)
		}
		for _, name := range []string{"password", "sslpassword"} {
			list = append(list, u.Query()[name]...)
		}
	}
	_, rest, _ := strings.Cut(text, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if _, password, ok := strings.Cut(rest[:at], ":"); ok {
			list = append(list, password)
		}
	}
	return list
}

// withoutSecrets hides what drivers may have put into their messages. A password as short as a common word
// is hidden where it stands as one.
func (a *app) withoutSecrets(message string) string {
	for _, secret := range a.secrets {
		switch {
		case strings.Contains(secret, "://"):
			message = strings.ReplaceAll(message, secret, redact(secret))
		case len(secret) >= 5:
			message = strings.ReplaceAll(message, secret, "xxxxx")
		case secret != "":
			message = strings.ReplaceAll(message, ":"+secret+"@", ":xxxxx@")
		}
	}
	return message
}

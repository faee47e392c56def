package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"

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
}

// String is the name without passwords.
func (d database) String() string {
	if d.postgres == "" {
		return "sqlite:" + d.path
	}
	return redact(d.postgres)
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
		return database{path: path}, nil
	case scheme == "postgres" || scheme == "postgresql":
		a.secrets = append(a.secrets, passwords(text)...)
		if _, err := url.Parse(text); err != nil {
			return database{}, usagef("%s is no valid URL: want postgres://USER@HOST/NAME, with %%40 for @ and the like in a password", from)
		}
		return database{postgres: text}, nil
	default:
		return database{}, usagef("%s has the scheme %q: REA works with sqlite and postgres", from, scheme)
	}
}

// open opens the resolved database for a command that reads or writes an archive.
func (a *app) open(ctx context.Context) (*rea.Archive, database, error) {
	return a.openWith(ctx, false, "", rea.Config{})
}

// openWith is open with settings; makes says that the command may make the database.
func (a *app) openWith(ctx context.Context, makes bool, rolePrefix string, config rea.Config) (*rea.Archive, database, error) {
	d, err := a.resolve(makes)
	if err != nil {
		return nil, d, err
	}
	config.Logger = slog.New(slog.NewTextHandler(a.env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if d.postgres != "" {
		archive, err := postgres.Open(ctx, d.postgres, postgres.Config{Config: config, RolePrefix: rolePrefix})
		if err != nil {
			return nil, d, openError(err)
		}
		return archive.Archive, d, nil
	}
	if rolePrefix != "" {
		return nil, d, noRoles()
	}
	path := a.env.path(d.path)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !makes {
		return nil, d, &connectionError{errors.New(d.String() + " does not exist: make it with `rea --db " + d.String() + " migrate up`")}
	}
	archive, err := sqlite.Open(ctx, path, sqlite.Config{Config: config})
	if err != nil {
		return nil, d, openError(err)
	}
	return archive.Archive, d, nil
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

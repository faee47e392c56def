package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema up to date, look at it, print it, remove it",
		Example: `  rea migrate up
  rea migrate status`,
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	cmd.AddCommand(a.migrateUpCommand(), a.migrateStatusCommand(), a.migrateSQLCommand(), a.uninstallCommand())
	return cmd
}

func (a *app) migrateUpCommand() *cobra.Command {
	var rolePrefix string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that the database lacks",
		Long: `Apply the migrations that the database lacks, and print them. It never asks. Several
processes may run it at once: one applies, the others wait and find nothing to do.
A SQLite file that does not exist is made. Without a named database that is ./rea.db.`,
		Example: `  rea --db sqlite:loans.db migrate up
  rea --db postgres://localhost/shop migrate up --role-prefix shop`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.migrate(cmd, rolePrefix)
			return err
		},
	}
	cmd.Flags().StringVar(&rolePrefix, "role-prefix", "", "beginning of the roles' names in PostgreSQL (rea)")
	return cmd
}

func (a *app) migrateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the migrations, with the time at which each was applied",
		Example: `  rea migrate status
  rea migrate status --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			archive, _, err := a.open(cmd.Context(), opening{role: "reader"})
			if err != nil {
				return err
			}
			defer archive.Close()
			migrations, err := archive.Migrations(cmd.Context())
			if err != nil {
				return err
			}
			if !a.table() {
				return a.migrations(migrations)
			}
			g := a.grid(column{head: "VERSION", right: true}, column{head: "NAME"}, column{head: "APPLIED"})
			for _, m := range migrations {
				applied := "pending"
				if !m.AppliedAt.IsZero() {
					applied = rea.FormatTime(m.AppliedAt)
				}
				if err := g.add(fmt.Sprint(m.Version), safe(m.Name), applied); err != nil {
					return err
				}
			}
			return g.flush()
		},
	}
}

func (a *app) migrateSQLCommand() *cobra.Command {
	var rolePrefix string
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL of all migrations, for teams with a tool of their own",
		Long: `Print what "rea migrate up" runs on an empty database. The kind of database is the
resolved one's; it is not connected to and need not exist.`,
		Example: `  rea --db postgres: migrate sql > rea.sql
  rea --db sqlite:loans.db migrate sql`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.resolve(true)
			if err != nil {
				return err
			}
			text, err := migrationSQL(cmd.Context(), d, rolePrefix)
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.env.Stdout, text)
			return err
		},
	}
	cmd.Flags().StringVar(&rolePrefix, "role-prefix", "", "beginning of the roles' names in PostgreSQL (rea)")
	return cmd
}

// migrationSQL gives the text for d's kind of database, without looking at d.
func migrationSQL(ctx context.Context, d database, rolePrefix string) (string, error) {
	if d.postgres != "" {
		archive, err := postgres.New(nil, postgres.Config{RolePrefix: rolePrefix})
		if err != nil {
			return "", err
		}
		return archive.MigrationSQL(), nil
	}
	if rolePrefix != "" {
		return "", noRoles()
	}
	// Opening makes no file.
	archive, err := sqlite.Open(ctx, filepath.Join(os.TempDir(), "rea-no-such-folder", localFile), sqlite.Config{})
	if err != nil {
		return "", err
	}
	defer archive.Close()
	return archive.MigrationSQL(), nil
}

func noRoles() error { return usagef("--role-prefix is for PostgreSQL: SQLite has no roles") }

// migrations writes migrations as JSON.
func (a *app) migrations(migrations []rea.Migration) error {
	out := a.list()
	for _, m := range migrations {
		row := struct {
			Version   int     `json:"version"`
			Name      string  `json:"name"`
			AppliedAt *string `json:"applied_at"`
		}{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			applied := rea.FormatTime(m.AppliedAt)
			row.AppliedAt = &applied
		}
		if err := out.add(row); err != nil {
			return err
		}
	}
	return out.close()
}

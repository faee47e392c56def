package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version and the schema versions that it knows",
		Example: `  rea version
  rea version --json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, commit := buildVersion()
			inPostgres, err := schemaVersion(cmd, database{postgres: "postgres:"})
			if err != nil {
				return err
			}
			inSQLite, err := schemaVersion(cmd, database{path: localFile})
			if err != nil {
				return err
			}
			if a.table() {
				_, err := fmt.Fprintf(a.env.Stdout, "rea %s (schema version %d on PostgreSQL, %d on SQLite; %s)\n", program, inPostgres, inSQLite, runtime.Version())
				return err
			}
			return a.object(struct {
				Version string         `json:"version"`
				Commit  *string        `json:"commit"`
				Schema  map[string]int `json:"schema"`
				Go      string         `json:"go"`
			}{program, given(commit), map[string]int{"postgres": inPostgres, "sqlite": inSQLite}, runtime.Version()})
		},
	}
}

func buildVersion() (program, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	if program = info.Main.Version; program == "" {
		program = "(devel)"
	}
	return program, commit
}

// migrationHead is the comment above each migration in the text of `rea migrate sql`.
var migrationHead = regexp.MustCompile(`(?m)^-- (\d{4})_\w+$`)

// schemaVersion is the newest one that this program knows for d's kind of database.
func schemaVersion(cmd *cobra.Command, d database) (int, error) {
	text, err := migrationSQL(cmd.Context(), d, "")
	if err != nil {
		return 0, err
	}
	newest := 0
	for _, head := range migrationHead.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(head[1])
		if err != nil {
			return 0, err
		}
		newest = max(newest, n)
	}
	return newest, nil
}

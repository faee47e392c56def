package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea/postgres"
	"github.com/realtime-event-archive/rea/sqlite"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version and the schema versions that it knows",
		Example: `  rea version
  rea version --json`,
		Args: between(0, 0),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	program, commit := buildVersion()
	inPostgres, inSQLite := postgres.SchemaVersion(), sqlite.SchemaVersion()
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

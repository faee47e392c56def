package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
)

func (a *app) initCommand() *cobra.Command {
	var rolePrefix string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make an archive: ./rea.db, or in the named database",
		Long: `Make an archive. Without a named database that is the SQLite file rea.db in this
folder, which every command then finds by itself. Running it again changes nothing.`,
		Example: `  rea init
  rea --db postgres://localhost/shop init`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.migrate(cmd, rolePrefix)
			if err != nil {
				return err
			}
			note, command := d.rea()
			a.say(fmt.Sprintf("next%s: %s append order 10086 OrderPlaced --data '{\"total_amount\": 9980}' --actor 42\n"+
				"then%s: %s log order 10086", note, command, note, command))
			return nil
		},
	}
	cmd.Flags().StringVar(&rolePrefix, "role-prefix", "", "beginning of the roles' names in PostgreSQL (rea)")
	return cmd
}

// migrate brings the database up to date, making it where it is a SQLite file, and says what it did.
func (a *app) migrate(cmd *cobra.Command, rolePrefix string) (database, error) {
	ctx := cmd.Context()
	a.sayWhich()
	archive, d, err := a.open(ctx, opening{makes: true, role: "owner", prefix: rolePrefix})
	if err != nil {
		return d, err
	}
	defer archive.Close()
	var applied []rea.Migration
	err = archive.Migrate(ctx, func(m rea.Migration) {
		applied = append(applied, m)
		if a.table() {
			fmt.Fprintf(a.env.Stdout, "applied %04d_%s\n", m.Version, safe(m.Name))
		}
	})
	if err != nil {
		return d, err
	}
	if a.warned > 0 {
		a.say("REA works without that; to complete it, run `migrate up` again as a login with the right")
	}
	if len(applied) == 0 {
		a.say(fmt.Sprintf("%s is up to date, nothing to do", safe(d.String())))
	} else {
		a.say(fmt.Sprintf("%s is ready", safe(d.String())))
	}
	if a.table() {
		return d, nil
	}
	return d, a.migrations(applied)
}

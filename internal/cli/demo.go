package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/internal/shop"
	"github.com/realtime-event-archive/rea/sqlite"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	var orders int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See what REA does, on an order shop and its accident, in two minutes",
		Long: `Make an order shop with some thousand orders on an embedded SQLite database, in a folder
of its own. Then an accident happens, first to a plain table, then with REA, and the
real commands look into it. Nothing outside the folder is touched.

With --db postgres://USER@HOST/NAME, a database that is empty, the accident happens to a guarded
table there, too: captured, then refused.`,
		Example: `  rea demo
  rea demo --dir ./try-rea --orders 20000
  rea demo --db postgres://localhost/try_rea`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if orders < shop.MinOrders || orders > 1_000_000 {
				return usagef("--orders is %d to 1000000, not %d", shop.MinOrders, orders)
			}
			if cmd.Flags().Changed("dir") && dir == "" {
				return usagef("--dir is empty: leave it out, or name a folder")
			}
			d := &demo{app: a, out: a.env.Stdout, shop: shop.New(orders)}
			if a.db != "" {
				named, err := a.parse("--db", a.db)
				if err != nil {
					return err
				}
				if d.server = named.postgres; d.server == "" {
					return usagef("the demo makes its own SQLite databases: --dir names their folder, --db an empty PostgreSQL database")
				}
				conn, err := d.emptyServer(cmd.Context())
				if err != nil {
					return err
				}
				_ = conn.Close(cmd.Context())
			}
			if err := d.makeDir(dir); err != nil {
				return err
			}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the databases (a new temporary one)")
	cmd.Flags().IntVar(&orders, "orders", 3_000, "number of orders")
	cmd.Flags().Bool("no-serve", false, "do not start the pages at the end (there are none yet)")
	return cmd
}

// demo is one telling of the story.
type demo struct {
	app  *app
	out  io.Writer
	shop *shop.Shop
	dir  string

	server      string // a PostgreSQL database that --db names, for the act that SQLite cannot play; "": none
	elsewhere   string // the database of commands; "": the shop's
	transaction string // of the accident
}

// makeDir finds a folder in which nothing is in the way.
func (d *demo) makeDir(dir string) (err error) {
	if dir == "" {
		d.dir, err = os.MkdirTemp("", "rea-demo-")
		return err
	}
	d.dir = d.app.env.path(dir)
	if err := os.MkdirAll(d.dir, 0o777); err != nil {
		return err // names the folder
	}
	for _, name := range []string{"plain.db", "shop.db", localCatalog} {
		if _, err := os.Stat(filepath.Join(d.dir, name)); err == nil {
			return usagef("%s is there already: name another folder, or remove it", filepath.Join(dir, name))
		}
	}
	return nil
}

func (d *demo) database() string { return "sqlite:" + filepath.Join(d.dir, "shop.db") }

func (d *demo) catalog() string { return filepath.Join(d.dir, localCatalog) }

func (d *demo) run(ctx context.Context) error {
	if err := d.plainTable(ctx); err != nil {
		return err
	}
	if err := d.archive(ctx); err != nil {
		return err
	}
	if err := d.investigate(ctx); err != nil {
		return err
	}
	if err := d.meaning(ctx); err != nil {
		return err
	}
	if err := d.projections(ctx); err != nil {
		return err
	}
	if err := d.adoption(ctx); err != nil {
		return err
	}
	d.farewell()
	return nil
}

// tell writes a paragraph.
func (d *demo) tell(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// plainTable is the first act.
func (d *demo) plainTable(ctx context.Context) error {
	hit, meant := d.shop.Hit()
	d.tell(`1. A table of orders, without REA
---------------------------------
A shop keeps its %d orders in one table, with their present status. On %s
a promotion script runs. It is meant to cancel what customer 123 left open before June:

    %s;
`, len(d.shop.Orders), shop.Accident.Format("2 January 2006 at 15:04"), strings.ReplaceAll(shop.Script, "\n", "\n    "))
	table, err := d.shop.NewTable(ctx, filepath.Join(d.dir, "plain.db"))
	if err != nil {
		return err
	}
	defer table.Close()
	rows, err := table.RunScript(ctx)
	if err != nil {
		return err
	}
	order, err := table.Order(ctx, shop.Story)
	if err != nil {
		return err
	}
	d.tell(`It changes %d rows. %d were meant. AND binds closer than OR, and parentheses are missing:
every paid order of every customer is now cancelled. A customer calls about order %d:

    id     user_id  total_amount  status     created_at
    %d  %-7d  %-12d  %-9s  %s

That is all there is to look at. What was the status before? Who changed it, when, and why?
Which other orders? The table does not know: the script has written over the answer.
`, rows, meant, shop.Story, order.ID, order.User, order.Total, order.Status, order.PlacedAt.Format(time.DateTime))
	if rows != int64(len(hit)) {
		return fmt.Errorf("demo: the script changed %d rows, want %d", rows, len(hit))
	}
	return nil
}

// archive is the second act: the same day in REA.
func (d *demo) archive(ctx context.Context) error {
	if err := os.WriteFile(d.catalog(), []byte(shop.Catalog), 0o666); err != nil {
		return err
	}
	archive, err := sqlite.Open(ctx, filepath.Join(d.dir, "shop.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := archive.Migrate(ctx, nil); err != nil {
		return err
	}
	d.tell(`2. The same day, with REA
-------------------------
Now the shop writes each change as an event: what happened, who did it, why. Events are only
ever inserted, and the database itself refuses to change them. What they mean, and which steps
are legal, stands in one file:

%s`, indent(shop.Catalog))
	if err := d.command(ctx, exitDone, "catalog", "apply", "--yes"); err != nil {
		return err
	}
	if err := d.shop.Import(ctx, archive.Archive); err != nil {
		return err
	}
	if err := d.shop.RunScript(ctx, archive.Archive); err != nil {
		return err
	}
	count, err := archive.Autocommit().Count(ctx)
	if err != nil {
		return err
	}
	d.tell(`
The shop has had its days, the same script has run, and the archive holds %d events of %d orders.
The rest is the command line:

    export REA_DATABASE_URL=%s
    export REA_CATALOG=%s
`, count, len(d.shop.Orders), quote(d.database()), quote(d.catalog()))
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}

// investigate runs the commands that answer the questions of the first act.
func (d *demo) investigate(ctx context.Context) error {
	transaction, hit, err := d.lookUp(ctx)
	if err != nil {
		return err
	}
	story := fmt.Sprint(shop.Story)
	before := rea.FormatTime(shop.Accident.Add(-time.Second))
	for _, step := range []struct {
		why  string
		args []string
	}{
		{"What happened to order 10086, in which order, who did it, and why? What was its status before?", []string{"log", "order", story}},
		{"How did the whole order look right before?", []string{"show", "order", story, "--at", before}},
		{"What else did this script do?", []string{"log", "--actor", shop.ScriptActor, "--limit", "3"}},
		{"Whose script is it? Who else has worked for that ticket?", []string{"log", "--reason", "OPS-311", "--limit", "2"}},
		{"And what did the one transaction write that cancelled the order?", []string{"log", "order", "--xid", transaction, "--limit", "3"}},
	} {
		d.tell("# %s", step.why)
		if err := d.command(ctx, exitDone, step.args...); err != nil {
			return err
		}
		d.tell("")
	}
	_, meant := d.shop.Hit()
	d.transaction = transaction
	d.tell(`One transaction, %d orders, %d of them meant. For each of them the archive knows what it was
before, and nothing was lost: the accident itself is only one event more.
`, hit, meant)
	return nil
}

// meaning is the third act: what the catalog is good for.
func (d *demo) meaning(ctx context.Context) error {
	d.tell(`3. What the catalog does
------------------------`)
	first := fmt.Sprint(d.shop.Orders[0].ID)
	for _, step := range []struct {
		why  string
		code int
		args []string
	}{
		{"The order is cancelled now. Can the warehouse still ship it? The database itself refuses that, to every program:", exitRefused,
			[]string{"append", "order", fmt.Sprint(shop.Story), "OrderShipped", "--actor", "warehouse-2"}},
		{"The shop's oldest order was stored by an older program: version 1 of OrderPlaced had items, and no count.", exitDone,
			[]string{"log", "order", first, "--limit", "1", "-o", "json"}},
		{"Today's catalog reads it as version 2; the stored event stays what it is.", exitDone,
			[]string{"show", "order", first, "--at", "seq:1"}},
		{"And this is what the orders did, drawn from the events:", exitDone, []string{"catalog", "diagram", "order"}},
	} {
		d.tell("# %s", step.why)
		if err := d.command(ctx, step.code, step.args...); err != nil {
			return err
		}
		d.tell("")
	}
	return nil
}

func (d *demo) farewell() {
	d.tell(`What to try next:

%s    export REA_DATABASE_URL=%s
    export REA_CATALOG=%s
    rea log order %d --json
    rea log --since %s --event NoteAdded
    rea append order %[4]d NoteAdded --data '{"text": "refund promised"}' --actor you
    rea export - --xid %[6]s
    rea log --follow          # and append in another terminal
    rea run                   # keeps hourly_sales meanwhile

The database is the file %[7]s.
To be rid of the demo: rm -r %[8]s`,
		d.findRea(), quote(d.database()), quote(d.catalog()), shop.Story, rea.FormatTime(shop.Accident), d.transaction, filepath.Join(d.dir, "shop.db"), quote(d.dir))
}

// findRea is the line after which a shell finds this program under the name rea; "" where it does already.
func (d *demo) findRea() string {
	for _, dir := range filepath.SplitList(d.app.env.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, "rea")); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return ""
		}
	}
	if program, err := os.Executable(); err == nil && filepath.Base(program) == "rea" && !strings.Contains(program, "go-build") {
		return "    export PATH=" + quote(filepath.Dir(program)) + `:"$PATH"` + "\n"
	}
	return `    make build && export PATH="$PWD/bin:$PATH"    # in the folder of REA's source` + "\n"
}

// lookUp finds the transaction of the script, and the number of events that it wrote.
func (d *demo) lookUp(ctx context.Context) (transaction string, hit int, err error) {
	archive, err := sqlite.Open(ctx, filepath.Join(d.dir, "shop.db"), sqlite.Config{})
	if err != nil {
		return "", 0, err
	}
	defer archive.Close()
	for e, err := range archive.Autocommit().History(ctx, rea.Filter{Actor: shop.ScriptActor}) {
		if err != nil {
			return "", 0, err
		}
		transaction, hit = e.XID, hit+1
	}
	return transaction, hit, nil
}

// command prints a command as a shell shows it, and runs it; it ends with code.
func (d *demo) command(ctx context.Context, want int, args ...string) error {
	line := "$ rea"
	for _, arg := range args {
		line += " " + quote(arg)
	}
	d.tell("%s", line)
	env := d.app.env
	env.Stderr = env.Stdout
	getenv := env.Getenv
	env.Getenv = func(name string) string {
		switch name {
		case "REA_DATABASE_URL":
			return cmp.Or(d.elsewhere, d.database())
		case "REA_CATALOG":
			if d.elsewhere != "" {
				return ""
			}
			return d.catalog()
		}
		return getenv(name)
	}
	if code := Run(ctx, args, env); code != want {
		return fmt.Errorf("demo: rea %s ended with exit code %d", args[0], code)
	}
	return nil
}

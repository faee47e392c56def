// Package cli is the command line `rea`. Run takes arguments, streams, environment and folder, so that tests
// call it as a shell would.
//
//	os.Exit(cli.Run(ctx, os.Args[1:], cli.Env{
//		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
//	}))
//
// Data goes to Stdout, talk and errors to Stderr. Exit codes: 0 done, 1 could not be done or told, 2 usage,
// 3 part was left out, 4 refused.
package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Env is what surrounds a command.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks up the environment; "" is the same as not set. Nil: there is none.
	Getenv func(name string) string
	// Dir is the folder that relative file names start from. "": the process's own.
	Dir string
	// IsTerminal tells whether a person sits at a stream. Nil: files ask the system, others are none.
	IsTerminal func(stream any) bool
	// Width is the number of columns of a terminal; 0: not known, lines may be of any length. Nil: files ask the system.
	Width func(stream any) int
}

func (e Env) withDefaults() Env {
	if e.Stdin == nil {
		e.Stdin = bytes.NewReader(nil)
	}
	if e.Stdout == nil {
		e.Stdout = io.Discard
	}
	if e.Stderr == nil {
		e.Stderr = io.Discard
	}
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	if e.IsTerminal == nil {
		e.IsTerminal = func(stream any) bool {
			file, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(file.Fd()))
		}
	}
	if e.Width == nil {
		e.Width = func(stream any) int {
			width := 0
			if file, ok := stream.(*os.File); ok {
				width, _, _ = term.GetSize(int(file.Fd())) // an error leaves 0
			}
			return width
		}
	}
	return e
}

// path makes a file name that the user gave independent of the process's own folder.
func (e Env) path(name string) string {
	if e.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.Dir, name)
}

// Run runs one command and returns its exit code. It stops when ctx ends, in a consistent state, also while it waits
// for standard input: then one goroutine stays behind in Env.Stdin.Read.
func Run(ctx context.Context, args []string, env Env) int {
	a := &app{env: env.withDefaults(), format: formatTable}
	defer a.close()
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(a.env.Stdin)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	a.command = cmd.CommandPath()
	if !a.started {
		err = asUsage(err)
	}
	return a.report(ctx, args, err)
}

// app is one run of the command line.
type app struct {
	env     Env
	db      string   // --db
	rules   string   // --catalog
	format  string   // --output
	json    bool     // --json
	started bool     // arguments and flags were right, the command runs
	command string   // "rea log"
	secrets []string // never to be printed

	pool   *pgxpool.Pool // nil: none was opened
	role   string        // kind of the role that may do what the command does
	warned int           // warnings of the libraries
}

func (a *app) close() {
	if a.pool != nil {
		a.pool.Close()
	}
}

func (a *app) root() *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "rea",
		Short: "The history of your business objects, in the database you have",
		Long: `REA keeps the history of business objects as an ordered, immutable table of events
in PostgreSQL or SQLite: what happened, in which order, who did it and why.

The database is --db, else REA_DATABASE_URL, else DATABASE_URL, else sqlite:rea.db
if that file exists here. The catalog, which says what events mean, is --catalog, else
REA_CATALOG, else ./rea.yaml if that file exists; without one, a state is what the payloads
of its events say, laid over one another. Data goes to standard output, everything else to standard error.

Exit codes: 0 done; 1 could not be done, or not told; 2 wrong usage;
3 a check found something, or part was left out; 4 refused (conflict, bad payload, a file
that is there...). Ctrl-C ends a command in a consistent state, with 1 ("rea log --follow"
and "rea run": 0); a second one ends it at once.`,
		Example: `  rea demo                       see what REA does, in two minutes
  rea init                       make ./rea.db
  rea append order 10086 OrderPlaced --data '{"total_amount": 9980}' --actor 42
  rea log order 10086
  rea show order 10086 --at seq:1`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version && len(args) == 0 {
				return a.version()
			}
			return group(cmd, args)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolVar(&version, "version", false, "print the program's version")
	root.CompletionOptions.HiddenDefaultCmd = false
	flags := root.PersistentFlags()
	flags.StringVar(&a.db, "db", "", "database: sqlite:FILE or postgres://USER@HOST/NAME")
	flags.StringVar(&a.rules, "catalog", "", "catalog: a file such as rea.yaml; none: use no catalog")
	flags.StringVarP(&a.format, "output", "o", formatTable, "form of the output: table, json or jsonl")
	flags.BoolVar(&a.json, "json", false, "the same as -o json")
	flags.BoolP("help", "h", false, "help for this command")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.PersistentPreRunE = a.before
	root.AddCommand(
		a.initCommand(), a.migrateCommand(),
		a.appendCommand(), a.importCommand(), a.exportCommand(),
		a.logCommand(), a.showCommand(), a.catalogCommand(), a.runCommand(), a.projectionCommand(), a.waitCommand(),
		a.guardCommand(), a.doctorCommand(), a.baselineCommand(),
		a.demoCommand(), a.versionCommand(),
	)
	return root
}

// before checks the flags that all commands share.
func (a *app) before(cmd *cobra.Command, _ []string) error {
	if cmd.Flags().Changed("db") && a.db == "" {
		return usagef("--db is empty: leave it out, or name a database")
	}
	if cmd.Flags().Changed("catalog") && a.rules == "" {
		return usagef("--catalog is empty: leave it out, name a file, or none")
	}
	if err := a.chooseFormat(cmd); err != nil {
		return err
	}
	a.started = true
	return nil
}

// group is the RunE of a command that only has commands under it.
func group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2
		meant := didYouMean(cmd.SuggestionsFor(args[0]), cmd.CommandPath()+" ")
		return usagef("unknown command %q for %q: %ssee `%s --help`", args[0], cmd.CommandPath(), meant, cmd.CommandPath())
	}
	return cmd.Help()
}

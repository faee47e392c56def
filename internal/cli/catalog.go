package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/catalog"
)

const (
	localCatalog = "rea.yaml" // the catalog that needs no name
	noCatalog    = "none"     // in place of a file
)

// catalogName finds the catalog; "" where there is none.
func (a *app) catalogName() string {
	name := a.rules
	if name == "" {
		name = a.env.Getenv("REA_CATALOG")
	}
	if name == "" {
		if _, err := os.Stat(a.env.path(localCatalog)); err == nil {
			name = localCatalog
		}
	}
	if name == noCatalog {
		return ""
	}
	return name
}

// catalogFile reads the catalog; nil: there is none.
func (a *app) catalogFile() (*catalog.File, error) {
	name := a.catalogName()
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(a.env.path(name))
	if err != nil {
		return nil, &catalogError{name, errors.Unwrap(err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, catalog.MaxBytes+1))
	if err != nil {
		return nil, &catalogError{name, err}
	}
	return catalog.ParseFile(name, text)
}

// catalog is the catalog that readers go by; nil: none, and events are merged.
func (a *app) catalog() (*rea.Catalog, error) {
	f, err := a.catalogFile()
	if f == nil || err != nil {
		return nil, err
	}
	return f.Catalog, nil
}

// mustCatalog is catalogFile for commands that are about it.
func (a *app) mustCatalog() (*catalog.File, error) {
	f, err := a.catalogFile()
	if f == nil && err == nil {
		return nil, usagef("no catalog: name one with --catalog FILE, set REA_CATALOG, or make ./%s", localCatalog)
	}
	return f, err
}

// catalogError says that the file of the catalog could not be read.
type catalogError struct {
	name string
	err  error
}

func (e *catalogError) Error() string {
	if errors.Is(e.err, fs.ErrNotExist) {
		return fmt.Sprintf("the catalog %s does not exist", e.name)
	}
	return fmt.Sprintf("read the catalog %s: %s", e.name, e.err)
}

func (e *catalogError) Unwrap() error { return e.err }

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Check, apply, show or draw the catalog: what events mean",
		Long: `The catalog says which events an aggregate knows, in which versions, which steps are
legal, and how its state is folded. It is --catalog, else REA_CATALOG, else ./rea.yaml.
docs/catalog.md has every key.`,
		Example: `  rea catalog check
  rea catalog apply
  rea catalog show
  rea catalog diagram order`,
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	cmd.AddCommand(a.catalogCheckCommand(), a.catalogApplyCommand(), a.catalogShowCommand(), a.catalogDiagramCommand(), a.catalogInferCommand())
	return cmd
}

func (a *app) catalogShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [TYPE]",
		Short: "List what the catalog declares: types, events, versions, steps",
		Long: `List the events of each aggregate type, or of TYPE, with the newest version of their
payloads, the statuses from which they are legal, and the status that they lead to.
FROM is empty for an event without a rule, TO for one that leaves the status as it is.`,
		Example: `  rea catalog show
  rea catalog show order --json`,
		Args: between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.mustCatalog()
			if err != nil {
				return err
			}
			types := f.Catalog.Types()
			if len(args) == 1 {
				t, err := declaredType(f.Catalog, args[0])
				if err != nil {
					return err
				}
				types = []rea.Type{t}
			}
			return a.showCatalog(types)
		},
	}
}

func declaredType(c *rea.Catalog, name string) (rea.Type, error) {
	t, ok := c.Type(name)
	if !ok {
		var declared []string
		for _, t := range c.Types() {
			declared = append(declared, t.Name)
		}
		if len(declared) == 0 {
			declared = []string{"none"}
		}
		return t, fmt.Errorf("the catalog does not declare the aggregate type %s; it declares %s", fold(name, 60), fold(strings.Join(declared, ", "), 200))
	}
	return t, nil
}

// declaration is one event of the catalog, for people and for programs.
type declaration struct {
	Type    string   `json:"aggregate_type"`
	Event   string   `json:"event_type"`
	Version *int     `json:"event_version"` // the newest; of an old name, the form that it stands for; null: any
	From    []string `json:"from"`
	To      *string  `json:"to"`
	AliasOf *string  `json:"alias_of"`
	Retired bool     `json:"retired"`
	Deletes bool     `json:"deletes"` // after it the object's row may go from a guarded table
}

func (a *app) showCatalog(types []rea.Type) error {
	if a.table() {
		return a.showCatalogTable(types)
	}
	out := a.list()
	for _, t := range types {
		for _, e := range t.Events {
			from := e.From
			if from == nil {
				from = []string{}
			}
			version := &e.Version
			if e.Retired || e.Version == 0 {
				version = nil
			}
			if err := out.add(declaration{t.Name, e.Name, version, from, given(e.To), given(e.AliasOf), e.Retired, e.Deletes}); err != nil {
				return err
			}
		}
	}
	return out.close()
}

func (a *app) showCatalogTable(types []rea.Type) error {
	g := a.grid(column{head: "TYPE"}, column{head: "EVENT"}, column{head: "VERSION", right: true}, column{head: "FROM", optional: true},
		column{head: "TO", optional: true}, column{head: "NOTE", optional: true})
	for _, t := range types {
		if len(t.Events) == 0 {
			if err := g.add(fold(t.Name, 30), "", "", "", "", "no events"); err != nil {
				return err
			}
		}
		for _, e := range t.Events {
			version, note := strconv.Itoa(e.Version), ""
			switch {
			case e.AliasOf != "":
				note = "old name of " + fold(e.AliasOf, 40)
				if e.Version == 0 {
					version = ""
				}
			case e.Retired:
				version, note = "", "retired"
			case e.Deletes:
				note = "deletes"
			}
			err := g.add(fold(t.Name, 30), fold(e.Name, 40), version, fold(strings.Join(e.From, ", "), 60), fold(e.To, 30), note)
			if err != nil {
				return err
			}
		}
	}
	return g.flush()
}

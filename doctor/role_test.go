package doctor_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/realtime-event-archive/rea"
	"github.com/realtime-event-archive/rea/doctor"
	"github.com/realtime-event-archive/rea/internal/pgtest"
	"github.com/realtime-event-archive/rea/postgres"
)

func TestALoginThatMayActAsTheOwnerIsNamed(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	direct, through, group := p.login(), p.login(), p.login()
	p.do(`ALTER ROLE ` + group + ` NOLOGIN; GRANT rea_owner TO ` + direct + `, ` + group + `; GRANT ` + group + ` TO ` + through)
	level, _, all := p.said()
	line := regexp.MustCompile(`who may act as rea_owner: (.*)`).FindString(all)
	for _, name := range []string{direct, through} {
		if level != doctor.L2 || !strings.Contains(line, name) {
			t.Errorf("level %s, %s is not in %s", level, name, line)
		}
	}
}

func TestAnArchiveWithoutRolesOfItsOwnIsL1(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	name := p.login()
	pool, err := pgxpool.New(t.Context(), pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `GRANT CREATE ON DATABASE `+pool.Config().ConnConfig.Database+` TO `+name); err != nil {
		t.Fatal(err)
	}
	mine := patient{pool, t, nil}.as(name)
	installer, err := postgres.New(mine.Pool, postgres.Config{Config: rea.Config{Logger: slog.New(slog.DiscardHandler)}, RolePrefix: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := installer.Migrate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	list, err := doctor.Postgres(t.Context(), mine, installer.Archive)
	level, wrong, all := told(list)
	if err != nil || level != doctor.L1 || wrong != "" || !strings.Contains(all, name+", who may switch them off, can log in") {
		t.Errorf("%v, level %s, wrong:\n%s\nall:\n%s", err, level, wrong, all)
	}
	if next := list[1].Next; next == nil || !strings.Contains(*next, "a role with CREATEROLE") {
		t.Errorf("protection: %+v", list[1])
	}
}

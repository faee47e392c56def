package postgres_test

import (
	"testing"

	"github.com/realtime-event-archive/rea"
)

// The new table has the indexes before anybody waits for the switch, and one that comes after that too.
func TestIndexesAreBuiltBeforeReadersWait(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := recreating(t, url)
	if err := a.Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	put(t, a.Autocommit(), order1, "A")
	s.do(`CREATE INDEX first ON rea_views.orders (n)`)
	reader := connect(t, url)
	rebuilt := make(chan error)
	begun := make(chan struct{})
	held := make(chan struct{})
	go func() {
		once := false
		rebuilt <- a.Rebuild(t.Context(), "orders", func(rea.RebuildProgress) {
			if !once {
				once = true
				close(begun)
				<-held
			}
		})
	}()
	<-begun
	reader.do(`BEGIN; SELECT FROM rea_views.orders`)
	close(held)
	s.waitFor("1", `SELECT count(*) FROM pg_indexes WHERE schemaname = 'rea_views' AND indexname ~ '^rea_index_'`)
	s.do(`CREATE INDEX second ON rea_views.orders (rea_seq, n)`)
	reader.do(`COMMIT`)
	if err := <-rebuilt; err != nil {
		t.Fatal(err)
	}
	s.want("CREATE INDEX first ON rea_views.orders USING btree (n), "+
		"CREATE UNIQUE INDEX orders_pkey ON rea_views.orders USING btree (aggregate_id), CREATE INDEX second ON rea_views.orders USING btree (rea_seq, n)",
		`SELECT indexdef FROM pg_indexes WHERE schemaname = 'rea_views' ORDER BY indexname`)
}

// A foreign key stops the writers of the other table, who are waited for: a moment at the switch, again and again.
func TestASwitchDoesNotHoldUpWritersOfATableThatAForeignKeyIsOn(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := recreating(t, url)
	put(t, a.Autocommit(), order1, "A")
	if err := a.Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	s.do(`CREATE TABLE public.ref (id bigint PRIMARY KEY); INSERT INTO public.ref VALUES (1), (2); GRANT USAGE ON SCHEMA public TO rea_owner; GRANT REFERENCES, SELECT ON public.ref TO rea_owner;
		ALTER TABLE rea_views.orders ADD CONSTRAINT known FOREIGN KEY (n) REFERENCES public.ref; CREATE INDEX i ON rea_views.orders (n)`)
	before := s.text(othersSQL)
	writer := connect(t, url)
	rebuilt := make(chan error)
	go func() {
		once := false
		rebuilt <- a.Rebuild(t.Context(), "orders", func(rea.RebuildProgress) {
			if !once {
				once = true
				writer.do(`BEGIN; INSERT INTO public.ref VALUES (3)`)
			}
		})
	}()
	s.waitFor("1", `SELECT count(*) FROM pg_locks WHERE relation = 'public.ref'::regclass AND NOT granted`)
	s.want("1", `SELECT count(*) FROM pg_indexes WHERE schemaname = 'rea_views' AND indexname ~ '^rea_index_'`)
	s.do(`SET lock_timeout = '5s'; INSERT INTO public.ref VALUES (4)`)
	writer.do(`COMMIT`)
	if err := <-rebuilt; err != nil {
		t.Fatal(err)
	}
	same(t, "all", s.text(othersSQL), before)
}

// An index that is built stays while the lock that the next one waits for does not come.
func TestEachIndexIsBuiltForItself(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	a := recreating(t, url)
	put(t, a.Autocommit(), order1, "A")
	if err := a.Rebuild(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	s.do(`CREATE FUNCTION public.locked(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN n; END'; GRANT USAGE ON SCHEMA public TO rea_owner;
		CREATE INDEX first ON rea_views.orders (n); CREATE INDEX second ON rea_views.orders (public.locked(n))`)
	before := s.text(othersSQL)
	holder := connect(t, url)
	holder.do(`BEGIN; SELECT pg_advisory_xact_lock(7)`)
	rebuilt := make(chan error)
	go func() { rebuilt <- a.Rebuild(t.Context(), "orders", nil) }()
	s.waitFor("1", `SELECT count(*) FROM pg_indexes WHERE schemaname = 'rea_views' AND indexname ~ '^rea_index_'`)
	holder.do(`COMMIT`)
	if err := <-rebuilt; err != nil {
		t.Fatal(err)
	}
	same(t, "all", s.text(othersSQL), before)
}

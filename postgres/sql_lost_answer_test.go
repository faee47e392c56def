package postgres_test

import (
	"bytes"
	"context"
	"net"
	neturl "net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/realtime-event-archive/rea"
)

// cutter is a proxy before a server. Once it has passed on the client's bytes that hold its word, it waits for the
// server's answer, keeps it, and cuts the connection: the server is done, and the client does not know.
type cutter struct {
	net.Listener
	word  []byte
	mutex sync.Mutex
	cuts  int
}

func newCutter(t *testing.T, url, word string) (c *cutter, through string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c = &cutter{Listener: listener, word: []byte(word)}
	network, address := "tcp", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go c.serve(client, server)
		}
	}()
	return c, withHost(t, url, listener.Addr().String())
}

func withHost(t *testing.T, url, host string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host
	return u.String()
}

func (c *cutter) serve(client, server net.Conn) {
	armed := make(chan struct{})
	var once sync.Once
	go func() {
		defer server.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], c.word) {
				once.Do(func() { close(armed) }) // before the server can answer
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-armed:
			c.mutex.Lock()
			c.cuts++
			c.mutex.Unlock()
			return
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestAnAnswerThatIsLostAfterTheCommit(t *testing.T) {
	t.Parallel()
	paid := rea.NewEvent{Type: "PaymentReceived", Payload: []byte(`{"amount": 5}`)}
	for name, c := range map[string]struct {
		word string
		call func(ctx context.Context, a *rea.Archive) error
	}{
		"an INSERT": {"INSERT INTO rea.events", func(ctx context.Context, a *rea.Archive) error {
			_, err := a.Autocommit().With(rea.Once("req-9"), rea.Expect(1)).Append(ctx, order1, paid)
			return err
		}},
		"one statement": {"try_append", func(ctx context.Context, a *rea.Archive) error {
			_, err := a.Autocommit().With(rea.Once("req-9")).Append(ctx, order1, paid)
			return err
		}},
		"a transaction": {"commit\x00", func(ctx context.Context, a *rea.Archive) error {
			return a.Do(ctx, func(tx *rea.Tx) error {
				_, err := tx.With(rea.Once("req-9")).Append(ctx, order1, paid)
				return err
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct, s, url := archive(t)
			put(t, direct.Autocommit(), order1, "OrderPlaced")
			cut, through := newCutter(t, url, c.word)
			a := open(t, with(t, with(t, through, "default_query_exec_mode", "exec"), "sslmode", "disable"))
			if err := c.call(t.Context(), a.Archive); err == nil {
				t.Fatalf("call whose answer was cut = nil, want an error")
			}
			cut.mutex.Lock()
			same(t, "cuts", cut.cuts, 1)
			cut.mutex.Unlock()
			s.waitFor("2", `SELECT count(*) FROM rea.events`)

			again, err := direct.Autocommit().With(rea.Once("req-9")).Append(t.Context(), order1, paid)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "Duplicate with the key", again.Duplicate, true)
			same(t, "Seq with the key", again.Seq(), 2)
			_, err = direct.Autocommit().With(rea.Expect(1)).Append(t.Context(), order1, paid)
			same(t, "code without the key", rea.Code(err), "conflict")
			s.want("2", `SELECT count(*) FROM rea.events`)
		})
	}
}

package cli

import (
	"fmt"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar shows how far a long command has come: a bar on a terminal, a line for each tenth elsewhere.
type bar struct {
	app    *app
	doing  string
	tenth  int64
	pool   *mpb.Progress
	drawn  *mpb.Bar
	labels chan string
}

func (a *app) newBar(doing string) *bar { return &bar{app: a, doing: doing} }

// set says that done of total are done; label says it for people.
func (b *bar) set(done, total int64, label string) {
	if total <= 0 {
		return
	}
	if b.app.env.IsTerminal(b.app.env.Stderr) {
		b.draw(done, total, label)
		return
	}
	tenth := done * 10 / total
	if tenth > b.tenth && tenth < 10 {
		b.app.say(fmt.Sprintf("%s: %d%%, %s", b.doing, done*100/total, label))
	}
	b.tenth = tenth
}

func (b *bar) draw(done, total int64, label string) {
	if b.pool == nil {
		b.labels = make(chan string, 1)
		current := ""
		b.pool = mpb.New(mpb.WithOutput(b.app.env.Stderr), mpb.WithWidth(40))
		b.drawn = b.pool.AddBar(total,
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(b.doing+" ")),
			mpb.AppendDecorators(
				decor.Percentage(decor.WCSyncSpace),
				decor.Any(func(decor.Statistics) string { // drawn by one goroutine
					select {
					case current = <-b.labels:
					default:
					}
					return "  " + current
				}),
				decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
			))
	}
	select { // the newest label
	case <-b.labels:
	default:
	}
	b.labels <- label
	b.drawn.SetCurrent(done)
}

// close takes the bar away, also of a command that has failed.
func (b *bar) close() {
	if b.pool == nil {
		return
	}
	b.drawn.Abort(true)
	b.pool.Wait()
}

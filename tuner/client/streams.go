package client

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Watch implements [tuner.Service]. It continues after the connection broke, unless the
// server is unreachable for longer than Options.RetryFor.
func (c *Client) Watch(ctx context.Context, name string, after study.Position) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		parent, err := wire.StudyName(name)
		if err == nil {
			err = c.ready(ctx)
		}
		if err != nil {
			yield(tuner.Event{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watch{client: c, request: &pb.WatchRequest{Parent: parent, After: uint64(after)}, yield: yield}
		c.follow(ctx, func() (reached, over bool, err error) {
			reached, err = w.follow(ctx)
			return reached, w.over, err
		}, func(err error) { yield(tuner.Event{}, err) })
	}
}

// follow opens one stream after another until one ends regularly, the loop over it is over,
// or the server is unreachable for too long, in which case fail gets the error. one follows
// a stream to its end, and reports whether there was a server.
func (c *Client) follow(ctx context.Context, one func() (reached, over bool, err error), fail func(error)) {
	p := newRetrier(c)
	l := c.lookOut(p.until)
	defer func() { l.end() }()
	for {
		reached, over, err := one()
		if over {
			return
		}
		if reached {
			p = newRetrier(c)
			c.troubled.Store(false)
			l.end()
			l = c.lookOut(p.until)
		}
		if err == nil {
			return
		}
		l.failed(err)
		if err := p.wait(ctx, err); err != nil {
			fail(c.conclude(ctx, err, false))
			return
		}
	}
}

// watch is one loop over events. It uses as many streams as it needs.
type watch struct {
	client  *Client
	request *pb.WatchRequest // continues after the last yielded event
	yield   func(tuner.Event, error) bool
	over    bool // the body of the loop wants no more, or has its error
}

// follow yields from one stream until it ends. reached says that there was a server. The
// error is that of the stream, or nil at its regular end.
func (w *watch) follow(ctx context.Context) (reached bool, err error) {
	stream, err := w.client.stub.Watch(ctx, w.request)
	if err != nil {
		return false, err
	}
	header, _ := stream.Header() // its error comes again
	reached = header != nil
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return reached, nil
		}
		if err != nil {
			return reached, err
		}
		h, err := wire.DecodeEvent(m)
		if err != nil {
			w.over = true
			w.yield(tuner.Event{}, wire.BadAnswer(err))
			return reached, nil
		}
		if uint64(h.Position) > w.request.After {
			w.request = &pb.WatchRequest{Parent: w.request.Parent, After: uint64(h.Position)}
		}
		if !w.yield(h, nil) {
			w.over = true
			return reached, nil
		}
	}
}

// Backup implements [tuner.Service]. A failed backup is not tried again, and the written
// bytes are not a backup.
func (c *Client) Backup(ctx context.Context, out io.Writer) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.stub.Backup(ctx, &pb.BackupRequest{})
	if err != nil {
		return c.conclude(ctx, err, false)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.conclude(ctx, err, false)
		}
		if _, err := out.Write(m.GetChunk()); err != nil {
			return err
		}
	}
}

// Columns implements [tuner.Service]. An answer that breaks off is asked for again.
func (c *Client) Columns(ctx context.Context, name string, q tuner.ColumnQuery) (tuner.Columns, error) {
	m, err := wire.EncodeColumnQuery(name, q)
	if err != nil {
		return tuner.Columns{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	whole := func(ctx context.Context, m *pb.GetColumnsRequest, o ...grpc.CallOption) (tuner.Columns, error) {
		stream, err := c.stub.GetColumns(ctx, m, o...)
		if err != nil {
			return tuner.Columns{}, err
		}
		return wire.DecodeColumns(stream.Recv, io.EOF)
	}
	return call(ctx, c, reads, whole, m, func(c tuner.Columns) (tuner.Columns, error) { return c, nil })
}

// WatchStudies implements [tuner.Service]. After the connection broke it yields the studies
// that differ from what it yielded before, unless the server is unreachable for longer than
// Options.RetryFor.
func (c *Client) WatchStudies(ctx context.Context) iter.Seq2[tuner.StudyNews, error] {
	return func(yield func(tuner.StudyNews, error) bool) {
		if err := c.ready(ctx); err != nil {
			yield(tuner.StudyNews{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &studiesWatch{client: c, known: make(map[store.StudyID]study.Position), yield: yield}
		c.follow(ctx, func() (reached, over bool, err error) {
			reached, err = w.follow(ctx)
			return reached, w.over, err
		}, func(err error) { yield(tuner.StudyNews{}, err) })
	}
}

// studiesWatch is one loop over news of studies. It uses as many streams as it needs.
type studiesWatch struct {
	client *Client
	known  map[store.StudyID]study.Position // studies that were yielded
	listed bool                             // the loop has had all studies
	yield  func(tuner.StudyNews, error) bool
	over   bool // the body of the loop wants no more, or has its error
}

// follow yields from one stream until it ends. The stream begins with all studies again.
func (w *studiesWatch) follow(ctx context.Context) (reached bool, err error) {
	stream, err := w.client.stub.WatchStudies(ctx, &pb.WatchStudiesRequest{})
	if err != nil {
		return false, err
	}
	header, _ := stream.Header() // its error comes again
	reached = header != nil
	present := make(map[store.StudyID]bool)
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return reached, nil
		}
		if err != nil {
			return reached, err
		}
		news, err := wire.DecodeStudyNews(m)
		if err != nil {
			w.over = true
			w.yield(tuner.StudyNews{}, wire.BadAnswer(err))
			return reached, nil
		}
		if news = w.fresh(news, present); len(news.Studies)+len(news.Deleted) == 0 && !news.Listed {
			continue
		}
		if !w.yield(news, nil) {
			w.over = true
			return reached, nil
		}
	}
}

// fresh leaves out studies that were yielded before. When a later stream has listed all studies, it
// adds those that have gone meanwhile.
func (w *studiesWatch) fresh(news tuner.StudyNews, present map[store.StudyID]bool) tuner.StudyNews {
	studies := news.Studies
	news.Studies = nil
	for _, s := range studies {
		present[s.ID] = true
		if at, had := w.known[s.ID]; !had || at != s.Position || s.Unread != "" {
			news.Studies = append(news.Studies, s)
		}
		w.known[s.ID] = s.Position
	}
	if news.Listed {
		for id := range w.known {
			if !present[id] {
				news.Deleted = append(news.Deleted, id)
			}
		}
		news.Listed, w.listed = !w.listed, true
	}
	for _, id := range news.Deleted {
		delete(w.known, id)
	}
	return news
}

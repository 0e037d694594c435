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
func (c *Client) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	parent, err := wire.StudyName(name)
	if err != nil {
		return func(yield func(tuner.Event, error) bool) { yield(tuner.Event{}, err) }
	}
	return func(yield func(tuner.Event, error) bool) {
		w := from
		open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchResponse], error) {
			return c.stub.Watch(ctx, &pb.WatchRequest{Parent: parent, After: uint64(w.After), Uid: uint64(w.Study)})
		}
		follow(ctx, c, open, wire.DecodeEvent, func(h tuner.Event, err error) bool {
			return w.Yield(yield, h, err)
		})
	}
}

// follow yields the messages of one stream after another, until one ends regularly, the
// loop over them is over, or the server is unreachable for too long.
func follow[M, T any](ctx context.Context, c *Client, open func(context.Context) (grpc.ServerStreamingClient[M], error), decode func(*M) (T, error), yield func(T, error) bool) {
	var none T
	if err := c.ready(ctx); err != nil {
		yield(none, err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newRetrier(c)
	l := c.lookOut(p.until)
	defer func() { l.end() }()
	for {
		reached, err := one(ctx, open, decode, yield)
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
			yield(none, c.conclude(ctx, err, false))
			return
		}
	}
}

// one yields the messages of one stream. reached says that there was a server. The error is
// that of the stream, or nil if there is nothing more to yield.
func one[M, T any](ctx context.Context, open func(context.Context) (grpc.ServerStreamingClient[M], error), decode func(*M) (T, error), yield func(T, error) bool) (reached bool, err error) {
	stream, err := open(ctx)
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
		v, err := decode(m)
		if err != nil {
			err = wire.BadAnswer(err)
		}
		if !yield(v, err) || err != nil {
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
		w := &studiesWatch{known: make(map[store.StudyID]study.Position)}
		open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchStudiesResponse], error) {
			w.present = make(map[store.StudyID]bool) // a stream begins with all studies
			return c.stub.WatchStudies(ctx, &pb.WatchStudiesRequest{})
		}
		follow(ctx, c, open, wire.DecodeStudyNews, func(news tuner.StudyNews, err error) bool {
			if err == nil {
				if news = w.fresh(news); len(news.Studies)+len(news.Deleted) == 0 && !news.Listed {
					return true
				}
			}
			return yield(news, err)
		})
	}
}

// studiesWatch is one loop over news of studies. It uses as many streams as it needs.
type studiesWatch struct {
	known   map[store.StudyID]study.Position // studies that were yielded
	present map[store.StudyID]bool           // in the present stream
	listed  bool                             // the loop has had all studies
}

// fresh leaves out studies that were yielded before. When a later stream has listed all
// studies, it adds those that have gone meanwhile.
func (w *studiesWatch) fresh(news tuner.StudyNews) tuner.StudyNews {
	studies := news.Studies
	news.Studies = nil
	for _, s := range studies {
		w.present[s.ID] = true
		if at, had := w.known[s.ID]; !had || at != s.Position || s.Unread != "" {
			news.Studies = append(news.Studies, s)
		}
		w.known[s.ID] = s.Position
	}
	if news.Listed {
		for id := range w.known {
			if !w.present[id] {
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

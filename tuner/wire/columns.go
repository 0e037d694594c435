package wire

import (
	"bytes"
	"fmt"
	"iter"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeColumnQuery encodes a query of columns of the named study.
func EncodeColumnQuery(name string, q tuner.ColumnQuery) (*pb.GetColumnsRequest, error) {
	parent, err := StudyName(name)
	if err != nil {
		return nil, err
	}
	return &pb.GetColumnsRequest{Parent: parent, Names: q.Names, After: uint64(q.After)}, nil
}

// DecodeColumnQuery reads a query of columns, with the study's name.
func DecodeColumnQuery(m *pb.GetColumnsRequest) (string, tuner.ColumnQuery, error) {
	name, err := ParseStudyName(m.GetParent())
	return name, tuner.ColumnQuery{Names: m.GetNames(), After: study.Position(m.GetAfter())}, err
}

// EncodeColumns yields the messages of columns, with chunks up to a size.
func EncodeColumns(c tuner.Columns, size int) iter.Seq[*pb.GetColumnsResponse] {
	return func(yield func(*pb.GetColumnsResponse) bool) {
		head := &pb.ColumnsHead{
			Uid: uint64(c.ID), Position: uint64(c.Position), Time: encodeTime(c.Time), Trials: int64(c.Trials), Rows: int64(c.Rows),
		}
		for _, column := range c.Columns {
			head.Columns = append(head.Columns, &pb.Column{
				Name: column.Name, Type: pb.ColumnType(column.Type), Labels: column.Labels, Ticks: encodeTicks(column.Ticks),
			})
		}
		if !yield(&pb.GetColumnsResponse{Head: head}) {
			return
		}
		var chunk []byte
		for _, column := range c.Columns {
			for data := column.Data; len(data) > 0; {
				n := min(size-len(chunk), len(data))
				chunk, data = append(chunk, data[:n]...), data[n:]
				if len(chunk) < size {
					continue
				}
				if !yield(&pb.GetColumnsResponse{Chunk: chunk}) {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			yield(&pb.GetColumnsResponse{Chunk: chunk})
		}
	}
}

func encodeTicks(ticks []space.Tick) (out []*pb.Tick) {
	for _, t := range ticks {
		out = append(out, &pb.Tick{At: t.At, Value: encodeValue(t.Value)})
	}
	return out
}

// DecodeColumns reads the messages of columns. next returns them, and io.EOF at the end.
func DecodeColumns(next func() (*pb.GetColumnsResponse, error), end error) (tuner.Columns, error) {
	first, err := next()
	if err != nil {
		return tuner.Columns{}, err
	}
	var d decoder
	head := first.GetHead()
	c := tuner.Columns{
		ID: store.StudyID(head.GetUid()), Position: study.Position(head.GetPosition()), Time: d.time("time", head.GetTime()),
		Trials: number[int](&d, "trials", head.GetTrials()), Rows: number[int](&d, "rows", head.GetRows()),
	}
	width := 0
	for _, m := range head.GetColumns() {
		column := tuner.Column{Name: m.GetName(), Type: enum(&d, "type", m.GetType(), tuner.Float64), Labels: m.GetLabels()}
		for _, t := range m.GetTicks() {
			column.Ticks = append(column.Ticks, space.Tick{At: t.GetAt(), Value: decodeValue(t.GetValue())})
		}
		width += column.Type.Size()
		c.Columns = append(c.Columns, column)
	}
	if d.err != nil {
		return c, BadAnswer(d.err)
	}
	var data bytes.Buffer
	for {
		m, err := next()
		if err == end {
			break
		}
		if err != nil {
			return c, err
		}
		data.Write(m.GetChunk())
	}
	if data.Len() != width*c.Rows {
		return c, BadAnswer(fmt.Errorf("the columns have %d bytes, want %d for %d rows", data.Len(), width*c.Rows, c.Rows))
	}
	for i := range c.Columns {
		c.Columns[i].Data = data.Next(c.Columns[i].Type.Size() * c.Rows)
	}
	return c, nil
}

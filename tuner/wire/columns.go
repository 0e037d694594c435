package wire

import (
	"bytes"
	"fmt"
	"iter"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
)

// EncodeColumnQuery encodes a query of columns of the named study, and DecodeColumnQuery
// reads it.
var EncodeColumnQuery, DecodeColumnQuery = request[*pb.GetColumnsRequest, tuner.ColumnQuery](nil)

// EncodeColumns yields the messages of columns, with chunks up to a size.
func EncodeColumns(c tuner.Columns, size int) iter.Seq[*pb.GetColumnsResponse] {
	return func(yield func(*pb.GetColumnsResponse) bool) {
		head, _ := encode[*pb.ColumnsHead](c) // which has nothing that is refused
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

// DecodeColumns reads the messages of columns. next returns them, and io.EOF at the end.
func DecodeColumns(next func() (*pb.GetColumnsResponse, error), end error) (tuner.Columns, error) {
	first, err := next()
	if err != nil {
		return tuner.Columns{}, err
	}
	c, err := decode[tuner.Columns](first.GetHead())
	if err != nil {
		return c, BadAnswer(err)
	}
	width := 0
	for _, column := range c.Columns {
		width += column.Type.Size()
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

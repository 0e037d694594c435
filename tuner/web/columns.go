package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// usualColumns are those that each view of a study needs. The page asks for others when it
// shows them.
var usualColumns = []string{"state", "feasible", "value/", "parameter/"}

// lightColumns are those of usualColumns without the parameters.
var lightColumns = usualColumns[:3:3]

// furtherColumns are those that the page may ask for besides.
var furtherColumns = map[string]bool{
	"origin": true, "phase": true, "epoch": true, "created": true, "started": true, "ended": true, "seen": true, "cost": true, "worker": true,
	"report/": true, "metric/": true, "config/": true,
}

// columnsHead begins the columns of a study's trials. Four bytes with its length come
// before it, and after it the columns, each from its offset on in little-endian order.
type columnsHead struct {
	UID      uint64         `json:"uid"`
	N        int            `json:"n"`    // trials of the study
	Rows     int            `json:"rows"` // of the columns, fewer if there is a column number
	Position uint64         `json:"position"`
	Columns  []columnFormat `json:"columns"`
}

// columnFormat describes a column. Its offset is a multiple of eight, as arrays in a
// browser need it.
type columnFormat struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"` // u8, u16, u32, i64 or f64
	Offset int      `json:"offset"`
	Labels []string `json:"labels,omitempty"` // of codes
	Axis   *axis    `json:"axis,omitempty"`   // of a parameter
}

var columnTypes = map[tuner.ColumnType]string{tuner.Uint8: "u8", tuner.Uint16: "u16", tuner.Uint32: "u32", tuner.Int64: "i64", tuner.Float64: "f64"}

// columns sends the trials of a study as columns, all or those that changed.
func (f *Face) columns(w http.ResponseWriter, r *http.Request) {
	after, err := position(r)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	names := usualColumns
	if r.URL.Query().Get("light") != "" {
		names = lightColumns
	}
	for name := range strings.SplitSeq(r.URL.Query().Get("with"), ",") {
		if furtherColumns[name] {
			names = append(names[:len(names):len(names)], name)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	q := &pb.GetColumnsRequest{Parent: "studies/" + r.PathValue("study"), Names: names, After: after}
	columns, all, err := f.readColumns(ctx, r, q)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	data, err := encodeColumns(columns, all)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_ = inPieces(w, data, f.writeTimeout)
}

// readColumns reads columns through the gate as the caller, and the axes of the study.
func (f *Face) readColumns(ctx context.Context, r *http.Request, q *pb.GetColumnsRequest) (columns tuner.Columns, all map[string]*axis, err error) {
	if q.GetAfter() == 0 { // the page has them otherwise
		m, err := f.lookAt(ctx, r)
		if err != nil {
			return columns, nil, err
		}
		s, err := wire.DecodeStudy(m)
		if err != nil {
			return columns, nil, err
		}
		if all, err = axes(s.Spec.Space); err != nil {
			return columns, nil, err
		}
	}
	admitted, err := f.pipe.Admit(ctx, callerOf(r), pb.Tuner_GetColumns_FullMethodName)
	if err != nil {
		return columns, nil, err
	}
	var parts []*pb.GetColumnsResponse
	err = f.pipe.Stream(admitted, pb.Tuner_GetColumns_FullMethodName, q, func(m proto.Message) error {
		if m != nil {
			parts = append(parts, m.(*pb.GetColumnsResponse))
		}
		return nil
	})
	if err != nil {
		return columns, nil, err
	}
	columns, err = wire.DecodeColumns(func() (*pb.GetColumnsResponse, error) {
		if len(parts) == 0 {
			return nil, io.EOF
		}
		part := parts[0]
		parts = parts[1:]
		return part, nil
	}, io.EOF)
	return columns, all, err
}

// encodeColumns writes the head and the columns, each at a multiple of eight bytes.
func encodeColumns(c tuner.Columns, all map[string]*axis) ([]byte, error) {
	head := columnsHead{UID: uint64(c.ID), N: c.Trials, Rows: c.Rows, Position: uint64(c.Position), Columns: []columnFormat{}}
	size := 0
	for _, column := range c.Columns {
		format := columnFormat{Name: column.Name, Type: columnTypes[column.Type], Offset: size, Labels: column.Labels}
		if name, ok := strings.CutPrefix(column.Name, "parameter/"); ok {
			format.Axis = all[name]
		}
		head.Columns = append(head.Columns, format)
		size += multiple(len(column.Data))
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	length := multiple(4+len(text)) - 4
	out := make([]byte, 0, 4+length+size)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(length)), text...)
	for len(out) < 4+length {
		out = append(out, ' ')
	}
	for _, column := range c.Columns {
		out = append(out, column.Data...)
		out = append(out, make([]byte, multiple(len(column.Data))-len(column.Data))...)
	}
	return out, nil
}

// multiple is the least multiple of eight that is not below n.
func multiple(n int) int { return (n + 7) &^ 7 }

package tuner

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// ColumnQuery selects columns and rows of [Service.Columns].
type ColumnQuery struct {
	// Names of columns, in the order of the answer. A name that ends with a slash selects
	// all columns that begin with it. Without names the answer has all columns.
	Names []string
	// After, if not 0, leaves out trials without an event after this position. If there
	// are many events, the answer has all trials nevertheless.
	After study.Position
}

// Columns has trials as columns of numbers, one row for each trial, by number. Without the
// column [ColumnNumber] row i is trial i.
type Columns struct {
	ID       store.StudyID
	Position study.Position
	Time     time.Time // of the answer, by the clock of the service
	Trials   int       // of the study
	Rows     int
	Columns  []Column
}

// Column is one number of every row.
//
// Names of columns are
//
//	number                     the trial's number, present only if rows are left out
//	state, origin, phase       codes, whose names are Labels
//	worker                     codes of the workers that had the trials last, whose names
//	                           are Labels, in an order that may differ from call to call.
//	                           Past the first 1,000 workers all are "others"
//	epoch                      at most 255
//	feasible                   1 for a completed trial that keeps the constraints, or 0
//	created, started, ended,
//	seen                       seconds since 1970, NaN for none
//	cost                       NaN if not told
//	value/METRIC               the mean of an objective, NaN for none
//	metric/METRIC              the mean of a metric with a constraint, NaN for none
//	report/METRIC              the value of an objective reported last, NaN for none
//	mean/METRIC, sd/METRIC,
//	bound/METRIC               what the model predicted when it suggested the trial, or NaN
//	parameter/NAME             the coordinate in the unit cube times 65,534, or 65,535 for
//	                           an inactive parameter
//	config/NAME                the value of a parameter, of a list of values its code. An
//	                           inactive one is NaN, 0 or code 0
type Column struct {
	Name string
	Type ColumnType
	// Labels are the names of codes. Of code 0, which means none, the name is empty.
	Labels []string
	// Ticks are values of a parameter with their coordinates.
	Ticks []space.Tick
	// Data has the numbers, little-endian. Do not change it.
	Data []byte
}

// ColumnNumber is the column with the number of the trial of each row.
const ColumnNumber = "number"

// InactiveCoordinate marks a parameter that a trial does not have. Coordinate u of another
// is u times LargestCoordinate, rounded.
const (
	LargestCoordinate  = math.MaxUint16 - 1
	InactiveCoordinate = math.MaxUint16
)

// ColumnType is the type of the numbers of a column.
type ColumnType uint8

// The types.
const (
	Uint8 ColumnType = iota + 1
	Uint16
	Uint32
	Int64
	Float64
)

// Size returns the bytes of a number.
func (t ColumnType) Size() int {
	return map[ColumnType]int{Uint8: 1, Uint16: 2, Uint32: 4, Int64: 8, Float64: 8}[t]
}

// At returns the number in row i. An Int64 beyond 2⁵³ is rounded.
func (c *Column) At(i int) float64 {
	switch c.Type {
	case Uint8:
		return float64(c.Data[i])
	case Uint16:
		return float64(binary.LittleEndian.Uint16(c.Data[2*i:]))
	case Uint32:
		return float64(binary.LittleEndian.Uint32(c.Data[4*i:]))
	case Int64:
		return float64(int64(binary.LittleEndian.Uint64(c.Data[8*i:])))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(c.Data[8*i:]))
	}
}

// Find returns the named column, or nil.
func (c *Columns) Find(name string) *Column {
	for i := range c.Columns {
		if c.Columns[i].Name == name {
			return &c.Columns[i]
		}
	}
	return nil
}

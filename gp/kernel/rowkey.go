package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
)

// RowKey returns a text that rows of one kind share exactly if they are the same input,
// with −0 equal to 0. It knows dense and sparse numbers, strings and integers.
func RowKey(x Rows, i int) (string, bool) {
	switch p := x.(type) {
	case interface{ Row(int) []float64 }:
		return floatsKey(p.Row(i)), true
	case interface{ Row(int) []float32 }:
		return floatsKey(p.Row(i)), true
	case interface {
		Row(int) ([]int32, []float64)
	}:
		return sparseKey(p.Row(i))
	case interface {
		Row(int) ([]int32, []float32)
	}:
		return sparseKey(p.Row(i))
	case interface{ Row(int) string }:
		return "t" + p.Row(i), true
	case interface{ Row(int) int }:
		return fmt.Sprint(p.Row(i)), true
	}
	return "", false
}

func floatsKey[T Float](row []T) string {
	b := append(make([]byte, 0, 8*len(row)+1), 'd')
	for _, v := range row {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)+0)) // −0 + 0 is 0
	}
	return string(b)
}

func sparseKey[T Float](col []int32, val []T) (string, bool) {
	b := append(make([]byte, 0, 12*len(col)+1), 's')
	for k, c := range col {
		if val[k] == 0 {
			continue
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(c))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(val[k])))
	}
	return string(b), true
}

package falkon

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// TestMNIST fits MNIST with ten outputs at once and M = $BKB_MNIST centres. It takes
// about 15 s of computing per thousand centres, beside reading.
func TestMNIST(t *testing.T) {
	racetest.Alone(t)
	m, err := strconv.Atoi(os.Getenv("BKB_MNIST"))
	if err != nil {
		t.Skip("takes minutes: BKB_MNIST=1000 go test -run TestMNIST ./learners/falkon runs it with so many centres")
	}
	dir := datatest.Folder(t)
	open := func(images, labels string) *dataset.Table {
		o := dataset.Options{Float32: true, TargetPath: filepath.Join(dir, "mnist", labels)}
		return must(dataset.Open(background, o, filepath.Join(dir, "mnist", images)))
	}
	table := open("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
	e := must(table.FitEncoding(background, nil, data.EncodingOptions{KeepInputs: true}))
	train := must(table.Encode(background, e))
	test := must(open("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz").Encode(background, e))
	start := cpuSeconds()
	p := Params{Kernel: kerneltest.Gaussian(5 * 255), Lambda: 1e-7, Centers: m, Iterations: 10, Precision: kernel.Float32}
	model := must(p.Fit(background, train, learners.Options{Progress: func(p learners.Progress) error {
		t.Logf("iteration %d: residual %.2g, %.0f s", p.Iteration, p.Residual, cpuSeconds()-start)
		return nil
	}}))
	seconds := cpuSeconds() - start
	y := must(learners.Targets(background, test))
	f := make([]float64, len(y))
	if err := model.Predict(background, f, test); err != nil {
		t.Fatal(err)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	wrong := learners.ClassError(f, y, test.Outputs())
	t.Logf("M = %d: class error %.4f, %.0f CPU seconds, %.2f GB from the system", m, wrong, seconds, float64(mem.Sys)/1e9)
	if wrong > 0.05 {
		t.Errorf("class error %.4f", wrong)
	}
}

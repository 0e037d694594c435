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

// mnist returns the training and test rows of MNIST, and the number of centres to use,
// which is $BKB_MNIST.
func mnist(t *testing.T) (train, test data.Source, centers int) {
	t.Helper()
	racetest.Alone(t)
	centers, err := strconv.Atoi(os.Getenv("BKB_MNIST"))
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
	return must(table.Encode(background, e)), must(open("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz").Encode(background, e)), centers
}

// TestMNIST fits MNIST with ten outputs at once and M = $BKB_MNIST centres. It takes
// about 15 s of computing per thousand centres, beside reading.
func TestMNIST(t *testing.T) {
	train, test, m := mnist(t)
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

// TestMNISTClasses compares the multinomial loss with one against the rest, on the first
// 10,000 rows of MNIST.
func TestMNISTClasses(t *testing.T) {
	train, test, m := mnist(t)
	train = must(data.Subset(train, upTo(10000)))
	y := must(learners.Targets(background, test))
	f := make([]float64, len(y))
	type result struct{ wrong, loss, seconds float64 }
	results := map[Multiclass]result{}
	for _, multiclass := range []Multiclass{SoftmaxLoss, OneVsRest} {
		start := cpuSeconds()
		p := LogisticParams{Params: Params{Kernel: kerneltest.Gaussian(5 * 255), Lambda: 1e-6, Centers: m, Precision: kernel.Float32}, Multiclass: multiclass}
		model := must(p.Fit(background, train, learners.Options{}))
		seconds := cpuSeconds() - start
		if err := model.Predict(background, f, test); err != nil {
			t.Fatal(err)
		}
		r := result{learners.ClassError(f, y, 10), (learners.Scoring{Link: learners.LinkOf(model)}).Measure("log-loss")(f, y, 10), seconds}
		t.Logf("%q: class error %.4f, log loss %.4f, %.1f CPU seconds", multiclass, r.wrong, r.loss, r.seconds)
		results[multiclass] = r
	}
	if soft, one := results[SoftmaxLoss], results[OneVsRest]; soft.wrong > one.wrong+0.002 || soft.loss > one.loss {
		t.Errorf("the multinomial loss is worse: %+v, one against the rest %+v", soft, one)
	}
}

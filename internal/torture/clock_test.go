//go:build linux

package torture

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bkbtuner/bkb/internal/pgtest"
)

// clockSource is a library for LD_PRELOAD. It adds the seconds that a file holds to the
// time of day, and leaves other clocks alone.
const clockSource = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead;

__attribute__((constructor)) static void begin(void) {
	void *p = mmap(0, 8, PROT_READ, MAP_SHARED, open(getenv("BKB_CLOCK"), O_RDONLY), 0);
	if (p == MAP_FAILED) abort();
	ahead = p;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, id, t);
	if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *ahead;
	return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	int failed = clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
	return failed;
}

time_t time(time_t *to) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (to) *to = now.tv_sec;
	return now.tv_sec;
}
`

// ownClock restarts a database with a time of day that [setClock] sets. It needs a C
// compiler.
func ownClock(pg *pgtest.Server) error {
	source, library := filepath.Join(pg.Dir, "clock.c"), filepath.Join(pg.Dir, "clock.so")
	if err := os.WriteFile(source, []byte(clockSource), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		return fmt.Errorf("the library for the database's clock: %w: %s", err, out)
	}
	if err := setClock(pg, 0); err != nil {
		return err
	}
	pg.Env = []string{"LD_PRELOAD=" + library, "BKB_CLOCK=" + filepath.Join(pg.Dir, "clock")}
	pg.Shutdown()
	return pg.Run()
}

// setClock sets how much a database's time of day is ahead of this machine's, in seconds.
func setClock(pg *pgtest.Server, ahead time.Duration) error {
	f, err := os.OpenFile(filepath.Join(pg.Dir, "clock"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)))
	return err
}

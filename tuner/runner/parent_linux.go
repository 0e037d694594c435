package runner

import "syscall"

// endWithParent makes the system end a command when the thread that started it ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

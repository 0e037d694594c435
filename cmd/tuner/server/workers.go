package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/studies"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newWorkers(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Print what starts workers on a cluster",
		Long: `Workers prints a script for Slurm or a Job for Kubernetes that runs tuner run on many
machines. The scheduler of the cluster starts, stops and restarts the workers.

The machines reach the study through a server. docs/parallel.md has recipes for other
schedulers.`,
		Example: "  tuner workers slurm digits --parallel 32 -- python train.py {args} | sbatch",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cli.Connects(cli.ToServer, newSlurm(g), newKubernetes(g))...)
	cmd.AddCommand(newInstall())
	return cmd
}

// workerFlags are the flags of workers on any cluster.
type workerFlags struct {
	study      string
	command    []string
	parallel   int
	gpus, cpus int
	memory     string
}

func (w *workerFlags) add(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Workers"}, func(fs *pflag.FlagSet) {
		fs.IntVarP(&w.parallel, "parallel", "j", 1, "number of workers")
		fs.IntVar(&w.gpus, "gpus", 0, "GPUs of a worker")
		fs.IntVar(&w.cpus, "cpus", 0, "CPUs of a worker (default the scheduler's)")
		fs.StringVar(&w.memory, "memory", "", "`memory` of a worker, in the scheduler's unit, such as 8G (default the scheduler's)")
	})
}

// parse reads the study and the command, and returns the address of the server.
func (w *workerFlags) parse(g *cli.Globals, cmd *cobra.Command, args []string) (server string, err error) {
	if w.study, w.command, err = studies.ParseCommand(g, cmd, args); err != nil {
		return "", err
	}
	if err := cli.CheckName(w.study); err != nil {
		return "", err
	}
	for _, f := range []struct {
		name  string
		value int
		least int
	}{{"parallel", w.parallel, 1}, {"gpus", w.gpus, 0}, {"cpus", w.cpus, 0}} {
		if f.value < f.least {
			return "", cli.Usagef("--%s %d: must be at least %d", f.name, f.value, f.least)
		}
	}
	if strings.ContainsAny(w.memory, "\n\r") {
		return "", cli.Usagef("--memory %q: must be one line, such as 8G", w.memory)
	}
	switch server = g.Address(); {
	case g.Db != "" || g.Store != "" || server == "":
		return "", cli.Usagef("the workers of a cluster need a server; give --server HOST:PORT or set TUNER_SERVER, and leave --db and --store out")
	case client.Local(server):
		return "", cli.Usagef("--server %s: other machines cannot reach it; give the name of the machine in the network", server)
	}
	return server, nil
}

// prints is the RunE of a command that prints a text for a server.
func (w *workerFlags) prints(g *cli.Globals, script func(g *cli.Globals, server string) (string, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		server, err := w.parse(g, cmd, args)
		if err != nil {
			return err
		}
		text, err := script(g, server)
		if err == nil {
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
		}
		return err
	}
}

// optional formats a text that is there on a condition. (text/template would keep every
// exported method in the program, which makes it a quarter larger.)
func optional(there bool, format string, args ...any) string {
	if !there {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// present leaves out the texts that are not there.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

type slurmFlags struct {
	workerFlags
	limit   time.Duration
	logDir  string
	options []string
}

func newSlurm(g *cli.Globals) *cobra.Command {
	var s slurmFlags
	cmd := &cobra.Command{
		Use:   "slurm STUDY [flags] -- COMMAND [ARG…]",
		Short: "Print an array job for sbatch",
		Long: `Slurm prints an array job. Each of its tasks runs trials until the study has finished.

Slurm sends SIGTERM one minute before the time limit. The task then ends its command and
leaves the trial. If Slurm starts the task again, it continues with that trial. Another
worker gets the trial when its lease expires.

Put the folder of the logs, the file of --token-file and the program on a disk that all
nodes have. Placeholders of the command are those of tuner run.`,
		Example: `  tuner workers slurm digits --server head:7070 --token-file w.token \
    --ca ca.pem --parallel 32 --gpus 1 -- python train.py {args} | sbatch`,
		RunE: s.prints(g, s.script),
	}
	s.add(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Slurm"}, func(fs *pflag.FlagSet) {
		fs.DurationVar(&s.limit, "time", 0, "time limit of a task, such as 12h (default Slurm's)")
		fs.StringVar(&s.logDir, "log-dir", "", "`directory` of logs, with one for each task (default STUDY.logs)")
		fs.StringArrayVar(&s.options, "option", nil, "`option` of sbatch, such as --partition=gpu (repeatable)")
	})
	cli.Register(cmd, "log-dir", cli.Folders)
	return cmd
}

func (s *slurmFlags) script(g *cli.Globals, server string) (string, error) {
	limit := ""
	switch {
	case s.limit < 0:
		return "", cli.Usagef("--time %s: must be above 0, such as 12h", s.limit)
	case s.limit > 0:
		seconds := int((s.limit + time.Second - 1) / time.Second)
		limit = fmt.Sprintf("%d-%02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{"exec", cli.ShellQuote(program), "--server", cli.ShellQuote(server)}
	for flag, path := range g.Credentials() {
		whole, err := filepath.Abs(path) // a task may start in another folder
		if err != nil {
			return "", err
		}
		words = append(words, "--"+flag, cli.ShellQuote(whole))
	}
	if g.Insecure {
		words = append(words, "--insecure")
	}
	logs, err := filepath.Abs(cmp.Or(s.logDir, s.study+".logs"))
	if err != nil {
		return "", err
	}
	// The folder gives a task that starts again the name of its first start.
	words = append(words, "run", s.study, "--format", "none", "--log-dir", cli.ShellQuote(logs+"/")+`"$SLURM_ARRAY_TASK_ID"`, "--")
	for _, arg := range s.command {
		words = append(words, cli.ShellQuote(arg))
	}
	lines := present(
		"#!/bin/sh",
		"#SBATCH --job-name=tuner-"+s.study,
		fmt.Sprintf("#SBATCH --array=1-%d", s.parallel),
		"#SBATCH --requeue",
		"#SBATCH --open-mode=append",
		"#SBATCH --output=tuner-"+s.study+"-%a.log",
		"#SBATCH --signal=B:TERM@60",
		optional(s.gpus > 0, "#SBATCH --gpus=%d", s.gpus),
		optional(s.cpus > 0, "#SBATCH --cpus-per-task=%d", s.cpus),
		optional(s.memory != "", "#SBATCH --mem=%s", s.memory),
		optional(limit != "", "#SBATCH --time=%s", limit),
	)
	for _, o := range s.options {
		if !strings.HasPrefix(o, "-") || strings.ContainsAny(o, "\n\r") {
			return "", cli.Usagef("--option %q: must be one option of sbatch, such as --partition=gpu", o)
		}
		lines = append(lines, "#SBATCH "+o)
	}
	return strings.Join(append(lines, strings.Join(words, " ")), "\n") + "\n", nil
}

type kubernetesFlags struct {
	workerFlags
	image, tuner      string
	secret, namespace string
	user              int
}

func newKubernetes(g *cli.Globals) *cobra.Command {
	var k kubernetesFlags
	cmd := &cobra.Command{
		Use:   "kubernetes STUDY --image IMAGE [flags] -- COMMAND [ARG…]",
		Short: "Print a Job for kubectl",
		Long: `Kubernetes prints a Job that is a work queue. Each of its pods runs trials until the study
has finished, in an image of yours. An init container copies this program into the pod.

A pod that the cluster evicts is replaced, and its trial is handed out again when its
lease expires. The pods need no access to the API of Kubernetes. In a namespace with the
Pod Security level restricted, give --user.

The Secret has the token of the workers as token. Without --insecure it also
has the CA certificate of the server as ca.pem:
  kubectl create secret generic tuner --from-file=token=w.token \
    --from-file=ca.pem`,
		Example: `  tuner workers kubernetes digits --server tuner:7070 --parallel 32 --gpus 1 \
    --image my/train:1 -- python train.py {args} | kubectl apply -f -`,
		RunE: k.prints(g, k.job),
	}
	k.add(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Kubernetes"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&k.image, "image", "", "`image` with the command")
		fs.StringVar(&k.tuner, "tuner-image", "bkb-tuner", "`image` with this program as /tuner")
		fs.StringVar(&k.secret, "secret", "tuner", "`name` of the Secret with the token")
		fs.StringVar(&k.namespace, "namespace", "", "`namespace` of the Job (default that of kubectl)")
		fs.IntVar(&k.user, "user", 0, "`id` of the user that runs the command, without capabilities (default the image's user)")
	})
	return cmd
}

// jobName is the name of a Job for a study. Kubernetes allows no _, and the names of the
// pods, which are longer, may have 63 bytes.
func jobName(study string) string {
	name := strings.NewReplacer("_", "-", ".", "-").Replace(study)
	return strings.TrimRight(fmt.Sprintf("tuner-%.50s", name), "-")
}

// yamlText writes a text for YAML, of which JSON is a part.
func yamlText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// jobText is the text of a Job. What is in braces without a space is replaced.
const jobText = `apiVersion: batch/v1
kind: Job
metadata:
  name: {name}{namespace}
spec:
  parallelism: {parallel}
  backoffLimit: {backoff}
  podReplacementPolicy: Failed
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions: [{type: DisruptionTarget, status: "True"}]
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {seccompProfile: {type: RuntimeDefault}}
      initContainers:
        - name: tuner
          image: {tuner}
          command: [/tuner, workers, install, /bkb/tuner]
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts: [{name: tuner, mountPath: /bkb}]
      containers:
        - name: worker
          image: {image}
          command: [{command}]
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: TUNER_TOKEN, valueFrom: {secretKeyRef: {name: {secret}, key: token}}}
          securityContext: {{user}allowPrivilegeEscalation: false{capabilities}}{limits}
          volumeMounts: [{name: tuner, mountPath: /bkb}{mount}]
      volumes:
        - {name: tuner, emptyDir: {}}{volume}
`

func (k *kubernetesFlags) job(g *cli.Globals, server string) (string, error) {
	if k.image == "" {
		return "", cli.Usagef("there is no --image with the command; name one, such as --image my/train:1")
	}
	for flag := range g.Credentials() {
		return "", cli.Usagef("--%s has no effect in a pod; leave it out, and put the file into the Secret %s", flag, k.secret)
	}
	if k.user < 0 {
		return "", cli.Usagef("--user %d: must be above 0, such as 1000", k.user)
	}
	command := []string{"/bkb/tuner", "--server", server}
	if g.Insecure {
		command = append(command, "--insecure")
	} else {
		command = append(command, "--ca", "/bkb-secret/ca.pem")
	}
	command = append(command, "run", k.study, "--format", "none", "--log-dir", "/bkb/logs", "--worker", "$(POD_NAME)", "--")
	for _, arg := range k.command {
		command = append(command, strings.ReplaceAll(arg, "$(", "$$(")) // which Kubernetes would replace
	}
	for i, word := range command {
		command[i] = yamlText(word)
	}
	limits := strings.Join(present(
		optional(k.cpus > 0, "cpu: %d", k.cpus),
		optional(k.memory != "", "memory: %s", yamlText(k.memory)),
		optional(k.gpus > 0, "nvidia.com/gpu: %d", k.gpus),
	), ", ")
	return strings.NewReplacer(
		"{name}", jobName(k.study),
		"{namespace}", optional(k.namespace != "", "\n  namespace: %s", yamlText(k.namespace)),
		"{parallel}", strconv.Itoa(k.parallel),
		"{backoff}", strconv.Itoa(max(6, k.parallel)),
		"{tuner}", yamlText(k.tuner),
		"{image}", yamlText(k.image),
		"{command}", strings.Join(command, ", "),
		"{secret}", yamlText(k.secret),
		"{user}", optional(k.user > 0, "runAsNonRoot: true, runAsUser: %d, ", k.user),
		"{capabilities}", optional(k.user > 0, ", capabilities: {drop: [ALL]}"),
		"{limits}", optional(limits != "", "\n          resources: {limits: {%s}}", limits),
		"{mount}", optional(!g.Insecure, ", {name: secret, mountPath: /bkb-secret, readOnly: true}"),
		"{volume}", optional(!g.Insecure, "\n        - {name: secret, secret: {secretName: %s, items: [{key: ca.pem, path: ca.pem}]}}", yamlText(k.secret)),
	).Replace(jobText), nil
}

func newInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copy this program to another place",
		Long: `Install copies this program to a file, or into a folder under its own name. It replaces a
file at once, so that no other process sees half of it.

It is for images without a shell. An init container copies the program into a volume, and
another container runs it there (tuner workers kubernetes).`,
		Example: "  tuner workers install /bkb/tuner",
		Args:    cli.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			path := args[0]
			if cli.IsDir(path) {
				path = filepath.Join(path, filepath.Base(program))
			}
			if folder := filepath.Dir(path); !cli.IsDir(folder) {
				return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no directory %s for the program; make it first", folder))
			}
			in, err := os.Open(program)
			if err != nil {
				return err
			}
			defer in.Close()
			return atomicfile.Write(path, 0o755, func(w io.Writer) error {
				_, err := io.Copy(w, in)
				return err
			})
		},
	}
}

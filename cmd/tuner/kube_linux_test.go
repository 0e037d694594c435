package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// kube is a Kubernetes on the loopback device. Its only node is the test.
type kube struct {
	*scene
	images map[string][]string   // FROM:TO of container.sh
	pods   map[string]*container // running ones, by id of the pod
}

// startKube starts etcd, kube-apiserver and kube-controller-manager from the folder in
// BKB_KUBE. The kubectl in that folder finds them.
func startKube(t *testing.T) *kube {
	t.Helper()
	programs := os.Getenv("BKB_KUBE")
	if programs == "" {
		t.Skip("starts Kubernetes; make kube runs it")
	}
	if os.Getuid() != 0 {
		t.Fatal("containers need root; sudo make kube runs this")
	}
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"} {
		if _, err := os.Stat(filepath.Join(programs, program)); err != nil {
			t.Fatalf("%v; make kube builds it", err)
		}
	}
	for _, program := range []string{"setpriv", "chroot", "/usr/bin/python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("no %s: install it to run containers", program)
		}
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	k := &kube{scene: newScene(t), pods: map[string]*container{}}
	k.env = append(k.env, "PATH="+k.dir+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(k.dir, "kubeconfig"), "HOME="+k.dir)
	authority, token := wiretest.NewAuthority(t), rand.Text()
	pair := authority.Issue(t, "apiserver", "127.0.0.1")
	etcd, peer, port := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t), freePort(t)
	k.write("tokens.csv", token+",me,me,system:masters\n", 0o600)
	k.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%s", certificate-authority: %q}}]
users: [{name: me, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: me}}]
current-context: test
`, port, authority.CAFile, token), 0o600)
	began := time.Now()
	k.start("etcd", "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	k.start("kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--tls-cert-file="+pair.CertFile, "--tls-private-key-file="+pair.KeyFile, "--token-auth-file=tokens.csv", "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+pair.KeyFile, "--service-account-key-file="+pair.KeyFile,
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none")
	k.until("API server", func() bool { return k.try("kubectl", "get", "--raw", "/readyz") == "ok" })
	// The node of the test sends no heartbeats, so nothing may wait for them.
	k.start("kube-controller-manager", "--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file="+pair.KeyFile, "--controllers=*,-node-lifecycle-controller")
	k.until("service account", func() bool { return strings.Contains(k.try("kubectl", "get", "serviceaccount"), "default") })
	k.create("", `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}`)
	var version struct{ ServerVersion struct{ GitVersion string } }
	k.get(&version, "version", "-o", "json")
	t.Logf("Kubernetes %s was ready after %.1f s", version.ServerVersion.GitVersion, time.Since(began).Seconds())
	return k
}

// get reads JSON that kubectl prints.
func (k *kube) get(v any, args ...string) {
	k.t.Helper()
	cmd := k.command("kubectl", args...)
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		k.t.Fatalf("kubectl %q: %v\n%s", args, err, text)
	}
}

// create creates an object, by kubectl create or at a path of the API.
func (k *kube) create(path, object string, args ...string) {
	k.t.Helper()
	if out, err := k.tryCreate(path, object, args...); err != nil {
		k.t.Fatalf("%v: %s\n%s", err, out, object)
	}
}

func (k *kube) tryCreate(path, object string, args ...string) (out []byte, err error) {
	args = append([]string{"create", "-f", "-"}, args...)
	if path != "" {
		args = append(args, "--raw", path)
	}
	cmd := k.command("kubectl", args...)
	cmd.Stdin = strings.NewReader(object)
	return cmd.CombinedOutput()
}

// What the API says of a pod.
type (
	pod struct {
		Metadata struct {
			Name, Namespace, UID string
			DeletionTimestamp    *time.Time
		}
		Spec struct {
			NodeName                   string
			InitContainers, Containers []containerSpec
			Volumes                    []struct {
				Name   string
				Secret *struct {
					SecretName string
					Items      []struct{ Key, Path string }
				}
			}
		}
		Status struct{ Phase string }
	}
	containerSpec struct {
		Name, Image string
		Command     []string
		Env         []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef     struct{ FieldPath string }
				SecretKeyRef struct{ Name, Key string }
			}
		}
		SecurityContext struct {
			RunAsUser              int
			ReadOnlyRootFilesystem bool
		}
		VolumeMounts []struct{ Name, MountPath string }
	}
)

// container is the container of a pod, which runs as a process of this machine.
type container struct {
	cmd     *exec.Cmd
	out     bytes.Buffer
	ended   chan struct{}
	stopped bool // SIGTERM was sent
}

// list lists the pods of a namespace.
func (k *kube) list(namespace string) []pod {
	k.t.Helper()
	var l struct{ Items []pod }
	k.get(&l, "get", "pods", "-n", namespace, "-o", "json")
	return l.Items
}

// step does the work of a node once for each pod of a namespace.
func (k *kube) step(namespace string) {
	k.t.Helper()
	for _, p := range k.list(namespace) {
		c, deleted := k.pods[p.Metadata.UID], p.Metadata.DeletionTimestamp != nil
		switch {
		case c == nil && p.Status.Phase == "Pending" && !deleted:
			k.run(p)
		case c == nil:
		case c.over():
			delete(k.pods, p.Metadata.UID)
			phase := "Succeeded"
			if code := c.cmd.ProcessState.ExitCode(); code != 0 {
				phase = "Failed"
				k.t.Logf("the command of pod %s ends with %d: %s", p.Metadata.Name, code, &c.out)
			}
			k.patch(p, fmt.Sprintf(`"phase": %q`, phase))
			if deleted {
				k.must("kubectl", "delete", "pod", p.Metadata.Name, "-n", namespace, "--grace-period=0", "--force", "--wait=false")
			}
		case deleted && !c.stopped:
			c.stopped = true
			_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	}
}

// patch changes the status of a pod.
func (k *kube) patch(p pod, fields string) {
	k.t.Helper()
	k.must("kubectl", "patch", "pod", p.Metadata.Name, "-n", p.Metadata.Namespace, "--subresource=status", "-p", `{"status": {`+fields+`}}`)
}

// run binds a pod to the node, runs its init containers, and starts its container.
func (k *kube) run(p pod) {
	k.t.Helper()
	name, namespace := p.Metadata.Name, p.Metadata.Namespace
	k.create("/api/v1/namespaces/"+namespace+"/pods/"+name+"/binding",
		fmt.Sprintf(`{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": %q}, "target": {"kind": "Node", "name": "node"}}`, name))
	volumes := map[string]string{}
	for _, v := range p.Spec.Volumes {
		folder := k.t.TempDir()
		volumes[v.Name] = folder
		if v.Secret == nil {
			if err := os.Chmod(folder, 0o777); err != nil { // as that of an emptyDir
				k.t.Fatal(err)
			}
			continue
		}
		for _, item := range v.Secret.Items {
			if err := os.WriteFile(filepath.Join(folder, item.Path), k.secret(namespace, v.Secret.SecretName, item.Key), 0o644); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	for _, spec := range p.Spec.InitContainers {
		if c := k.startContainer(p, spec, volumes); !c.wait() {
			k.t.Fatalf("init container %s of pod %s ends with %v: %s", spec.Name, name, c.cmd.ProcessState, &c.out)
		}
	}
	k.pods[p.Metadata.UID] = k.startContainer(p, p.Spec.Containers[0], volumes)
	k.patch(p, `"phase": "Running"`)
}

func (k *kube) secret(namespace, name, key string) []byte {
	k.t.Helper()
	var s struct{ Data map[string][]byte }
	k.get(&s, "get", "secret", name, "-n", namespace, "-o", "json")
	if s.Data[key] == nil {
		k.t.Fatalf("Secret %s of namespace %s has no %s", name, namespace, key)
	}
	return s.Data[key]
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// startContainer starts a container in namespaces of its own for mounts and processes.
func (k *kube) startContainer(p pod, spec containerSpec, volumes map[string]string) *container {
	k.t.Helper()
	mounts, ok := k.images[spec.Image]
	if !ok {
		k.t.Fatalf("container %s of pod %s: there is no image %s", spec.Name, p.Metadata.Name, spec.Image)
	}
	environment := map[string]string{"PATH": "/image:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range spec.Env {
		switch from := e.ValueFrom; {
		case from.FieldRef.FieldPath == "metadata.name":
			environment[e.Name] = p.Metadata.Name
		case from.SecretKeyRef.Key != "":
			environment[e.Name] = string(k.secret(p.Metadata.Namespace, from.SecretKeyRef.Name, from.SecretKeyRef.Key))
		case e.Value != "":
			environment[e.Name] = e.Value
		default:
			k.t.Fatalf("container %s of pod %s: the test does not know where %s comes from", spec.Name, p.Metadata.Name, e.Name)
		}
	}
	args := []string{"testdata/container.sh", k.t.TempDir(), fmt.Sprintf("%d:0", spec.SecurityContext.RunAsUser), fmt.Sprint(spec.SecurityContext.ReadOnlyRootFilesystem)}
	args = append(append(args, mounts...), "/dev/null:/dev/null", filepath.Join(k.dir, "hosts")+":/etc/hosts")
	for _, m := range spec.VolumeMounts {
		args = append(args, volumes[m.Name]+":"+m.MountPath)
	}
	args = append(args, "--")
	for _, word := range spec.Command {
		args = append(args, reference.ReplaceAllStringFunc(word, func(r string) string {
			if value, ok := environment[strings.Trim(r, "$()")]; ok {
				return value
			} else if r == "$$" {
				return "$"
			}
			return r
		}))
	}
	c := &container{cmd: exec.Command("sh", args...), ended: make(chan struct{})}
	for name, value := range environment {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // its ProcessState tells
		close(c.ended)
	}()
	k.t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
	})
	return c
}

// wait waits for the end of a container, and tells whether it succeeded.
func (c *container) wait() bool {
	<-c.ended
	return c.cmd.ProcessState.Success()
}

func (c *container) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// TestKube runs the commands for Kubernetes of docs/deploy.md and docs/parallel.md with a
// real API server and real controllers. make kube builds them.
func TestKube(t *testing.T) {
	k := startKube(t)
	k.serve()
	k.write("database.url", "postgres://tuner@db/tuner", 0o600)
	deploy, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(deploy, filepath.Join(k.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	t.Run("manifests", func(t *testing.T) { k.of(t).manifests() })
	t.Run("job", func(t *testing.T) { k.of(t).job() })
}

// of is the cluster for a part of the test.
func (k *kube) of(t *testing.T) *kube {
	part, s := *k, *k.scene
	s.t, part.scene = t, &s
	return &part
}

// manifests applies deploy/kubernetes. The pods of the servers meet the policy of their
// namespace, and a field that is misspelt is refused.
func (k *kube) manifests() {
	t := k.t
	t.Logf("%s", k.must("sh", "-e", "-c", k.block("deploy.md", "## Kubernetes")))
	k.must("kubectl", "apply", "--dry-run=server", "-k", "deploy/kubernetes")

	var servers []pod
	k.until("three servers", func() bool { servers = k.list("tuner"); return len(servers) == 3 })
	t.Logf("the StatefulSet has pods, which the namespace accepts: %s, %s, %s", servers[0].Metadata.Name, servers[1].Metadata.Name, servers[2].Metadata.Name)

	misspelt := 0
	for _, m := range []struct{ file, field string }{
		{"namespace.yaml", "labels"},
		{"servers.yaml", "serviceName"},
		{"servers.yaml", "terminationGracePeriodSeconds"},
		{"servers.yaml", "whenUnsatisfiable"},
		{"servers.yaml", "readinessProbe"},
		{"servers.yaml", "drop"},
		{"servers.yaml", "defaultMode"},
		{"service.yaml", "targetPort"},
		{"service.yaml", "publishNotReadyAddresses"},
		{"disruption.yaml", "maxUnavailable"},
	} {
		k.must("sh", "-e", "-c", fmt.Sprintf(`rm -rf misspelt
cp -r deploy/kubernetes/. misspelt
grep -q '%[2]s:' misspelt/%[1]s
sed -i 's/%[2]s:/%[2]ss:/' misspelt/%[1]s`, m.file, m.field))
		out := k.try("kubectl", "apply", "--dry-run=server", "-k", "misspelt")
		if !strings.Contains(out, "unknown field") || !strings.Contains(out, m.field+"s") {
			t.Errorf("%s with %ss in place of %s: %s", m.file, m.field, m.field, out)
		} else {
			misspelt++
		}
	}
	t.Logf("%d misspelt fields were refused", misspelt)

	var server struct{ Spec map[string]any }
	k.get(&server, "get", "pod", servers[0].Metadata.Name, "-n", "tuner", "-o", "json")
	admitted := func() string {
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "copy", "namespace": "tuner"}, "spec": server.Spec})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := k.tryCreate("", string(text), "--dry-run=server") // the caller reads it
		return string(out)
	}
	if out := admitted(); !strings.Contains(out, "created") {
		t.Errorf("a copy of a server's pod: %s", out)
	}
	delete(server.Spec["securityContext"].(map[string]any), "runAsNonRoot")
	if out := admitted(); !strings.Contains(out, `violates PodSecurity "restricted`) {
		t.Errorf("a server's pod that may run as root: %s", out)
	}

	// Workers beside the servers meet the same policy with --user.
	job := k.must("./tuner", "workers", "kubernetes", "beside", "--server", "tuner:7070", "--namespace", "tuner", "--image", "train", "--parallel", "2", "--user", "1000", "--", "train")
	k.create("", job)
	k.until("two workers beside the servers", func() bool { return len(k.list("tuner")) == 5 })
	k.must("kubectl", "delete", "job", "tuner-beside", "-n", "tuner", "--wait=false")
}

// job runs the Job of tuner workers kubernetes with a node that loses two pods. All trials
// complete, and none runs twice in an epoch.
func (k *kube) job() {
	t := k.t
	k.mustTuner("create-study", "digits", "--space", "space.yaml", "--minimize", "loss", "--max-trials", "120", "--lease", "5s")

	k.write("train.py", `import os, sys, time
with open("/starts", "a") as f:
    print(os.environ["TUNER_TRIAL"], os.environ["TUNER_EPOCH"], os.environ["POD_NAME"], file=f)
time.sleep(1)
print("loss=" + sys.argv[1].removeprefix("--lr="))
`, 0o644)
	k.write("hosts", "127.0.0.1 tuner.tuner.svc\n", 0o644)
	k.write("starts", "", 0o644)
	for name, to := range map[string]string{"python": "/usr/bin/python3", "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		if err := os.Symlink(to, filepath.Join(k.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(from, to string) string { return filepath.Join(k.dir, from) + ":" + to }
	k.images = map[string][]string{
		"registry.example/bkb-tuner": {at("tuner", "/tuner")}, // as deploy/Dockerfile makes it
		"registry.example/train:1": {
			at("bin", "/bin"), at("lib", "/lib"), at("lib64", "/lib64"), "/usr:/usr", at("python", "/image/python"), at("train.py", "/train.py"), at("starts", "/starts"),
		},
	}
	t.Logf("%s", k.must("sh", "-e", "-c", k.block("parallel.md", "### Kubernetes", "--parallel 32", "--parallel 4", ":7070", ":"+k.port)))

	node := func(what string, done func() bool) {
		k.until(what, func() bool { k.step("default"); return done() })
	}
	// on is how many trials the pods have started.
	on := func(pods map[string]bool) (n int) {
		for _, line := range k.starts() {
			if pods[strings.Fields(line)[2]] {
				n++
			}
		}
		return n
	}
	names := func() map[string]bool {
		names := map[string]bool{}
		for _, p := range k.list("default") {
			names[p.Metadata.Name] = true
		}
		return names
	}
	node("four pods that run trials", func() bool { return len(k.pods) == 4 && len(k.starts()) >= 8 })
	before := k.list("default")
	first, second := before[0], before[1]

	// kubectl drain calls this API.
	k.create("/api/v1/namespaces/default/pods/"+first.Metadata.Name+"/eviction",
		fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, first.Metadata.Name))
	// What a node that is short of memory reports, after it killed the pod.
	c := k.pods[second.Metadata.UID]
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.wait()
	delete(k.pods, second.Metadata.UID)
	k.patch(second, `"phase": "Failed", "reason": "Evicted", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]`)

	began := time.Now()
	node("two pods in place of the evicted ones", func() bool { return len(k.pods) == 4 })
	t.Logf("two evicted pods were replaced after %.0f s", time.Since(began).Seconds())
	late := names()
	for _, p := range before {
		delete(late, p.Metadata.Name)
	}
	node("trial in a pod that replaces one", func() bool { return on(late) > 0 })

	type status struct {
		Conditions                []struct{ Type, Status, Reason, Message string }
		Succeeded, Failed, Active int
	}
	var job struct{ Status status }
	is := func(kind string) bool {
		job.Status = status{}
		k.get(&job, "get", "job", "tuner-digits", "-o", "json")
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Status == "True" {
				return true
			}
		}
		return false
	}
	node("complete Job", func() bool { return is("Complete") || is("Failed") })
	t.Logf("status of the Job: %+v", job.Status)
	t.Logf("events of the Job:\n%s", k.must("kubectl", "get", "events", "--field-selector", "involvedObject.kind=Job", "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`))
	if !is("Complete") || job.Status.Succeeded != 4 {
		t.Errorf("the Job ends with %+v, want Complete with 4 pods that succeeded", job.Status)
	}
	if n := k.completed("digits"); n != 120 {
		t.Errorf("%d of 120 trials completed", n)
	}
	again := k.checkStarts()
	if again > 2 {
		t.Errorf("%d trials were started again, but only 2 pods were evicted", again)
	}
	t.Logf("120 trials completed by %d starts, %d of them in a later epoch; the pods that replace the evicted ones started %d", len(k.starts()), again, on(late))
}

#!/bin/sh
# Walks the first steps of three newcomers on a clean machine: a root of its own, with the
# program and the few tools that the guides use, and without a home, a configuration, Go or
# Python. It prints how long each path takes to its first useful result and to its end.
#
# Usage: bench/newcomers.sh PROGRAM, as root. PROGRAM is a static tuner (CGO_ENABLED=0).
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
program=$(readlink -f "$1")
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/tmp" "$root/home" "$root/etc"
echo '127.0.0.1 localhost head' >"$root/etc/hosts"
for tool in sh awk cat chmod cp date env grep head kill ls mkdir openssl rm sed sleep sort wc; do
	path=$(command -v $tool) && [ -x "$path" ] || path=/bin/$tool
	cp -L "$path" "$root/bin/$tool"
	ldd "$path" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$root${library%/*}" && cp -Ln "$library" "$root$library"
	done
done
mkdir -p "$root/usr/lib/ssl"
cp -L /usr/lib/ssl/openssl.cnf "$root/usr/lib/ssl/"
cp "$program" "$root/bin/tuner"
sed '1,/^# The paths\.$/d' "$0" >"$root/paths.sh"
unshare --mount --pid --net --ipc --uts --fork sh -euc '
	ip link set lo up
	mount --rbind /dev "$0/dev"
	mount -t proc proc "$0/proc"
	exec chroot "$0" /bin/env -i PATH=/bin HOME=/home /bin/sh -eu /paths.sh' "$root"
exit

# The paths.
now() { date +%s%N; }
path() { # NAME begins a path in a folder of its own
	name=$1 begun=$(now) useful='' steps=0
	mkdir "$HOME/$2" && cd "$HOME/$2"
}
run() { # COMMAND runs what a newcomer types
	steps=$((steps + 1))
	"$@" >out 2>&1 || { echo "$name: $* ended with $?:"; cat out; exit 1; }
}
result() { # PATTERN is the first useful result, which the last command has printed
	grep -q "$1" out || { echo "$name: no $1 in:"; cat out; exit 1; }
	useful=$(($(now) - begun)) after=$steps
}
ends() { # TEXT prints the row of the path
	whole=$(($(now) - begun))
	awk -v useful=$useful -v whole=$whole -v row="$name | $1 | $after" -v steps=$steps \
		'BEGIN {printf "| %s | %.1f s | %d | %.1f s |\n", row, useful / 1e9, steps, whole / 1e9}'
}
echo '| newcomer | first useful result | commands to it | time to it | commands in all | time in all |'
echo '|---|---|--:|--:|--:|--:|'

path 'HPC user' hpc
cat >space.yaml <<'END'
parameters:
  lr:    {type: float, low: 1e-5, high: 1, scale: log}
  batch: {type: int, low: 8, high: 512, scale: log}
END
cat >train.sh <<'END'
#!/bin/sh
awk -v lr="$1" -v batch="$2" 'BEGIN {
  x = log(lr / 0.003) / log(10); y = log(batch / 64) / log(2)
  printf "loss=%.4f\n", 0.1 + 0.15 * x * x + 0.01 * y * y
}'
END
run tuner create-study shell --space space.yaml --minimize loss --max-trials 40
run tuner run shell --limit 10 -- sh train.sh '{lr}' '{batch}'
run tuner best shell -f args
result '^--batch='
# The array job of the cluster, each task as the scheduler starts it.
steps=$((steps + 1))
tuner serve --listen 0.0.0.0:7070 --insecure-allow-remote >serve.log 2>&1 & server=$!
until tuner --server localhost:7070 health >/dev/null 2>&1; do sleep 0.05; done
run tuner workers slurm shell --server head:7070 --insecure --parallel 2 -- sh train.sh '{lr}' '{batch}'
cp out job.sh
SLURM_ARRAY_TASK_ID=1 sh job.sh >task1.log 2>&1 & task=$!
SLURM_ARRAY_TASK_ID=2 sh job.sh >task2.log 2>&1 || { cat task2.log; exit 1; }
wait $task || { cat task1.log; exit 1; }
run tuner --server localhost:7070 trials shell -f csv
[ "$(grep -c completed out)" = 40 ] || { echo "$name: not 40 trials:"; cat out; exit 1; }
kill $server && wait $server
ends 'the best of 10 trials as arguments'

path 'person with a spreadsheet' sheet
awk 'BEGIN {
  srand(1); printf "\357\273\277size;rooms;age;town;price\r\n"
  for (i = 0; i < 400; i++) {
    size = 40 + 160 * rand(); rooms = 1 + int(7 * rand()); age = 90 * rand(); town = rand() < 0.5 ? "Bonn" : "Köln"
    text = sprintf("%.1f;%d;%.0f;%s;%.2f", size, rooms, age, town, 1000 * size + 15000 * rooms - 800 * age + 5000 * rand())
    gsub(/\./, ",", text); printf "%s\r\n", text
  }
}' >houses.csv
run tuner auto krr --data houses.csv --target price --trials 10 --out price.model
result 'test r2'
run tuner evaluate --model price.model --data houses.csv
run tuner predict --model price.model --data houses.csv --out predictions.csv
[ "$(wc -l <predictions.csv)" = 401 ] || { echo "$name: not 400 predictions"; head -3 predictions.csv; exit 1; }
ends 'a model with its error on rows that no trial has used'

path operator operator
run openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
	-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout server.key -out server.pem
chmod 600 server.key
steps=$((steps + 2)) # the tokens
(umask 077 && tuner token add --scope admin >admin.token && tuner token add --scope worker >worker.token) 2>out
serve() {
	tuner serve --listen localhost:7070 --http localhost:7071 --metrics localhost:9090 --cert server.pem --key server.key \
		--tokens tokens.json --backup-to backups --backup-every 1s --backup-keep 5 >serve.log 2>&1 & server=$!
	steps=$((steps + 1))
	until tuner --server localhost:7070 --ca server.pem health >out 2>&1; do sleep 0.05; done
}
serve
result SERVING
admin="tuner --server localhost:7070 --ca server.pem --token-file admin.token"
run $admin create-study digits --space "$HOME"/hpc/space.yaml --minimize loss --max-trials 20
run tuner --server localhost:7070 --ca server.pem --token-file worker.token run digits --parallel 2 -- sh "$HOME"/hpc/train.sh '{lr}' '{batch}'
kill -9 $server
wait $server 2>/dev/null || :
serve
run $admin best digits
until [ "$(ls backups | wc -l)" -gt 1 ]; do sleep 0.1; done
kill $server && wait $server
run tuner check
rm tuner.db
run tuner restore backups/tuner-*.db
run tuner trials digits -f csv
[ "$(grep -c completed out)" = 20 ] || { echo "$name: not 20 trials after the restore:"; cat out; exit 1; }
ends 'a server with TLS and tokens that answers SERVING'

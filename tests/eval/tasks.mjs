// Twenty tasks of an agent's day. A step is a call of the model; `expects` says what its result must show. `check` looks at the world
// afterwards: what counts is what was done, not what was said.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Some clients show a model a result's text, others its JSON: both say the same. Newlines in JSON are made readable before (`run.mjs`).
const exit = (code, more = /(?:)/) => (text) => new RegExp(`\\[exit ${code}\\b|"exit_code":${code}\\b`).test(text) && more.test(text);
const next = (text) => Number(/(?:from: |"omitted":\{"from":|"to":)(\d+)/.exec(text ?? "")?.[1] ?? 0);
const run = (command, more = {}) => ["run_command", { command, ...more }];
const handle = (results, at = -1) => /run_[0-9a-z]{26}/.exec(results.at(at) ?? "")?.[0] ?? "run_missing";
const wait = (results, more = {}) => ["wait_for", { run: handle(results), timeout_ms: 20_000, ...more }];
const read = (world, name) => (existsSync(join(world.dir, name)) ? readFileSync(join(world.dir, name), "utf8") : "");

export const TASKS = [
  {
    name: "exit-code",
    steps: [() => run("echo hello; (exit 3)")],
    expects: [exit(3, /hello/)],
  },
  {
    name: "long-build",
    steps: [() => run("for i in 1 2 3; do echo step $i; sleep 0.3; done; echo built > built", { yield_ms: 200 }), (results) => wait(results)],
    expects: [/running/, exit(0)],
    check: (world) => read(world, "built") === "built\n",
  },
  {
    name: "port",
    before: (world) =>
      writeFileSync(join(world.dir, "serve.py"), "import http.server,socketserver\ns=socketserver.TCPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler)\nopen('port','w').write(str(s.server_address[1]))\nprint('serving',s.server_address[1],flush=True)\ns.serve_forever()\n"),
    steps: [
      () => ["open_session", { name: "server", command: ["python3", "serve.py"] }],
      () => ["wait_for", { session: "server", until: "text:serving [0-9]+", timeout_ms: 20_000 }],
      () => ["ports", { session: "server" }],
      () => run('python3 -c "import urllib.request as u; print(u.urlopen(\'http://127.0.0.1:\'+open(\'port\').read()).status)"'),
      () => ["end_session", { session: "server" }],
    ],
    expects: [/server/, /serving/, /127\.0\.0\.1:\d+/, /200/, /server/],
  },
  {
    name: "prompt",
    steps: [
      () => run("read -p 'Name? ' name; echo hello $name > greeting"),
      () => ["send_input", { text: "ann\n" }],
      (results) => ["wait_for", { run: handle(results, 0), timeout_ms: 20_000 }],
    ],
    expects: [/Name\?/, /./, exit(0)],
    check: (world) => read(world, "greeting") === "hello ann\n",
  },
  {
    name: "password",
    steps: [
      () => ["open_session", { name: "vault" }],
      () => run("read -s -p 'Password: ' secret; echo; [ \"$secret\" = swordfish ] && echo open > vault", { session: "vault", yield_ms: 5000 }),
      () => ["ask_human", { session: "vault", question: "Please type the password into this session.", timeout_ms: 20_000 }],
      (results) => ["wait_for", { run: handle(results, 1), timeout_ms: 20_000 }],
    ],
    expects: [/vault/, /password/i, /typed/, exit(0)],
    async human(world) {
      const open = await world.until("the question", () => JSON.parse(world.holdfast("--as", world.human, "questions", "--json"))[0]);
      world.holdfastWith("swordfish\n", "--as", world.human, "send", "vault", "--secret", "--stdin");
      world.holdfast("--as", world.human, "answer", open.id, "typed it");
    },
    check: (world) => read(world, "vault") === "open\n",
  },
  {
    name: "flood",
    steps: [() => run("seq 1 200000"), (results) => ["read_output", { run: handle(results), from: next(results[0]), max_bytes: 1000 }]],
    expects: [(text) => exit(0)(text) && /\n200000\s/.test(`${text}\n`) && text.length < 10_000, (text) => text.length < 1_500],
  },
  {
    name: "failing-migration",
    before: (world) => writeFileSync(join(world.dir, "migrate.sh"), 'if [ "$1" = 5 ] && [ ! -e fixed ]; then echo "migration 5 failed"; exit 1; fi; echo "$1" >> applied\n'),
    steps: [
      ...[1, 2, 3, 4].map((n) => () => run(`sh migrate.sh ${n}`, { key: `migrate-${n}` })),
      () => run("sh migrate.sh 5", { key: "migrate-5" }),
      () => run("touch fixed"),
      () => run("sh migrate.sh 5", { key: "migrate-5-again" }),
      // As an agent does that is not sure how far it came.
      ...[3, 6].map((n) => () => run(`sh migrate.sh ${n}`, { key: `migrate-${n}` })),
    ],
    expects: [exit(0), exit(0), exit(0), exit(0), exit(1, /failed/), exit(0), exit(0), /already ran|"existing":true/, exit(0)],
    check: (world) => read(world, "applied") === "1\n2\n3\n4\n5\n6\n",
  },
  {
    name: "lost-memory",
    phases: [
      {
        steps: [() => run("echo once >> times; until [ -e go ]; do sleep 0.05; done; echo finished > finished", { key: "nightly", yield_ms: 200 })],
        expects: [/running/],
      },
      {
        before: (world) => writeFileSync(join(world.dir, "go"), ""),
        steps: [() => ["overview", {}], () => ["wait_for", { run: "nightly", timeout_ms: 20_000 }]],
        expects: [/nightly|once >> times/, exit(0)],
      },
    ],
    check: (world) => read(world, "times") === "once\n" && read(world, "finished") === "finished\n",
  },
  {
    name: "two-agents",
    before(world) {
      world.holdfast("--as", "agent:other", "new", "-d", "-n", "shared", "--cwd", world.dir, "--", "bash");
      world.holdfast("--as", "agent:other", "run", "shared", "--", "echo other > who");
      world.holdfast("--as", "agent:other", "release", "shared");
    },
    steps: [() => ["sessions", {}], () => run("echo me >> who", { session: "shared" }), () => ["turn", { session: "shared", action: "release" }]],
    expects: [/shared/, exit(0), /./],
    check: (world) => read(world, "who") === "other\nme\n",
  },
  {
    name: "pager",
    before: (world) => world.sh("git init -q . && for i in $(seq 60); do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m \"commit $i\"; done"),
    steps: [() => run("git log --oneline")],
    expects: [exit(0, /commit 60[^]*commit 1\b/)],
  },
  {
    name: "less",
    before: (world) => world.sh("seq 1 500 > long"),
    steps: [() => run("less long", { yield_ms: 1500 }), () => ["send_input", { text: "q" }], (results) => ["wait_for", { run: handle(results, 0), timeout_ms: 20_000 }]],
    expects: [/full.?screen|pager/i, /./, exit(0)],
  },
  {
    name: "editor",
    steps: [
      () => run("vim -u NONE note", { yield_ms: 1500 }),
      () => ["send_input", { text: "ifrom vim" }],
      () => ["send_input", { keys: ["Escape"] }],
      () => ["send_input", { text: ":wq\r" }],
      (results) => ["wait_for", { run: handle(results, 0), timeout_ms: 20_000 }],
    ],
    expects: [/full.?screen/i, /./, /./, /./, exit(0)],
    check: (world) => read(world, "note") === "from vim\n",
  },
  {
    name: "many-lines",
    steps: [() => run("for i in 1 2; do\n  echo line $i\ndone\ncat <<'END'\nit's \"quoted\" $HOME\nEND"), () => ["read_output", {}]],
    expects: [exit(0, /line 1\nline 2\nit's "quoted" \$HOME/), (text) => !text.includes("holdfast/run") && text.split("for i in 1 2; do").length === 2],
  },
  {
    name: "state-stays",
    steps: [() => run("mkdir -p deep/er && cd deep/er && export FLAVOUR=sweet"), () => run('echo "$FLAVOUR in $(basename "$PWD")"')],
    expects: [exit(0), /sweet in er/],
  },
  {
    name: "syntax-error",
    steps: [() => run("echo ) oops"), () => run("echo fine")],
    expects: [/nothing ran|"end":"not_started"/, exit(0, /fine/)],
  },
  {
    name: "processes",
    steps: [() => run("sleep 1000 & echo $! > pid"), () => ["graph", {}], () => run("kill $(cat pid)")],
    expects: [exit(0), /sleep 1000/, exit(0)],
  },
  {
    name: "interrupt",
    steps: [() => run("sleep 1000", { yield_ms: 300 }), (results) => ["interrupt", { run: handle(results) }], () => run("echo again")],
    expects: [/running/, /cancelled|130/, exit(0, /again/)],
  },
  {
    name: "ask-human",
    steps: [
      () => ["ask_human", { question: "Which colour?", options: ["red", "blue"], timeout_ms: 20_000 }],
      (results) => run(`echo ${/\b(blue|red)\b/.exec(results[0])?.[0] ?? "none"} > colour`),
    ],
    expects: [/blue/, exit(0)],
    async human(world) {
      const open = await world.until("the question", () => JSON.parse(world.holdfast("--as", world.human, "questions", "--json"))[0]);
      world.holdfast("--as", world.human, "answer", open.id, "blue");
    },
    check: (world) => read(world, "colour") === "blue\n",
  },
  {
    name: "killed-host",
    steps: [() => run("echo once >> count; until [ -e go ]; do sleep 0.05; done; echo over", { yield_ms: 300, key: "killed" }), (results) => wait(results)],
    // Where the host was killed before the first answer, that has the end.
    expects: [(text) => (/running/.test(text) || exit(0)(text)) && !/already ran|"existing":true/.test(text), exit(0, /over/)],
    async human(world) {
      await world.until("the run", () => read(world, "count") !== "");
      const { pid } = JSON.parse(world.holdfast("host", "status", "--json"));
      process.kill(pid, "SIGKILL");
      await world.until("the next host", () => JSON.parse(world.holdfast("host", "status", "--json")).pid !== pid);
      writeFileSync(join(world.dir, "go"), "");
    },
    interruptions: 0,
    check: (world) => read(world, "count") === "once\n",
  },
  {
    name: "by-offset",
    steps: [
      () => run("printf '%s\\n' one two three four five six"),
      (results) => ["read_output", { run: handle(results), max_bytes: 12 }],
      (results) => ["read_output", { run: handle(results, 0), from: next(results[1]) }],
    ],
    expects: [exit(0), (text) => /one/.test(text) && !/four/.test(text) && /continue with from|"more":true/.test(text), /three\nfour\nfive\nsix/],
  },
];

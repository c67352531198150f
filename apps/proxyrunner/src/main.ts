import { isMainThread } from 'node:worker_threads'
import { runProgram } from './run-program.ts'

/** The bundle has one entry, for both threads. The policy engine and YAML are loaded in the worker only. */
const workerEntry = new URL(import.meta.url)

if (!isMainThread) (await import('@thv/authz/load/policy-worker')).runPolicyWorker()
else if (process.argv[2] === 'host') {
  await (await import('./host-runners.ts')).hostRunners(workerEntry)
  process.exit(0)
} else
  await runProgram({
    argv: process.argv,
    env: process.env,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    workerEntry,
  })

import { createInterface } from 'node:readline/promises'
import { isMainThread } from 'node:worker_threads'
import { systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { runMain } from '@thv/kernel/process-signals'
import { problemsOf } from './commands/validate-command.ts'
import { runEngineWorker } from './engine/engine-worker-main.ts'
import { buildProgram } from './program.ts'
import { createParts } from './serve/serve-parts.ts'

/** Pods mostly get 30 s in all. */
const DRAIN_MS = 25_000

const print = (line: string) => console.error(`thv-registry-api: ${line}`)

/** The bundle is one file, so it is the entry of both threads. */
if (isMainThread) {
  await runMain(run, { lifecycle: createLifecycle({ drainMs: DRAIN_MS }), printError: print })
} else await runEngineWorker()

async function run(lifecycle: Lifecycle): Promise<number> {
  const program = buildProgram({
    out: (text) => void process.stdout.write(text),
    env: process.env,
    lifecycle,
    clock: systemClock,
    terminal: process.stdout.isTTY === true,
    parts: (context) => createParts({ ...context, entry: new URL(import.meta.url), signal: lifecycle.signal }),
    onHangup(listener) {
      process.on('SIGHUP', listener)
      return () => void process.off('SIGHUP', listener)
    },
    ...(process.stdin.isTTY && { ask: (question: string) => askOnTerminal(question, lifecycle.signal) }),
  })
  try {
    return await program.parseAsync(process.argv)
  } catch (error) {
    if (!isThvError(error, 'registry_config_invalid')) throw error
    for (const problem of problemsOf(error.details)) print(problem)
    return 1
  }
}

async function askOnTerminal(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question, { signal })
  } finally {
    terminal.close()
  }
}

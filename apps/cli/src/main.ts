import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { openBrowser } from './login/open-browser.ts'
import { buildProgram } from './program.ts'
import { wrapped } from './text/wrapped.ts'

// `thv crds | head` closes the pipe early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

// The first Ctrl-C ends the work in good order: calls are cancelled, sessions ended, pods stopped. The second ends the process. npm
// passes a Ctrl-C on that the terminal has sent to all already, so two at once are one.
const interrupted = new AbortController()
const ONE_PRESS_MS = 500
let interruptedAt: number | undefined
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1],
] as const) {
  process.on(signal, () => {
    const now = performance.now()
    if (interruptedAt !== undefined && now - interruptedAt > ONE_PRESS_MS) process.exit(128 + number)
    if (interruptedAt !== undefined) return
    interruptedAt = now
    failureCode = 128 + number // as shells have it
    interrupted.abort(new ThvError('aborted', 'interrupted'))
  })
}
let failureCode: number | undefined

const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true
const program = buildProgram({
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  cwd: process.cwd(),
  variables: process.env,
  isTerminal: process.stderr.isTTY === true,
  columns: process.stderr.columns,
  signal: interrupted.signal,
  ask: isInteractive ? ask : undefined,
  openBrowser: isInteractive ? (url) => openBrowser(url, process.env) : undefined,
  readInput: () => text(process.stdin),
})

try {
  await program.parseAsync(process.argv)
} catch (error) {
  const line = `thv: ${errorMessage(error)}`
  console.error(process.stderr.isTTY ? wrapped(line, { indent: 5 }) : line)
  // Not process.exit: what was written to a pipe must still get out.
  process.exitCode = failureCode ?? (isThvError(error, 'usage') ? 2 : 1)
}

/** Asks on the terminal, beside the output. Ctrl-C and Ctrl-D end the input. */
async function ask(question: string, signal: AbortSignal): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<undefined>((resolve) => terminal.once('close', () => resolve(undefined)))
  try {
    const typed = await Promise.race([terminal.question(question, { signal }), closed])
    if (typed === undefined) process.stderr.write('\n')
    return typed
  } finally {
    terminal.close()
  }
}

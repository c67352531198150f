import { createInterface } from 'node:readline/promises'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { buildProgram } from './program.ts'

// `thv crds | head` closes the pipe early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true
const program = buildProgram({
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  cwd: process.cwd(),
  isTerminal: process.stderr.isTTY === true,
  ask: isInteractive ? ask : undefined,
})

try {
  await program.parseAsync(process.argv)
} catch (error) {
  console.error(`thv: ${errorMessage(error)}`)
  // Not process.exit: what was written to a pipe must still get out.
  process.exitCode = isThvError(error, 'usage') ? 2 : 1
}

/** Asks on the terminal, beside the output. Ctrl-C and Ctrl-D end the input. */
async function ask(question: string, signal: AbortSignal): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const closed = new Promise<undefined>((resolve) => terminal.once('close', () => resolve(undefined)))
  try {
    return await Promise.race([terminal.question(question, { signal }), closed])
  } finally {
    terminal.close()
  }
}

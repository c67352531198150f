import { errorMessage, isThvError } from '@thv/kernel/errors'
import { buildProgram } from './program.ts'

// `thv crds | head` closes the pipe early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

try {
  await buildProgram({ out: (text) => void process.stdout.write(text) }).parseAsync(process.argv)
} catch (error) {
  console.error(`thv: ${errorMessage(error)}`)
  // Not process.exit: what was written to a pipe must still get out.
  process.exitCode = isThvError(error, 'usage') ? 2 : 1
}

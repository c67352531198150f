import { errorMessage, isThvError } from '@thv/kernel/errors'
import { buildProgram } from './program.ts'

try {
  await buildProgram({ out: (text) => void process.stdout.write(text) }).parseAsync(process.argv)
} catch (error) {
  console.error(`thv: ${errorMessage(error)}`)
  process.exitCode = isThvError(error, 'usage') ? 2 : 1
}

// `thv crds | head` closes the pipe early: that is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

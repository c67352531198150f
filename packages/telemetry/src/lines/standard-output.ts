import { close, constants, fstatSync, openSync, write } from 'node:fs'
import { currentScope, type ProgramScope } from '@thv/kernel/program-scope'
import { BATCH_BYTES, type LineOutput } from './line-output.ts'

const STDOUT = 1

/**
 * Standard output, without the stream of Node: that one keeps whatever a slow reader leaves, without a bound. A pipe or terminal is
 * opened once more for writes that do not block. A blocking write to a reader that has stopped would hold a thread of the pool, and the
 * process could not even exit.
 */
export function standardOutput(): LineOutput {
  const scope = currentScope()
  if (scope !== undefined) return scopeOutput(scope)
  const fd = reopened() ?? STDOUT
  return {
    maxBatchBytes: BATCH_BYTES,
    begin: () => undefined,
    write: (bytes, offset, done) => write(fd, bytes, offset, bytes.length - offset, null, done),
    reset: () => {},
    close: () => (fd === STDOUT ? Promise.resolve() : new Promise((resolve) => close(fd, () => resolve()))),
  }
}

/** A program that shares its process has no file descriptor of its own. */
function scopeOutput(scope: ProgramScope): LineOutput {
  return {
    maxBatchBytes: BATCH_BYTES,
    begin: () => undefined,
    write(bytes, offset, done) {
      const isWritten = scope.writeOutput(bytes.toString('utf8', offset))
      if (isWritten) setImmediate(done, null, bytes.length - offset)
      else setImmediate(done, Object.assign(new Error('the reader is slow'), { code: 'EAGAIN' }), 0)
    },
    reset: () => {},
    close: () => Promise.resolve(),
  }
}

/** Undefined for files, whose writes end by themselves, and for what cannot be opened again, such as a socket. */
function reopened(): number | undefined {
  try {
    const stats = fstatSync(STDOUT)
    if (!stats.isFIFO() && !stats.isCharacterDevice()) return undefined
    return openSync(`/proc/self/fd/${STDOUT}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

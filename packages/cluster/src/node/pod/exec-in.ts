import { ThvError } from '@thv/kernel/errors'
import { startGuarded } from '../process/guarded-process.ts'
import { type ContainerSurroundings, programFile } from './container-command.ts'

const MAX_OUTPUT = 10 << 10
let count = 0

export interface ExecInput {
  readonly command: readonly string[]
  /** Of the container: what is run in it goes with it. */
  readonly mark: string
  /** Kills the command. */
  readonly signal: AbortSignal
}

/** Runs a command in a container's surroundings, beside its program. Rejects when it cannot be started or the signal aborts. */
export async function execIn(
  around: ContainerSurroundings,
  { command, mark, signal }: ExecInput,
): Promise<{ exitCode: number; output: string }> {
  const [name = '', ...args] = command
  signal.throwIfAborted()
  const { env, cwd } = around
  const child = await startGuarded({ file: programFile(name, around), args, env, cwd, stdin: false, mark: `${mark}x${++count}.` })
  const chunks: Uint8Array[] = []
  let size = 0
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Uint8Array) => {
      if (size < MAX_OUTPUT) chunks.push(chunk)
      size += chunk.length
    })
  }
  const onAbort = () => child.kill()
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) child.kill()
  const { exitCode } = await child.ended
  signal.removeEventListener('abort', onAbort)
  if (signal.aborted) throw new ThvError('timeout', 'the command took too long')
  return { exitCode, output: Buffer.concat(chunks).subarray(0, MAX_OUTPUT).toString('utf8') }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PATIENCE_MS } from '../../run/patience.ts'
import { fixtureCommand } from '../fixture-process.ts'
import type { FixtureOptions } from '../state/options.ts'
import type { JsonObject } from '../wire/json-rpc.ts'
import { linesOf } from '../wire/lines.ts'

const LIMIT_MS = PATIENCE_MS

export interface RawPipe extends AsyncDisposable {
  send(message: JsonObject | string): void
  /** The next line of output; undefined when the output has ended. */
  line(): Promise<string | undefined>
  message(): Promise<JsonObject>
  /** Exit code, or the name of the signal. */
  readonly exited: Promise<number | string>
  /** Closes the input, as a client does that is done. */
  end(): void
}

/** A stdio fixture and its bare pipe. */
export function openPipe(options: FixtureOptions): RawPipe {
  const { command, args } = fixtureCommand({ ...options, transport: 'stdio' })
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit').then(([code, signal]: (number | string | null)[]) => code ?? signal ?? -1)
  const lines = linesOf(child.stdout)
  const line = async () => {
    const late = Promise.withResolvers<never>()
    const limit = setTimeout(() => late.reject(new Error('no output in time')), LIMIT_MS)
    const next = await Promise.race([lines.next(), late.promise]).finally(() => clearTimeout(limit))
    return next.done ? undefined : next.value
  }
  return {
    send: (message) => void child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    line,
    message: async () => JSON.parse((await line()) ?? 'null') as JsonObject,
    exited,
    end: () => void child.stdin.end(),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { ensureBundle } from '../../scripts/bundle.mjs'
import type { Usage, UsageQuestion } from './usage-probe.ts'

const ANSWER_LIMIT_MS = 30_000
const STOP_LIMIT_MS = 30_000
const KEPT_OUTPUT = 40

export interface MeasuredProcess extends AsyncDisposable {
  readonly pid: number
  /** The exit code or signal, once it has ended. */
  readonly ended: Promise<number | string>
  /** The last lines of both outputs, for error messages. */
  readonly output: readonly string[]
  /** `gc`: after a collection; `released`: after one that gives pages back, as our programs make it when they are quiet. */
  usage(options?: { gc?: boolean; released?: boolean }): Promise<Usage>
  /** Writes a line to its input, which needs `stdin`. */
  send(line: string): void
  /** The first line that matches; rejects when the process ends before. */
  line(pattern: RegExp): Promise<RegExpExecArray>
  /** Ends it at once, whatever it is at. */
  stop(): Promise<number | string>
  /** Asks it to end in good order, as a supervisor does. */
  terminate(): Promise<number | string>
}

export interface MeasuredOptions {
  /** Path of the script below the repository; it is bundled. */
  readonly script: string
  /** Path of a bundle to start instead. */
  readonly bundle?: string | undefined
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly nodeArgs?: readonly string[]
  readonly onLine?: (line: string) => void
  /** It reads from its input. */
  readonly stdin?: boolean
}

/** Starts a bundled program that can be asked what it uses. */
export async function startMeasured(options: MeasuredOptions): Promise<MeasuredProcess> {
  const { script, args = [], env = {}, nodeArgs = [], onLine } = options
  const [bundle, probe] = await Promise.all([options.bundle ?? ensureBundle(script), ensureBundle('bench/proxy/usage-probe.ts')])
  const child = spawn(process.execPath, [...nodeArgs, '--import', probe, bundle, ...args], {
    env: { ...process.env, ...env },
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'ipc'],
  })
  const ended = once(child, 'exit').then(([code, signal]: (number | string | null)[]) => code ?? signal ?? -1)
  const output = new Output(child, ended, onLine)
  const end = async (how: () => void) => {
    if (child.exitCode === null && child.signalCode === null) how()
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    const outcome = await ended
    clearTimeout(limit)
    return outcome
  }
  // The probe in it takes that for the end, and a profile still gets written.
  const stop = () => end(() => child.disconnect())
  return {
    pid: child.pid ?? -1,
    ended,
    output: output.lines,
    send: (line) => void child.stdin?.write(`${line}\n`),
    line: (pattern) => output.find(pattern),
    usage: ({ gc = false, released = false } = {}) => ask(child, { usage: released ? 'released' : gc ? 'after gc' : 'now' }),
    stop,
    terminate: () => end(() => child.kill('SIGTERM')),
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}

async function ask(child: ChildProcess, question: UsageQuestion): Promise<Usage> {
  const answer = once(child, 'message', { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) })
  child.send(question)
  const [usage] = (await answer) as [Usage]
  return usage
}

class Output {
  readonly lines: string[] = []
  readonly #waiting = new Set<(line: string) => void>()
  readonly #ended: Promise<number | string>

  constructor(child: ChildProcess, ended: Promise<number | string>, onLine: ((line: string) => void) | undefined) {
    this.#ended = ended
    for (const input of [child.stdout, child.stderr]) {
      if (input === null) continue
      createInterface({ input }).on('line', (line) => {
        onLine?.(line)
        this.lines.push(line)
        if (this.lines.length > KEPT_OUTPUT) this.lines.shift()
        for (const look of this.#waiting) look(line)
      })
    }
  }

  async find(pattern: RegExp): Promise<RegExpExecArray> {
    const { promise, resolve } = Promise.withResolvers<RegExpExecArray>()
    const look = (line: string) => {
      const found = pattern.exec(line)
      if (found !== null) resolve(found)
    }
    this.#waiting.add(look)
    for (const line of this.lines) look(line)
    const died = this.#ended.then((code) => Promise.reject(new Error(`the process ended with ${code}: ${this.lines.join('\n')}`)))
    try {
      return await Promise.race([promise, died])
    } finally {
      this.#waiting.delete(look)
      died.catch(() => {}) // no caller waits for it any more
    }
  }
}

import { constants } from 'node:os'
import { errorMessage } from '@thv/kernel/errors'
import type { ProcessLike, StopSignal } from '@thv/kernel/process-signals'
import type { ProgramScope } from '@thv/kernel/program-scope'
import { encodeMessage, type ToHost } from './messages.ts'

export interface HostedProgramOptions {
  readonly start: Extract<ToHost, { start: number }>
  /** Writes a line to the platform. */
  readonly write: (line: string) => void
  readonly onExit: () => void
}

/** Bytes of log lines that wait while the reader is slow; more are dropped. */
const MAX_HELD = 256 * 1024

/** One program of several in a process, with what it takes for its own process: variables, folder, output, signals and exit code. */
export class HostedProgram implements ProgramScope, ProcessLike {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly #options: HostedProgramOptions
  readonly #listeners = new Map<StopSignal, Set<() => void>>()
  readonly #closers = new Set<() => void>()
  #isHeld = false
  #held: string[] = []
  #heldBytes = 0
  #dropped = 0
  #hasCrashed = false
  #hasEnded = false

  constructor(options: HostedProgramOptions) {
    this.#options = options
    this.args = options.start.args
    this.env = options.start.env
    this.cwd = options.start.cwd
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  on(event: StopSignal, listener: () => void): void {
    const listeners = this.#listeners.get(event) ?? new Set()
    this.#listeners.set(event, listeners.add(listener))
  }

  off(event: StopSignal, listener: () => void): void {
    this.#listeners.get(event)?.delete(listener)
  }

  /** A signal that it does not handle ends it, as it would end a process. */
  signal(name: string): void {
    const listeners = [...(this.#listeners.get(name as StopSignal) ?? [])]
    if (listeners.length === 0) this.exit(128 + (constants.signals[name as NodeJS.Signals] ?? 0))
    for (const listener of listeners) listener()
  }

  /** It closes what it holds, as when it is stopped, and ends with code 1. */
  crash(error: unknown): void {
    this.writeError(`${error instanceof Error ? error.stack : String(error)}\n`)
    if (this.#hasCrashed) return
    this.#hasCrashed = true
    this.signal('SIGTERM')
  }

  exit(code: number): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.resume()
    for (const close of this.#closers) this.#close(close)
    this.#closers.clear()
    this.#options.write(encodeMessage({ exit: this.#options.start.start, code: this.#hasCrashed ? 1 : code }))
    this.#options.onExit()
  }

  onEnd(close: () => void): Disposable {
    if (this.#hasEnded) this.#close(close)
    else this.#closers.add(close)
    return { [Symbol.dispose]: () => void this.#closers.delete(close) }
  }

  writeOutput(text: string): boolean {
    if (this.#isHeld) return false
    this.#send('stdout', text)
    return true
  }

  /** A whole line, or several. */
  writeError(text: string): void {
    if (!this.#isHeld) {
      this.#send('stderr', text)
      return
    }
    if (this.#heldBytes + text.length > MAX_HELD) {
      this.#dropped++
      return
    }
    this.#held.push(text)
    this.#heldBytes += text.length
  }

  hold(): void {
    this.#isHeld = true
  }

  resume(): void {
    this.#isHeld = false
    const text = this.#held.splice(0).join('')
    this.#heldBytes = 0
    if (text !== '') this.#send('stderr', text)
    if (this.#dropped > 0) this.#send('stderr', `${this.#dropped} log lines were dropped: they were not read fast enough\n`)
    this.#dropped = 0
  }

  #close(close: () => void): void {
    try {
      close()
    } catch (error) {
      this.#send('stderr', `closing failed: ${errorMessage(error)}\n`)
    }
  }

  #send(stream: 'stdout' | 'stderr', text: string): void {
    if (text !== '') this.#options.write(encodeMessage({ output: this.#options.start.start, stream, text }))
  }
}

import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import type { Clock, Timer } from '@thv/kernel/clock'
import { encodeMessage, readFromHost, type ToHost } from '@thv/programs/shared-process/messages'
import type { GuardedCommand, GuardedProcess, ProcessEnd } from './guarded-process.ts'
import { killMarked } from './process-table.ts'

/** Bytes of one program that wait for its reader: from here on the program is asked to hold its output. */
const FULL = 256 << 10
/** From here on nothing is read from any of them: one of them prints without a pause. */
const MOST = 4 << 20
/** How long a program may take to say that it has been cut off. Later, the process does not run any more. */
const CUT_OFF_MS = 2_000

/** A process that runs programs for several containers (ADR 0028). Ends with the last of them. */
export class SharedProcess {
  /** Never rejects. */
  readonly ended: Promise<void>
  readonly #host: GuardedProcess
  readonly #clock: Clock
  readonly #programs = new Map<number, HostedProcess>()
  #next = 1
  #isOpen = true

  constructor(host: GuardedProcess, clock: Clock) {
    this.#host = host
    this.#clock = clock
    const lines = createInterface({ input: host.stdout })
    lines.on('line', (line) => this.#read(line))
    host.stderr.on('data', (bytes: Buffer) => this.#toAll(bytes))
    const closed = [lines, host.stderr].map((stream) => new Promise<void>((resolve) => void stream.once('close', () => resolve())))
    void Promise.all(closed).then(() => this.#closeOutputs())
    this.ended = host.ended.then((end) => this.#end(end))
  }

  /** Undefined when the process is ending: another one is needed. */
  start({ args, env, cwd, mark }: GuardedCommand): GuardedProcess | undefined {
    if (!this.#isOpen) return undefined
    const id = this.#next++
    const program = new HostedProcess({
      ...{ id, mark, host: this.#host, clock: this.#clock, send: (message) => this.#send(message) },
      onOutput: () => this.#flow(),
    })
    this.#programs.set(id, program)
    this.#send({ start: id, args, env, cwd })
    return program
  }

  async close(): Promise<void> {
    this.#isOpen = false
    this.#host.kill()
    await this.ended
  }

  #send(message: ToHost): void {
    if (this.#isOpen) this.#host.stdin?.write(encodeMessage(message))
  }

  #read(line: string): void {
    const message = readFromHost(line)
    if (message === undefined) {
      this.#toAll(Buffer.from(`${line}\n`))
      return
    }
    if ('output' in message) {
      this.#programs.get(message.output)?.write(message.stream, Buffer.from(message.text))
      this.#flow()
      return
    }
    const program = this.#programs.get(message.exit)
    this.#programs.delete(message.exit)
    program?.end({ exitCode: message.code })
    if (this.#programs.size > 0) return
    this.#isOpen = false
    this.#host.stdin?.end()
  }

  /** The log of every pod in it has the output of the process itself, such as the reason of a crash. */
  #toAll(bytes: Buffer): void {
    for (const program of this.#programs.values()) program.write('stderr', bytes)
  }

  #flow(): void {
    const isFull = [...this.#programs.values()].some(({ waitingBytes }) => waitingBytes > MOST)
    if (isFull) this.#host.stdout.pause()
    else if (this.#host.stdout.isPaused()) this.#host.stdout.resume()
  }

  /** The last of its output may still come. */
  #end(end: ProcessEnd): void {
    this.#isOpen = false
    this.#host.stdout.resume()
    for (const program of this.#programs.values()) program.died(end)
  }

  #closeOutputs(): void {
    this.#isOpen = false
    for (const program of this.#programs.values()) program.closeOutput()
  }
}

interface HostedProcessOptions {
  readonly id: number
  readonly mark: string
  readonly host: GuardedProcess
  readonly clock: Clock
  readonly send: (message: ToHost) => void
  /** Some of its output was read. */
  readonly onOutput: () => void
}

class HostedProcess implements GuardedProcess {
  /** Of the shared process. */
  readonly pid: number
  readonly start: string
  readonly stdin = undefined
  readonly stdout = new PassThrough({ highWaterMark: FULL })
  readonly stderr = new PassThrough({ highWaterMark: FULL })
  readonly ended: Promise<ProcessEnd>
  readonly #options: HostedProcessOptions
  readonly #end = Promise.withResolvers<ProcessEnd>()
  #isHeld = false
  #isRunning = true
  #isSignaled = false
  #cutOff: Timer | undefined

  constructor(options: HostedProcessOptions) {
    this.#options = options
    this.pid = options.host.pid
    this.start = options.host.start
    this.ended = this.#end.promise
    for (const stream of [this.stdout, this.stderr]) stream.on('drain', () => this.#drained()).on('error', () => {}) // its reader gave up
  }

  get waitingBytes(): number {
    return this.stdout.writableLength + this.stdout.readableLength + this.stderr.writableLength + this.stderr.readableLength
  }

  signal(name: NodeJS.Signals): void {
    this.#isSignaled = true
    if (this.#isRunning) this.#options.send({ signal: this.#options.id, name })
  }

  /**
   * Cuts the program off: its listeners and connections are closed at once, and what it still does ends with its own shutdown. The others go
   * on. If even that is not done in time, the event loop hangs: then the process is killed, and the others start again.
   */
  kill(): void {
    if (!this.#isRunning || this.#cutOff !== undefined) return
    const { clock, host } = this.#options
    if (!this.#isSignaled) this.signal('SIGTERM')
    this.signal('SIGKILL')
    // Timers come before input: when this process has stood still meanwhile, the answer may be there and not read yet.
    const killHost = () => this.#isRunning && host.kill()
    this.#cutOff = clock.setTimer(CUT_OFF_MS, () => void setImmediate(killHost))
  }

  killAll(): void {
    if (this.#isRunning) this.#options.host.killAll()
  }

  write(name: 'stdout' | 'stderr', bytes: Buffer): void {
    const stream = this[name]
    if (stream.writableEnded || stream.destroyed) return
    if (stream.write(bytes) || this.#isHeld) return
    this.#isHeld = true
    this.#options.send({ hold: this.#options.id })
  }

  end(end: ProcessEnd): void {
    this.closeOutput()
    this.died(end)
  }

  died(end: ProcessEnd): void {
    this.#isRunning = false
    this.#cutOff?.cancel()
    void killMarked(this.#options.mark) // what was run in the container beside it
      .catch(() => undefined) // best effort
      .then(() => this.#end.resolve(end))
  }

  closeOutput(): void {
    this.stdout.end()
    this.stderr.end()
  }

  #drained(): void {
    this.#options.onOutput()
    if (!this.#isHeld || this.stdout.writableNeedDrain || this.stderr.writableNeedDrain) return
    this.#isHeld = false
    this.#options.send({ resume: this.#options.id })
  }
}

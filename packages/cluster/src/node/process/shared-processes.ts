import { type Clock, systemClock } from '@thv/kernel/clock'
import { type GuardedCommand, type GuardedProcess, startGuarded } from './guarded-process.ts'
import { SharedProcess } from './shared-process.ts'

/** The process that hosts programs of several pods. Equal commands are one process. */
export interface HostCommand {
  readonly file: string
  readonly args: readonly string[]
  /** Of the image alone: nothing of any pod. */
  readonly env: Readonly<Record<string, string>>
}

export interface SharedProcessesOptions {
  /** Working folder of the processes. */
  readonly folder: string
  /** Begins the mark of every one of them. */
  readonly mark: string
  readonly clock?: Clock
}

/** Processes that run the programs of several pods: one for each kind of program, started for the first and ended with the last. */
export class SharedProcesses {
  readonly #options: SharedProcessesOptions
  readonly #processes = new Map<string, Promise<SharedProcess>>()
  #count = 0

  constructor(options: SharedProcessesOptions) {
    this.#options = options
  }

  /** The program as if it had a process of its own. Rejects as `startGuarded` does. */
  async start(program: GuardedCommand, host: HostCommand): Promise<GuardedProcess> {
    const key = JSON.stringify([program.file, host])
    for (;;) {
      const starting = this.#processes.get(key) ?? this.#open(key, program.file, host)
      const hosted = (await starting).start(program)
      if (hosted !== undefined) return hosted
      if (this.#processes.get(key) === starting) this.#processes.delete(key) // it has just ended
    }
  }

  /** Ends all of them, and what still runs in them. */
  async close(): Promise<void> {
    const open = await Promise.allSettled(this.#processes.values())
    await Promise.all(open.map((process) => (process.status === 'fulfilled' ? process.value.close() : undefined)))
  }

  #open(key: string, file: string, { args, env }: HostCommand): Promise<SharedProcess> {
    const { folder, mark, clock = systemClock } = this.#options
    const { PATH = '/usr/local/bin:/usr/bin:/bin', LANG = 'C.UTF-8' } = process.env
    const command = { file, args, env: { PATH, LANG, ...env }, cwd: folder, stdin: true, mark: `${mark}${++this.#count}.` }
    const starting = startGuarded(command).then((host) => new SharedProcess(host, clock))
    this.#processes.set(key, starting)
    void starting.then(
      ({ ended }) => ended.then(() => this.#forget(key, starting)),
      () => this.#forget(key, starting), // the caller hears of it
    )
    return starting
  }

  #forget(key: string, starting: Promise<SharedProcess>): void {
    if (this.#processes.get(key) === starting) this.#processes.delete(key)
  }
}

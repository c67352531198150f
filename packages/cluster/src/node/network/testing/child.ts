import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface TestChild {
  readonly process: ChildProcess
  readonly pid: number
  /** The next line it prints; undefined once it has ended. */
  line(): Promise<string | undefined>
  stop(): Promise<void>
}

/** A process in a group of its own, as the node starts them; its environment is what is given and nothing else. */
export function startChild(program: string, args: readonly string[], env: Readonly<Record<string, string>>): TestChild {
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} was not started`)
  return {
    process: child,
    pid,
    line: async () => {
      const { value, done } = await lines.next()
      return done === true ? undefined : value
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        child.kill('SIGKILL') // its group is gone already
      }
      await exited
    },
  }
}

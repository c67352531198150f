import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startGuard } from '@thv/testkit/cluster/process/process-guard'
import type { LogLine } from './run-registry.ts'
import { until } from './until.ts'

/* The program as people start it: the bundle, with its engine in a thread of its own. */

const BIN = fileURLToPath(new URL('../../bin/thv-registry-api.js', import.meta.url))

export interface RegistryProcess {
  readonly child: ChildProcess
  readonly ended: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
  /** Its log. */
  lines(): LogLine[]
}

export interface ServingProcess extends RegistryProcess {
  readonly url: string
  readonly internalUrl: string
}

export interface ProcessStarter extends Disposable {
  start(args: readonly string[], env?: Record<string, string>): RegistryProcess
  /** On free ports. Rejects if it ends before it listens. */
  serve(args: readonly string[], env?: Record<string, string>): Promise<ServingProcess>
}

/** Starts processes in a folder; disposing of it kills what still runs, and so does the end of this process, however it ends. */
export function processStarter(folder: string): ProcessStarter {
  const children: ChildProcess[] = []
  const guard = startGuard()

  function start(args: readonly string[], env: Record<string, string> = {}): RegistryProcess {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    children.push(child)
    const { pid } = child
    if (pid !== undefined) {
      guard.watch(pid)
      child.once('exit', () => guard.forget(pid))
    }
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    return {
      child,
      ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err }))),
      lines: () =>
        err
          .split('\n')
          .slice(0, -1)
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line) as LogLine),
    }
  }

  return {
    start,
    async serve(args, env) {
      const run = start(['serve', '--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0', ...args], env)
      const listening = await Promise.race([
        until(() => run.lines().find(({ msg }) => msg === 'listening')),
        run.ended.then(({ err }) => Promise.reject(new Error(`it ended: ${err}`))),
      ])
      return { ...run, url: String(listening['address']), internalUrl: String(listening['internalAddress']) }
    },
    [Symbol.dispose]() {
      for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      guard.close().catch((error: unknown) => console.error(error)) // what it watches is killed in any case
    },
  }
}

import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { BackoffOptions } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { type Child, type StopLimits, startChild } from '@thv/programs/child-process'
import { parseImageReference } from '@thv/programs/image-reference'
import { createProcessGuard } from '@thv/programs/process-guard'
import type { Env } from '@thv/programs/program-environment'
import type { ProgramLog } from '@thv/programs/program-log'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Runtime, StdioConnection } from '../runtime.ts'
import { runtimeError } from '../runtime-errors.ts'
import { serverEnvironment } from './child-environment.ts'
import { freePort } from './local-port.ts'
import { serverCommand } from './server-command.ts'
import { superviseServer } from './supervised-server.ts'

export interface LocalRuntimeOptions {
  readonly config: RunConfig
  readonly log: ProgramLog
  readonly env?: Env
  /** Where packages are installed. Default: THV_DATA_DIR, else a folder of the user's cache. */
  readonly dataDir?: string
  readonly clock?: Clock
  readonly stopLimits?: Partial<StopLimits>
  readonly restart?: { readonly backoff?: BackoffOptions; readonly stableMs?: number }
}

/** On top of those that sessions have of their own: the plain and the asking one of the legacy era, and the modern one. */
const SHARED_PROCESSES = 3

/** Runs the MCP server as child processes of this one. Throws `image_invalid` or `runtime_unsuitable` at once when it cannot. */
export function createLocalRuntime(options: LocalRuntimeOptions): Runtime {
  const { config, log, env = process.env, clock = systemClock } = options
  checkSuitable(config, log)
  const closing = new AbortController()
  const guard = createProcessGuard((message) => log.warn(message), clock)
  const dataDir = options.dataDir ?? defaultDataDir(env)
  const command = serverCommand(parseImageReference(config.image), config.cmd_args, {
    dataDir,
    env,
    guard,
    log,
    clock,
    signal: closing.signal,
  })
  /** All that run. */
  const children = new Set<Child>()
  /** Processes that are ending slowly: another one may take their place. */
  const leaving = new Set<Child>()
  const running: Promise<void>[] = []
  let starting = 0
  const stdioCapacity = config.stdio_max_processes + SHARED_PROCESSES

  async function start(stdio: 'protocol' | 'log', port?: number): Promise<Child> {
    const { file, args } = await command.resolve()
    closing.signal.throwIfAborted()
    const childEnv = serverEnvironment(config, env, port)
    const child = await startChild(
      { file, args },
      { name: config.name, env: childEnv, stdio, guard, log, clock, limits: options.stopLimits },
    )
    children.add(child)
    void child.ended.then(() => {
      children.delete(child)
      leaving.delete(child)
    })
    if (closing.signal.aborted) await child.stop()
    closing.signal.throwIfAborted()
    log.info(`started ${config.name}`, { pid: child.pid })
    return child
  }

  async function openStdio(signal: AbortSignal): Promise<StdioConnection> {
    await command.check()
    const child = start('protocol')
    try {
      return connectionTo(await abortable(child, signal), leaving)
    } catch (error) {
      // An install goes on and helps the next caller; a process that comes too late is of no use.
      child.then(
        (late) => void late.stop(),
        () => {}, // the caller received the error, or has gone
      )
      throw error
    }
  }

  return {
    name: 'local',
    stdioCapacity,

    async startServer(signal) {
      closing.signal.throwIfAborted()
      await command.check()
      const port = config.target_port === 0 ? await freePort() : config.target_port
      const supervisor = { name: config.name, port, start: () => start('log', port), log, clock, ...options.restart }
      const server = superviseServer(supervisor, linkSignals(signal, closing.signal))
      running.push(server.done)
      return server
    },

    async openStdio(signal) {
      closing.signal.throwIfAborted()
      const count = children.size - leaving.size + starting
      if (count >= stdioCapacity) {
        throw runtimeError('stdio_capacity', `${config.name} has ${count} processes already; stdio_max_processes limits them`)
      }
      starting++
      try {
        return await openStdio(signal)
      } finally {
        starting--
      }
    },

    async close() {
      closing.abort(new ThvError('aborted', 'the runtime is closed'))
      await Promise.all([...children].map((child) => child.stop()))
      await Promise.all(running)
      await guard.close()
    },
  }
}

function connectionTo(child: Child, leaving: Set<Child>): StdioConnection {
  const { stdin, stdout, ended } = child
  if (stdin === null || stdout === null) throw new TypeError('a stdio server has pipes')
  return {
    stdin,
    stdout,
    ended,
    instance: randomUUID(),
    close() {
      if (child.isRunning) leaving.add(child)
      return child.stop()
    },
  }
}

/** Settings that a process on this machine cannot have, and settings without effect. */
function checkSuitable(config: RunConfig, log: ProgramLog): void {
  for (const field of ['volumes', 'publish'] as const) {
    if (config[field].length > 0) {
      throw runtimeError(
        'runtime_unsuitable',
        `${field}: a local process sees the files and ports of this machine as they are; remove the field`,
      )
    }
  }
  if (config.k8s_pod_template_patch !== undefined && Object.keys(config.k8s_pod_template_patch).length > 0) {
    log.warn('k8s_pod_template_patch has no effect without a cluster')
  }
  if (config.permission_profile !== undefined) {
    log.warn('permission_profile has no effect without a cluster: the server has the rights of this process')
  }
}

export function defaultDataDir(env: Env): string {
  return env['THV_DATA_DIR'] || join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'thv')
}

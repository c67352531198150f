import { createServer } from 'node:net'
import { join } from 'node:path'
import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { type Child, startChild } from '@thv/programs/child-process'
import { createProcessGuard } from '@thv/programs/process-guard'
import type { ProgramLog } from '@thv/programs/program-log'
import { notedRegistry, noteRegistry } from './registry-note.ts'

export interface LocalRegistryOptions {
  /** The data folder of the platform. */
  readonly folder: string
  /** How `thv-registry-api` is started. */
  readonly program: readonly string[]
  /** A configuration of the user's own; without one the bundled catalog is served to everybody on this machine. */
  readonly configFile?: string | undefined
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly log: ProgramLog
  readonly clock?: Clock
}

/** How a program of ours says why it cannot go on. */
const COMPLAINT = 'thv-registry-api: '

/** A registry server beside the platform: a process that is started again whenever it ends. */
export interface LocalRegistry {
  readonly url: string
  stop(): Promise<void>
}

export async function startLocalRegistry(options: LocalRegistryOptions): Promise<LocalRegistry> {
  const { folder, log, clock = systemClock } = options
  const port = await freePort(folder)
  const url = `http://127.0.0.1:${port}`
  noteRegistry(folder, { url })
  const guard = createProcessGuard((message) => log.warn(message), clock)
  const stopping = new AbortController()
  let child: Child | undefined

  async function keepRunning(): Promise<void> {
    const backoff = createBackoff({ baseMs: 500, maxMs: 30_000 })
    while (!stopping.signal.aborted) {
      const began = clock.monotonic()
      const output = listenTo(log, (complaint) => noteRegistry(folder, { url, problem: complaint }))
      try {
        child = await startChild(commandOf(options, port), {
          name: 'registry',
          env: environmentOf(options.variables),
          cwd: folder,
          stdio: 'log',
          guard,
          log: output,
          clock,
        })
        const { message } = await child.ended
        if (stopping.signal.aborted) return
        trouble(output.complaint ?? `the registry has ended: ${message}`)
      } catch (error) {
        trouble(`the registry cannot be started: ${errorMessage(error)}`)
      }
      if (clock.monotonic() - began > 60_000) backoff.reset()
      await clock.sleep(backoff.next(), stopping.signal).catch(() => undefined) // told to stop: the loop sees it
    }
  }

  function trouble(problem: string): void {
    log.warn(problem)
    noteRegistry(folder, { url, problem })
  }

  const running = keepRunning()
  return {
    url,
    async stop() {
      stopping.abort(new ThvError('aborted', 'the platform is stopping'))
      await child?.stop()
      await running
      await guard.close()
    },
  }
}

/** A log that remembers the last complaint of a program. It may come after the news of its end. */
function listenTo(log: ProgramLog, onComplaint: (complaint: string) => void): ProgramLog & { readonly complaint: string | undefined } {
  let complaint: string | undefined
  return {
    debug: (message, fields) => log.debug(message, fields),
    warn: (message, fields) => log.warn(message, fields),
    info(message, fields) {
      log.info(message, fields)
      if (!message.startsWith(COMPLAINT)) return
      complaint = message.slice(COMPLAINT.length)
      onComplaint(complaint)
    },
    get complaint() {
      return complaint
    },
  }
}

function commandOf({ program, folder, configFile }: LocalRegistryOptions, port: number): { file: string; args: string[] } {
  const [file = process.execPath, ...args] = program
  const config = configFile === undefined ? [] : ['--config', configFile]
  const place = ['--data-dir', join(folder, 'registry'), '--address', `127.0.0.1:${port}`, '--internal-address', '127.0.0.1:0']
  return { file, args: [...args, 'serve', ...config, ...place] }
}

/** Variables that a configuration may refer to, without those of our other programs. */
function environmentOf(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[0] !== 'NODE_OPTIONS'),
  )
}

/** The one of last time, if it is still free: clients have written it down. */
async function freePort(folder: string): Promise<number> {
  const before = notedRegistry(folder)
  const wanted = before === undefined ? 0 : Number(new URL(before.url).port)
  return (await listenable(wanted)) ?? (await listenable(0)) ?? 0
}

function listenable(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(undefined))
    probe.listen({ host: '127.0.0.1', port }, () => {
      const bound = probe.address()
      probe.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : undefined))
    })
  })
}

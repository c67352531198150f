import { createHandlers } from '@thv/catalog/sources/handlers'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { createLogger, type Logger } from '@thv/telemetry/log'
import type { CommandEnv } from '../commands/command-env.ts'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { RegistryEngine } from '../engine/engine.ts'
import { createEngine } from '../engine/in-process-engine.ts'
import { buildProgram } from '../program.ts'
import { createParts } from '../serve/serve-parts.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { until } from './until.ts'

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

export function recordingLog(): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  return { lines, log: createLogger({ level: 'debug', format: 'json', write: (line) => void lines.push(JSON.parse(line)) }) }
}

/** Of the engine, where a test needs others. */
export type EngineParts = Pick<Parameters<typeof createEngine>[0], 'connectCluster' | 'clusterProbeMs'>

/** The real engine, in this thread and in memory. */
async function engineInMemory(config: RegistryConfig, log: Logger, more: EngineParts): Promise<RegistryEngine> {
  const outbound = createOutbound()
  const store = await openSqliteStore({ clock: systemClock })
  const engine = await createEngine({ config, store, handlers: createHandlers({ outbound }), clock: systemClock, log, ...more })
  return Object.assign(Object.create(engine), {
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]()
      await outbound.close()
    },
  })
}

export interface RegistryRun {
  readonly code: number
  readonly out: string
  readonly error: { readonly code: string; readonly message: string; readonly details: Readonly<Record<string, unknown>> } | undefined
}

/** Runs a command inside this process until it ends, and keeps what it prints. */
export async function runRegistry(args: readonly string[], env: Partial<CommandEnv> = {}): Promise<RegistryRun> {
  const { program, printed } = commandOf(env)
  try {
    return { code: await program.parseAsync(['node', 'thv-registry-api', ...args]), out: printed(), error: undefined }
  } catch (error) {
    if (!isThvError(error)) throw error
    return { code: 1, out: printed(), error }
  }
}

export interface StartedRegistry extends AsyncDisposable {
  readonly url: string
  readonly internalUrl: string | undefined
  readonly lines: readonly LogLine[]
  readonly lifecycle: Lifecycle
  /** The output for people. */
  printed(): string
  hangup(): void
}

/** `serve` inside this process, with the engine in memory, on free ports. */
export async function startRegistry(
  args: readonly string[],
  env: Partial<CommandEnv> = {},
  engine: EngineParts = {},
): Promise<StartedRegistry> {
  const { log, lines } = recordingLog()
  const lifecycle = createLifecycle({ drainMs: 10_000 })
  let hangup = () => {}
  const own: Partial<CommandEnv> = {
    log,
    lifecycle,
    onHangup(listener) {
      hangup = listener
      return () => {}
    },
    ...env,
  }
  const { program, printed } = commandOf(own, engine)
  const addresses = ['--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0']
  const ended = program.parseAsync(['node', 'thv-registry-api', 'serve', ...addresses, ...args])
  const listening = await Promise.race([until(() => lines.find(({ msg }) => msg === 'listening')), ended.then(() => undefined)])
  if (!listening) throw new Error('it ended before it listened')
  return {
    url: String(listening['address']),
    internalUrl: listening['internalAddress'] as string | undefined,
    lines,
    lifecycle,
    printed,
    hangup: () => hangup(),
    async [Symbol.asyncDispose]() {
      await lifecycle.shutdown('test over')
      await ended
    },
  }
}

function commandOf(env: Partial<CommandEnv>, engine: EngineParts = {}) {
  let out = ''
  const program = buildProgram({
    out: (text) => {
      out += text
    },
    env: {},
    lifecycle: createLifecycle(),
    terminal: false,
    clock: systemClock,
    parts: (context) =>
      createParts({
        ...context,
        entry: new URL('file:///none'),
        signal: AbortSignal.abort(),
        startEngine: (config) => engineInMemory(config, context.log, engine),
      }),
    ...env,
  })
  return { program, printed: () => out }
}

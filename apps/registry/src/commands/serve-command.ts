import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { aborted } from '@thv/kernel/deadline'
import { tryParseDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { createLogger, parseLogLevel } from '@thv/telemetry/log'
import { ensureWriteToken } from '../access/write-token.ts'
import type { Env } from '../config/env-values.ts'
import type { StorageConfig } from '../config/registry-config.ts'
import { startReloader } from '../serve/config-reloader.ts'
import { isLoopback, listenAddress } from '../serve/listen-address.ts'
import { serveRegistry } from '../serve/serve.ts'
import { startLines } from '../serve/start-lines.ts'
import type { CommandEnv } from './command-env.ts'
import { type ConfigFlags, loadConfig } from './load-config.ts'

export interface ServeFlags extends ConfigFlags {
  readonly address?: string
  readonly internalAddress?: string
  readonly debug?: boolean
}

/** Serves until its lifecycle ends. */
export async function serveCommand(flags: ServeFlags, command: CommandEnv): Promise<void> {
  const { env, lifecycle, clock, out } = command
  const log = command.log ?? createLogger({ level: 'info', ...logLevel(env, flags.debug === true) })
  const unknownLevel = unknownLogLevel(env)
  if (unknownLevel) log.warn(unknownLevel)

  const loaded = await loadConfig(flags, env)
  for (const warning of loaded.warnings) log.warn(warning)
  const { config, file } = loaded
  const host = file === undefined ? '127.0.0.1' : ''
  const address = addressOf('--address', flags.address, env, `${host}:8080`)
  const internalAddress = addressOf('--internal-address', flags.internalAddress, env, `${host}:8081`)
  if (config.auth.mode === 'anonymous' && config.auth.writeTokenFile === undefined && !isLoopback(address.host))
    log.warn('mode anonymous: everybody who reaches the address may read and change everything', { address: address.host })
  await makeFolder(config.storage)
  if (file === undefined && config.auth.writeTokenFile !== undefined) await ensureWriteToken(config.auth.writeTokenFile)

  const parts = command.parts({ log, clock, env })
  const stopDelayMs = stopDelay(env)
  const served = await serveRegistry({ config, address, internalAddress, parts, lifecycle, log, clock, stopDelayMs }).catch(inUse)
  log.info('listening', { address: served.address.url, internalAddress: served.internalAddress?.url })
  if (command.terminal) for (const line of startLines(served, file)) out(`${line}\n`)

  if (file !== undefined) {
    const reloader = startReloader({ path: file, text: loaded.text, read: loaded.read, served, clock, log })
    lifecycle.onShutdown('configuration watch', async () => await reloader[Symbol.asyncDispose]())
    const off = command.onHangup?.(() => reloader.trigger())
    if (off) lifecycle.onShutdown('SIGHUP', off)
  }
  await aborted(lifecycle.signal)
  log.info('stopping')
}

const STOP_DELAY = 'THV_REGISTRY_STOP_DELAY'
/** Well below the time that the whole stop may take. */
const MAX_STOP_DELAY_MS = 15_000

function stopDelay(env: Env): number {
  const text = env[STOP_DELAY]
  if (text === undefined || text === '') return 0
  const delay = tryParseDuration(text)
  if (delay === undefined || delay < 0 || delay > MAX_STOP_DELAY_MS)
    throw new ThvError('usage', `${STOP_DELAY} must be a duration of at most 15s, not ${JSON.stringify(text)}`)
  return delay
}

/** A new user’s first mishap: something else is at port 8080. */
function inUse(error: unknown): never {
  const taken = isThvError(error, 'listen_failed') && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
  throw taken ? new ThvError('listen_failed', `${error.message}: it is in use; --address chooses another`) : error
}

function addressOf(flag: string, given: string | undefined, env: Env, otherwise: string) {
  const variable = `THV_REGISTRY_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`
  if (given !== undefined) return listenAddress(flag, given)
  return listenAddress(variable, env[variable] || otherwise)
}

async function makeFolder(storage: StorageConfig): Promise<void> {
  if (storage.kind !== 'sqlite' || storage.path === undefined) return
  const folder = dirname(storage.path)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new ThvError(
      'store_unavailable',
      `the folder ${folder} of the embedded store cannot be made: use --data-dir, storage.path, or storage.memory: ${errorMessage(error)}`,
      { cause: error },
    )
  }
}

function levelText(env: Env): string | undefined {
  return env['THV_REGISTRY_LOG_LEVEL'] || env['LOG_LEVEL'] || undefined
}

function logLevel(env: Env, debug: boolean): Pick<Parameters<typeof createLogger>[0] & object, 'level'> {
  const level = debug ? 'debug' : parseLogLevel(levelText(env) ?? 'info')
  return level === undefined ? {} : { level }
}

function unknownLogLevel(env: Env): string | undefined {
  const text = levelText(env)
  return text === undefined || parseLogLevel(text)
    ? undefined
    : `the log level ${JSON.stringify(text)} is not debug, info, warn or error: info is used`
}
